"""Memory for large results, used again once the caller has dropped them.

A result is the caller's alone: its memory comes back here when the array, and everything that looks
at its memory, is gone. New memory would have to be cleared by the system page by page, which for
megabytes costs as much as many a kernel.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

POOLED_BYTES = 1 << 20  # bytes of a result from which it pays
KEPT_BYTES = 1 << 28  # the most that is kept for later results
ALIGNMENT = 64  # a line of cache, and the widest vector

_free: deque[Array] = deque()


class _Block:
    """Memory of a result, which goes back when nothing refers to it any more."""

    __slots__ = ("memory",)

    def __init__(self, memory: Array) -> None:
        self.memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__

    def __del__(self) -> None:
        # No lock: this may run at any time, in any thread. What is kept may pass the bound by the
        # blocks that are given back at the same moment. What lay free longest goes first: programs
        # that no longer run leave no memory that keeps out those that do.
        memory = self.memory
        if memory.nbytes > KEPT_BYTES:
            return
        _free.append(memory)
        while sum([other.nbytes for other in tuple(_free)]) > KEPT_BYTES:
            try:
                _free.popleft()
            except IndexError:  # another thread took the last
                return


def pooled(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new array of any contents; ``MemoryError`` where there is no memory for it."""
    size = math.prod(shape) * dtype.itemsize
    memory = _taken(size)
    if memory is None:
        raw = np.empty(size + ALIGNMENT, np.uint8)
        start = -raw.__array_interface__["data"][0] % ALIGNMENT
        memory = raw[start : start + size]
    made: Array = np.asarray(_Block(memory)).view(dtype).reshape(shape)
    return made


def _taken(size: int) -> Array | None:
    """Memory of exactly this size that is free.

    The rest stays in the order in which it came back.
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
    """What makes a result of this shape; None where NumPy's own memory does as well."""
    return pooled if math.prod(shape) * dtype.itemsize >= POOLED_BYTES else None


def new_result(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new array for a result."""
    make = maker(shape, dtype) or np.empty
    return make(shape, dtype)


def clear() -> None:
    """Free all memory that is kept for later results."""
    _free.clear()
