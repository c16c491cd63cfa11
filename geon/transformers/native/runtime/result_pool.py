"""Memory of results: a pool for large ones, and readable addresses for those without elements.

A result belongs to the caller. Its memory returns to the pool when the array and all views of it
are gone. New memory must be cleared by the system page by page, which for megabytes costs as much
as many kernels.
"""

from __future__ import annotations

import functools
import math
import mmap
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...runtime.memory import CACHE_LINE_BYTES
from ...sizes.blocks import L2_BYTES

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


Array = np.ndarray[Any, Any]

MIN_POOLED_BYTES = L2_BYTES  # minimum bytes of a result for which the pool pays off
MAX_POOL_BYTES = 1 << 28  # maximum bytes of free memory in the pool
ALIGNMENT_BYTES = CACHE_LINE_BYTES  # the widest vector has as many

_free: deque[Array] = deque()


class _PooledMemory:
    """Memory of a result, which returns to the pool when nothing refers to it any more."""

    __slots__ = ("memory",)

    def __init__(self, memory: Array) -> None:
        self.memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__

    def __del__(self) -> None:
        # No lock, as this may run at any time in any thread. The pool may exceed its limit by the
        # blocks that are returned at the same moment. The block that was free for longest is
        # dropped first, so that memory of programs that no longer run does not fill the pool.
        memory = self.memory
        if memory.nbytes > MAX_POOL_BYTES:
            return
        _free.append(memory)
        while sum([other.nbytes for other in tuple(_free)]) > MAX_POOL_BYTES:
            try:
                _free.popleft()
            except IndexError:  # another thread took the last
                return


def allocate_pooled(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a new array with arbitrary contents; ``MemoryError`` if there is no memory."""
    size = math.prod(shape) * dtype.itemsize
    memory = _taken(size)
    if memory is None:
        raw = np.empty(size + ALIGNMENT_BYTES, np.uint8)
        start = -raw.__array_interface__["data"][0] % ALIGNMENT_BYTES
        memory = raw[start : start + size]
    made: Array = np.asarray(_PooledMemory(memory)).view(dtype).reshape(shape)
    return made


def _taken(size: int) -> Array | None:
    """Remove a free block of exactly ``size`` bytes from the pool and return it, or None.

    The other blocks keep their order.
    """
    found = None
    for _ in range(len(_free)):
        try:
            memory = _free.popleft()
        except IndexError:  # another thread took the last
            break
        if found is None and memory.nbytes == size:
            found = memory
        else:
            _free.append(memory)
    return found


def maker(shape: tuple[int, ...], dtype: Any) -> Callable[..., Array] | None:
    """Return the function that allocates a pooled result, or None if it is small."""
    return allocate_pooled if math.prod(shape) * dtype.itemsize >= MIN_POOLED_BYTES else None


def new_result(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a new array for a result."""
    make = maker(shape, dtype) or np.empty
    return make(shape, dtype)


def clear() -> None:
    """Free all memory in the pool."""
    _free.clear()
