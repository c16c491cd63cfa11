"""Staging memory of calls: device buffers and pinned host buffers of inputs and results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..launches.device import Array, Device
from ..launches.memory import ALIGNMENT_BYTES, DeviceArray, ForeignArray, Pinned

REPORT_WORDS = 8  # int64 words of an error report
MAX_SHARED_COPY_BYTES = 1 << 16  # max. bytes of a value that is copied together with others
MIN_UNPINNED_BYTES = 1 << 26  # bytes from which on an input or result has no pinned memory


class StagedInput(NamedTuple):
    """The device address of an input, and the pinned memory it is copied from, if any."""

    address: int
    pinned: Array | None


class StagedResult(NamedTuple):
    """A result: device address, shape, dtype, and the pinned memory it is copied to, if any."""

    address: int
    shape: tuple[int, ...]
    dtype: Any
    pinned: Array | None


class StagingBlock(NamedTuple):
    """One copy: device address and the bytes in pinned memory."""

    address: int
    pinned: Array

    def part(self, offset: int, shape: tuple[int, ...], dtype: Any) -> tuple[int, Array]:
        """Return the address and the pinned array of a value at a byte offset of the block."""
        return self.address + offset, array_in(self.pinned[offset:], shape, dtype)


class Leaving(NamedTuple):
    """The results of a call, the copies ``taken`` to the host, and the error report.

    ``report`` is its device address, ``reported`` its pinned memory; 0 and None if there is none.
    """

    results: Sequence[StagedResult]
    taken: Sequence[StagingBlock]
    report: int
    reported: Array | None


class Staging:
    """Buffers by their use, each as large as the largest call needed.

    One call at a time uses them. ``generation`` increases whenever a buffer moves, which
    invalidates captured graphs.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.blocks: dict[object, DeviceArray] = {}
        self.pins: dict[object, Pinned] = {}
        self.generation = 0

    @property
    def bytes(self) -> int:
        """Return the bytes on the device."""
        blocks = list(self.blocks.values())  # a copy: other threads change the dict
        return sum(block.nbytes for block in blocks)

    def place(self, whose: object, size: int) -> int:
        """Return the device address of a buffer of at least ``size`` bytes; 0 if that is 0."""
        if not size:
            return 0
        found = self.blocks.get(whose)
        if found is None or found.nbytes < size:
            found = None
            self.blocks.pop(whose, None)  # freed before more is allocated
            self.generation += 1
            found = self.blocks[whose] = DeviceArray(self.device, (size,), np.uint8)
        return found.address

    def pinned(self, whose: object, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array in pinned memory."""
        size = bytes_in(shape, dtype)
        found = self.pins.get(whose)
        if found is None or found.bytes.nbytes < size:
            self.pins.pop(whose, None)
            self.generation += 1
            found = self.pins[whose] = Pinned(self.device, size)
        return array_in(found.bytes, shape, dtype)

    def block(self, whose: object, size: int) -> StagingBlock:
        """Return a device buffer with pinned memory, for one copy."""
        return StagingBlock(self.place(whose, size), self.pinned(whose, (size,), np.uint8))

    def sources(self, arrays: Sequence[Any]) -> tuple[list[StagedInput], list[StagingBlock]]:
        """Return the sources of inputs, and the copies of a call; small inputs share one copy.

        Host inputs are written to their pinned memory.
        """
        small = [k for k, array in enumerate(arrays) if is_small(array)]
        offsets, size = laid_out([arrays[k].nbytes for k in small])
        block = self.block("inputs", size)
        places = dict(zip(small, offsets, strict=True))
        inputs, brought = [], [block] if size else []
        for k, array in enumerate(arrays):
            if k in places:
                source = StagedInput(*block.part(places[k], array.shape, array.dtype))
            else:
                source = self.source(k, array)
                if source.pinned is not None:
                    brought.append(StagingBlock(source.address, source.pinned))
            if source.pinned is not None:
                np.copyto(source.pinned, array)
            inputs.append(source)
        return inputs, brought

    def source(self, number: int, array: Any) -> StagedInput:
        """Return the source of an input that has its own buffer.

        An aligned array on the device is used in place. A host array is to be put into the source's
        pinned memory; if that is None, its copy is already submitted.
        """
        if isinstance(array, ForeignArray) and array.address % ALIGNMENT_BYTES == 0:
            return StagedInput(array.address, None)
        size = bytes_in(array.shape, array.dtype)
        address = self.place(("input", number), size)
        if size and isinstance(array, ForeignArray):
            self.device.copy(address, array.address, size)
        elif size >= MIN_UNPINNED_BYTES:
            self.device.copy_in(address, array)
        elif size:
            return StagedInput(address, self.pinned(("input", number), array.shape, array.dtype))
        return StagedInput(address, None)

    def leaving(self, shapes: Sequence[tuple[tuple[int, ...], Any]], reports: bool) -> Leaving:
        """Return the buffers of results that are copied to the host, and these copies.

        Small results share one copy, with the error report at its end.
        """
        sizes = [bytes_in(*each) for each in shapes]
        small = [k for k, size in enumerate(sizes) if 0 < size <= MAX_SHARED_COPY_BYTES]
        offsets, _ = laid_out([sizes[k] for k in small])
        end = sum(padded_size(sizes[k]) for k in small)
        total = end + (REPORT_WORDS * 8 if reports else 0)
        block = self.block("results", total)
        places = dict(zip(small, offsets, strict=True))
        results, taken = [], [block] if total else []
        for k, (shape, dtype) in enumerate(shapes):
            if k in places:
                address, pinned = block.part(places[k], shape, dtype)
            else:
                address, pinned = self.place(("result", k), sizes[k]), None
                if 0 < sizes[k] < MIN_UNPINNED_BYTES:
                    pinned = self.pinned(("result", k), shape, dtype)
                    taken.append(StagingBlock(address, pinned))
            results.append(StagedResult(address, shape, dtype, pinned))
        report = block.part(end, (REPORT_WORDS,), np.int64) if reports else (0, None)
        return Leaving(results, taken, *report)


def bytes_in(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the bytes of a value."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def array_in(raw: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array at the start of a byte buffer."""
    made: Array = raw[: bytes_in(shape, dtype)].view(dtype).reshape(shape)
    return made


def padded_size(size: int) -> int:
    """Return the bytes of a value, rounded up to the alignment of the next one."""
    return size + -size % ALIGNMENT_BYTES


def laid_out(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Return aligned offsets of values of these sizes in a block, and its total size."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(padded_size(end))
        end = offsets[-1] + size
    return offsets, end


def bytes_of_result(size: int) -> int:
    """Return the device bytes that a result takes if it is copied to the host."""
    return padded_size(size) if size <= MAX_SHARED_COPY_BYTES else size


def is_small(array: Any) -> bool:
    """Return True for a small host array, which shares a copy with others."""
    return isinstance(array, np.ndarray) and 0 < array.nbytes <= MAX_SHARED_COPY_BYTES
