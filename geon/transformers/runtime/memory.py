"""Where values lie: the memory of a device behind four operations, and that of the host.

Variables, constants and arenas are values of a memory. Only it and the programs that were compiled
for it look into them; all else moves whole arrays in and out. What nothing refers to is freed.
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

LINE = 64
"""Bytes of a line of cache, at a multiple of which values begin: no vector of them is in two."""
ADVISED = 1 << 22
"""From so many bytes on NumPy asks the system for pages of 2 MiB, see `docs/decisions.md`."""


class Memory(Protocol):
    """The memory of one transformer.

    Copies may still be on their way when they return, and are made in the order in which they and
    programs were begun. ``on_host`` says whether values are NumPy arrays: then programs take the
    arrays that are fed, and give their results, as they are.
    """

    on_host: bool

    def allocate(self, shape: tuple[int, ...], dtype: Any, alignment: int = LINE) -> Any:
        """A value of any contents, at a multiple of ``alignment`` bytes; may be without elements.

        Raises ``MemoryError`` where there is no room.
        """

    def copy_in(self, array: Array, value: Any = None) -> Any:
        """The value that has the elements of a contiguous array: ``value``, or a new one.

        A new one may be the array itself, so only programs write that from then on.
        """

    def copy_out(self, value: Any) -> Array:
        """The elements of a value as a new array, which is the caller's own."""

    def synchronise(self) -> None:
        """Wait for all that was begun; raises where it failed."""

    def shown(self, value: Any) -> Any:
        """What a user feeds, as a value with ``shape`` and ``dtype``, where it lies here already.

        None where it does not: then it is fed as an array.
        """

    def room(self) -> Room:
        """How many bytes may be asked for, and that in words: "this machine has ..."."""


class HostMemory:
    """The memory that NumPy has."""

    on_host = True

    def allocate(self, shape: tuple[int, ...], dtype: Any, alignment: int = LINE) -> Array:
        """A new array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raw = (
            in_pages(size + alignment) if size >= ADVISED else np.empty(size + alignment, np.uint8)
        )
        start = -raw.ctypes.data % alignment
        return raw[start : start + size].view(dtype).reshape(shape)

    def copy_in(self, array: Array, value: Array | None = None) -> Array:
        """The array itself, or ``value`` with its elements."""
        if value is None:
            return array
        np.copyto(value, array)
        return value

    def copy_out(self, value: Array) -> Array:
        """A copy."""
        return np.array(value)

    def synchronise(self) -> None:
        """Nothing to wait for."""

    def shown(self, value: Any) -> None:
        """Arrays are fed as they are."""

    def room(self) -> Room:
        """All of the machine's memory: what others have of it may be given back, or swapped."""
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Room(found, f"this machine has {found:,}")


HOST = HostMemory()


def in_pages(size: int) -> Array:
    """Memory in the pages that the system gives unasked: NumPy's elsewhere than on Linux.

    And NumPy's under the address sanitizer, which knows the ends of what its own allocator gives,
    and lets it be used when it is given again.
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
    """Whether this process was started with the address sanitizer."""
    return hasattr(ctypes.CDLL(None), "__asan_poison_memory_region")


def own(array: Array) -> Array:
    """A copy that may be a value on the host."""
    made = HOST.allocate(array.shape, array.dtype)
    np.copyto(made, array)
    return made


def carried(memory: Memory, functions: Sequence[Callable[..., Any]]) -> Sequence[Any]:
    """A program's bind, run and sizes, with a ``run`` from arrays to arrays.

    On the host they are what they are, with the shorter way in where there is one.
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
