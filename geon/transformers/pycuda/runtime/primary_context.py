"""What the streams of a GPU share: its primary context, and free lists of memory.

Allocating from a driver takes as long as many kernels, and freeing waits for all of them. So blocks
that are given back are kept, with their exact sizes: the device holds no more than was asked for.

A stream is a ``gpu.GpuDevice``. A spare block belongs to the stream that used it: work that is
submitted to that stream later may use it at once. Another stream gets it only after an event behind
all work that used it. Blocks are given back by finalisers, which may run in any thread, also in the
midst of ``take``: a free list has no lock, and each step on its containers is atomic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....errors import DeviceError
from ..launches.device import Array
from ..launches.dlpack import DeviceType

# oldest compute capability: it has independent thread scheduling with warp barriers
MIN_ARCHITECTURE = (7, 0)


class PrimaryContext:
    """What the streams of one GPU share: its context, free lists of memory, and the first error.

    ``lost`` is the error after which the GPU does nothing any more, or None. Raises ``DeviceError``
    if there is no GPU of this number, or if it is too old.
    """

    def __init__(self, number: int) -> None:
        import pycuda.driver as driver

        self.driver = driver
        driver.init()
        count = driver.Device.count()
        if not 0 <= number < count:
            raise DeviceError(f"device={number}: there are {count} devices, numbered from 0")
        self.gpu = driver.Device(number)
        self.name = f"gpu {number}"
        self.dlpack: tuple[int, int] = (DeviceType.CUDA, number)
        self.architecture = architecture(self.name, *self.gpu.compute_capability())
        known = driver.device_attribute
        self.processors = int(self.gpu.get_attribute(known.MULTIPROCESSOR_COUNT))
        self.context = self.gpu.retain_primary_context()
        self.lost: str | None = None
        self.memory = Spares(driver.mem_alloc, driver.MemoryError)
        # Copies that use a pinned block are done when it is given back: all streams share them.
        self.pinned = Spares(
            lambda size: PinnedBlock(driver.pagelocked_empty(size, np.uint8)), driver.MemoryError
        )


class PinnedBlock:
    """Page-locked memory for ``Spares``; as an int, it is its address."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __int__(self) -> int:
        return int(self.array.ctypes.data)


def architecture(name: str, major: int, minor: int) -> str:
    """Return the compiler's name of an architecture, including architecture-specific features.

    Raise ``DeviceError`` if it is too old.
    """
    if (major, minor) < MIN_ARCHITECTURE:
        raise DeviceError(
            f"{name} is of compute capability {major}.{minor}, and kernels need "
            f"{MIN_ARCHITECTURE[0]}.{MIN_ARCHITECTURE[1]} or newer: choose another with "
            "device=, or "
            'geon.make_transformer("native")'
        )
    alone = "a" if (major, minor) == (9, 0) else ""  # enables warp-group matrix instructions
    return f"sm_{major}{minor}{alone}"


class SpareBlock:
    """A block that was given back by the owner of ``stream``.

    ``readers`` are events behind reads on other streams. ``end`` is an event behind all work of
    ``stream`` that used the block, recorded when another stream first asks for it.
    """

    __slots__ = ("end", "made", "readers", "stream")

    def __init__(self, made: Any, stream: Any, readers: Sequence[Any]) -> None:
        self.made, self.stream, self.readers = made, stream, tuple(readers)
        self.end: Any = None

    def is_idle(self) -> bool:
        """Return True if all work that used the block is done; record its end if that is open."""
        if self.end is None:
            self.end = self.stream.try_mark()
        return self.end is not None and all(map(self.stream.passed, (self.end, *self.readers)))


class Spares:
    """Blocks by address, allocated by ``make(size)`` and reused after they are given back.

    ``full`` is the error of ``make`` when memory is exhausted. Then the stream follows the events
    of a block of this size that another stream used, or all spare blocks are dropped and it is
    tried once more.
    """

    def __init__(self, make: Callable[[int], Any], full: type[Exception]) -> None:
        self.make, self.full = make, full
        self.used: dict[int, tuple[int, Any]] = {}
        self.spare: dict[tuple[int, Any], deque[SpareBlock]] = {}  # by size and stream

    @property
    def bytes(self) -> int:
        """Return the total bytes of spare blocks."""
        return sum(size * len(blocks) for (size, _), blocks in self.spare.copy().items())

    def take(self, size: int, stream: Any = None) -> int:
        """Return the address of a block of this size for work on a stream."""
        found = self.own(size, stream)
        made = self.made(size, stream) if found is None else found
        address = int(made)
        self.used[address] = size, made
        return address

    def own(self, size: int, stream: Any) -> Any | None:
        """Return the block that the stream gave back last, else one that no work uses any more."""
        found = popped(self.spare.get((size, stream)), -1)
        if found is not None:
            for event in found.readers:
                stream.follow(event)
            return found.made
        for blocks in self.of_others(size, stream):
            oldest = popped(blocks, 0)
            if oldest is not None and oldest.is_idle():
                return oldest.made
            if oldest is not None:
                blocks.appendleft(oldest)
        return None

    def of_others(self, size: int, stream: Any) -> list[deque[SpareBlock]]:
        """Return the spare blocks of a size that other streams gave back, oldest first."""
        spare = self.spare.copy()  # at once: making a list of pairs may collect garbage
        return [blocks for (n, other), blocks in spare.items() if n == size and other is not stream]

    def made(self, size: int, stream: Any) -> Any:
        """Allocate a block."""
        try:
            return self.make(size)
        except self.full:
            for blocks in self.of_others(size, stream):
                oldest = popped(blocks, 0)
                if oldest is not None and oldest.end is not None:
                    for event in (oldest.end, *oldest.readers):
                        stream.follow(event)
                    return oldest.made
            for blocks in self.spare.copy().values():
                blocks.clear()  # the driver waits for work that uses them
            return self.make(size)

    def give_back(self, address: int, stream: Any = None, readers: Sequence[Any] = ()) -> None:
        """Keep a block for reuse by the stream that used it.

        ``readers`` are events behind work of other streams that reads it.
        """
        size, made = self.used.pop(address)
        self.spare.setdefault((size, stream), deque()).append(SpareBlock(made, stream, readers))


def popped(blocks: deque[SpareBlock] | None, at: int) -> SpareBlock | None:
    """Remove and return the first (0) or last (-1) block; None if there is none."""
    try:
        return None if blocks is None else blocks.pop() if at else blocks.popleft()
    except IndexError:  # another thread took it
        return None
