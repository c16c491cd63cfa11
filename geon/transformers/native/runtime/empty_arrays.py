"""Readable addresses for arrays without elements."""

from __future__ import annotations

import functools
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np

RESERVATION_BYTES = (
    1 << 36,
    1 << 32,
    1 << 28,
    1 << 24,
)  # bytes of address space to try, without memory
_FALLBACK_ZEROS = np.zeros(64, np.uint8)


def nothing(lengths: Mapping[str, int]) -> int:
    """Return the address of arrays without elements in a call with these lengths."""
    return zeros() if 0 in lengths.values() else _start(_FALLBACK_ZEROS)


@functools.cache
def zeros() -> int:
    """Return the address of more zero bytes than a kernel reads.

    A kernel that selects between elements may compute all candidates. If an open axis is empty, it
    reads beyond an empty array, as far as the other axes reach.
    """
    return _start(_reserved())


@functools.cache
def _reserved() -> np.ndarray[Any, Any]:
    for size in RESERVATION_BYTES:
        try:
            held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
        except (OSError, OverflowError, ValueError):  # not so much address space is available
            continue
        return np.frombuffer(held, np.uint8)
    return _FALLBACK_ZEROS


def _start(array: np.ndarray[Any, Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
