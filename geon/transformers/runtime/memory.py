"""Memory of variables, constants and arenas: the interface for devices, and the host's memory.

Only a memory and the programs compiled for it access its values; all other code copies whole arrays
in and out. Values without references are freed.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from .dims import Room

Array = np.ndarray[Any, Any]

CACHE_LINE_BYTES = 64
"""Bytes of a line of cache, at a multiple of which values begin: no vector of them is in two."""
MIN_HUGE_PAGE_BYTES = 1 << 22
"""From so many bytes on NumPy asks the system for pages of 2 MiB, see
`docs/design/11-memory-plan.md`."""


class Memory(Protocol):
    """The memory of one transformer.

    Copies may be asynchronous; they are ordered with programs by submission. ``on_host`` is True if
    values are NumPy arrays: then programs use fed arrays, and return results, without copies.
    """

    on_host: bool

    def allocate(
        self, shape: tuple[int, ...], dtype: Any, alignment: int = CACHE_LINE_BYTES
    ) -> Any:
        """Return an uninitialised value, aligned to ``alignment`` bytes; it may have no elements.

        Raises ``MemoryError`` if memory is exhausted.
        """

    def copy_in(self, array: Array, value: Any = None) -> Any:
        """Copy a contiguous array to ``value``, or to a new one, and return it.

        A new one may be the array itself, so only programs may write to that from then on.
        """

    def copy_out(self, value: Any) -> Array:
        """Return the elements of a value as a new array, owned by the caller."""

    def synchronise(self) -> None:
        """Wait for all submitted work; raise if it failed."""

    def shown(self, value: Any) -> Any:
        """Return a user's value that already lies in this memory, with ``shape`` and ``dtype``.

        Return None otherwise: then it is fed as an array.
        """

    def holds(self, value: Any) -> bool:
        """Return True if programs read this computed value without a copy."""

    def room(self) -> Room:
        """Return the bytes that may be requested, and text such as "this machine has ..."."""


class HostMemory:
    """Host memory; values are NumPy arrays."""

    on_host = True

    def allocate(
        self, shape: tuple[int, ...], dtype: Any, alignment: int = CACHE_LINE_BYTES
    ) -> Array:
        """Return a new array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raw = (
            in_pages(size + alignment)
            if size >= MIN_HUGE_PAGE_BYTES
            else np.empty(size + alignment, np.uint8)
        )
        start = -raw.ctypes.data % alignment
        return raw[start : start + size].view(dtype).reshape(shape)

    def copy_in(self, array: Array, value: Array | None = None) -> Array:
        """Return the array itself, or ``value`` with its elements."""
        if value is None:
            return array
        np.copyto(value, array)
        return value

    def copy_out(self, value: Array) -> Array:
        """Return a copy."""
        return np.array(value)

    def synchronise(self) -> None:
        """Do nothing: copies are synchronous."""

    def shown(self, value: Any) -> None:
        """Return None: arrays are fed directly."""

    def holds(self, value: Any) -> bool:
        """Return True for an array of NumPy."""
        return isinstance(value, np.ndarray)

    def room(self) -> Room:
        """Return all of the machine's memory: what other processes use may be freed or swapped."""
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Room(found, f"this machine has {found:,}")


HOST = HostMemory()


def in_pages(size: int) -> Array:
    """Allocate in the system's default pages; by NumPy, except on Linux.

    NumPy also allocates under the address sanitizer, which knows the bounds of blocks from its own
    allocator and tracks their reuse.
    """
    if sys.platform != "linux" or has_sanitizer():
        return np.empty(size, np.uint8)
    try:
        held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"there is no room for {size:,} bytes: {error}") from error
    return np.frombuffer(held, np.uint8)


@cache
def has_sanitizer() -> bool:
    """Return True if this process runs under the address sanitizer."""
    return hasattr(ctypes.CDLL(None), "__asan_poison_memory_region")


def own_copy(array: Array) -> Array:
    """Return a copy in host memory with its alignment."""
    made = HOST.allocate(array.shape, array.dtype)
    np.copyto(made, array)
    return made


def carry_functions(memory: Memory, functions: Sequence[Callable[..., Any]]) -> Sequence[Any]:
    """Return a program's bind, run and sizes, where ``run`` maps arrays to arrays.

    On the host, these are the functions themselves, with the fast path if there is one.
    """
    if memory.on_host:
        return functions
    bind, run, sizes = functions[:3]

    def run_apart(bound: Any, *inputs: Array) -> tuple[Array, ...]:
        values = run(bound, *[memory.copy_in(array) for array in inputs])
        results = tuple([memory.copy_out(value) for value in values])
        memory.synchronise()
        return results

    return bind, run_apart, sizes
