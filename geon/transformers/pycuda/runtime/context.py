"""CUDA context handling: entering it, objects that must be freed inside of it, and free lists.

A ``device`` here is a ``gpu.GpuDevice``. Allocating from a driver takes as long as many kernels,
and freeing waits for all of them, so memory blocks are kept in free lists. These have exact sizes,
so the device holds no more than was asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..launches.device import Array


class Spares:
    """Blocks by address, allocated by ``make(size)`` and reused after they are given back.

    ``full`` is the error of ``make`` when memory is exhausted: then all spare blocks are dropped
    and it is tried once more.
    """

    def __init__(self, make: Callable[[int], Any], full: type[Exception]) -> None:
        self.make, self.full = make, full
        self.used: dict[int, tuple[int, Any]] = {}
        self.spare: dict[int, list[Any]] = {}
        self.bytes = 0  # total bytes of spare blocks

    def take(self, size: int) -> int:
        """Return the address of a block of this size."""
        if self.spare.get(size):
            made = self.spare[size].pop()
            self.bytes -= size
        else:
            made = self.made(size)
        address = int(made)
        self.used[address] = size, made
        return address

    def made(self, size: int) -> Any:
        """Allocate a block."""
        try:
            return self.make(size)
        except self.full:
            self.spare.clear()
            self.bytes = 0
            return self.make(size)

    def give_back(self, address: int) -> None:
        """Keep a block for reuse."""
        size, made = self.used.pop(address)
        self.spare.setdefault(size, []).append(made)
        self.bytes += size


class Entered:
    """A ``with`` block in which a device's context is current for this thread.

    Errors of the driver become device errors with the text ``what``, formatted with ``values`` only
    then.
    """

    __slots__ = ("device", "values", "what")

    def __init__(self, device: Any, what: str, values: tuple[Any, ...]) -> None:
        self.device, self.what, self.values = device, what, values

    def __enter__(self) -> None:
        device = self.device
        device.lock.acquire()
        try:
            if device.lost is not None:
                device.refuse_lost()
            if device.depth == 0:
                device.context.push()
            device.depth += 1
        except BaseException:
            device.lock.release()
            raise

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        device = self.device
        try:
            if isinstance(error, device.driver.Error):
                raise device.translated(self.what.format(*self.values), error) from None
        finally:
            device.depth -= 1
            if device.depth == 0:
                device.context.pop()
            device.lock.release()


class Owned:
    """A PyCUDA object that is freed in its device's context; elsewhere it would leak."""

    __slots__ = ("device", "made")

    def __init__(self, device: Any, made: Any) -> None:
        self.device, self.made = device, made

    def __del__(self) -> None:
        if self.device.lost is None and not sys.is_finalizing():
            with self.device.entered("something is given back"):
                self.made = None


class Graph:
    """A captured CUDA graph; calling it launches it."""

    def __init__(self, device: Any, bindings: Any, made: Any) -> None:
        self.device, self.bindings, self.made = device, bindings, made

    def __call__(self) -> None:
        with self.device.entered("a graph is launched"):
            self.device.done(self.bindings.cuGraphLaunch(self.made, self.device.stream.handle))

    def __del__(self) -> None:
        if self.device.lost is None and not sys.is_finalizing():
            with self.device.entered("a graph is given back"):
                self.bindings.cuGraphExecDestroy(self.made)


class PinnedBlock:
    """Page-locked memory for ``Spares``; as an int, it is its address."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __int__(self) -> int:
        return int(self.array.ctypes.data)
