"""Where inputs and results of calls lie on the device, and in what pinned memory of the host."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..launches.device import Array, Device
from ..launches.memory import ALIGNMENT, DeviceArray, Pinned, Shown

WORDS = 8  # of a report
SMALL = 1 << 16  # bytes of a value up to which it shares a copy with others
STAGED = 1 << 26  # bytes of an input or result from which on none are kept pinned for it


class Source(NamedTuple):
    """Where an input is read, and the pinned memory from which it is brought there, if it is."""

    address: int
    pinned: Array | None


class Result(NamedTuple):
    """A result of a call: where it lies, and the pinned memory by which it leaves, if it does."""

    address: int
    shape: tuple[int, ...]
    dtype: Any
    pinned: Array | None


class Block(NamedTuple):
    """What one copy moves: its address on the device, and its bytes in pinned memory."""

    address: int
    pinned: Array

    def part(self, offset: int, shape: tuple[int, ...], dtype: Any) -> tuple[int, Array]:
        """A value in it: its address, and its array of pinned memory."""
        return self.address + offset, array_in(self.pinned[offset:], shape, dtype)


class Leaving(NamedTuple):
    """Results, what is ``taken`` to the host, and the report of a call that has one: its address,
    and the pinned memory by which it leaves.
    """

    results: Sequence[Result]
    taken: Sequence[Block]
    report: int
    reported: Array | None


class Staging:
    """Places by what they are for, each as large as any call has needed it.

    One call at a time uses them. ``generation`` grows whenever a place has become another: what was
    captured before has old addresses.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.blocks: dict[object, DeviceArray] = {}
        self.pins: dict[object, Pinned] = {}
        self.generation = 0

    @property
    def bytes(self) -> int:
        """The bytes on the device."""
        blocks = list(self.blocks.values())  # other threads add to it and take from it
        return sum(block.nbytes for block in blocks)

    def place(self, whose: object, size: int) -> int:
        """The address of at least so many bytes on the device; 0 for none."""
        if not size:
            return 0
        found = self.blocks.get(whose)
        if found is None or found.nbytes < size:
            found = None
            self.blocks.pop(whose, None)  # given back before more is asked for
            self.generation += 1
            found = self.blocks[whose] = DeviceArray(self.device, (size,), np.uint8)
        return found.address

    def pinned(self, whose: object, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array of pinned memory."""
        size = bytes_in(shape, dtype)
        found = self.pins.get(whose)
        if found is None or found.bytes.nbytes < size:
            self.pins.pop(whose, None)
            self.generation += 1
            found = self.pins[whose] = Pinned(self.device, size)
        return array_in(found.bytes, shape, dtype)

    def block(self, whose: object, size: int) -> Block:
        """Both for bytes that are copied at once."""
        return Block(self.place(whose, size), self.pinned(whose, (size,), np.uint8))

    def sources(self, arrays: Sequence[Any]) -> tuple[list[Source], list[Block]]:
        """Where inputs are read, and what a call brings there: small ones are one copy."""
        small = [k for k, array in enumerate(arrays) if is_small(array)]
        offsets, size = laid_out([arrays[k].nbytes for k in small])
        block = self.block("inputs", size)
        places = dict(zip(small, offsets, strict=True))
        inputs, brought = [], [block] if size else []
        for k, array in enumerate(arrays):
            if k in places:
                source = Source(*block.part(places[k], array.shape, array.dtype))
            else:
                source = self.source(k, array)
                if source.pinned is not None:
                    brought.append(Block(source.address, source.pinned))
            if source.pinned is not None:
                np.copyto(source.pinned, array)
            inputs.append(source)
        return inputs, brought

    def source(self, number: int, array: Any) -> Source:
        """Where an input of its own place is read; what is of the host is to be put into pinned
        memory, or on its way already.

        What lies on the device at an aligned address is read there.
        """
        if isinstance(array, Shown) and array.address % ALIGNMENT == 0:
            return Source(array.address, None)
        size = bytes_in(array.shape, array.dtype)
        address = self.place(("input", number), size)
        if size and isinstance(array, Shown):
            self.device.copy(address, array.address, size)
        elif size >= STAGED:
            self.device.copy_in(address, array)
        elif size:
            return Source(address, self.pinned(("input", number), array.shape, array.dtype))
        return Source(address, None)

    def leaving(self, shapes: Sequence[tuple[tuple[int, ...], Any]], reports: bool) -> Leaving:
        """Where results are computed that are brought to the host, and what a call takes there:
        small ones are one copy, with the report behind them."""
        sizes = [bytes_in(*each) for each in shapes]
        small = [k for k, size in enumerate(sizes) if 0 < size <= SMALL]
        offsets, _ = laid_out([sizes[k] for k in small])
        end = sum(padded(sizes[k]) for k in small)
        total = end + (WORDS * 8 if reports else 0)
        block = self.block("results", total)
        places = dict(zip(small, offsets, strict=True))
        results, taken = [], [block] if total else []
        for k, (shape, dtype) in enumerate(shapes):
            if k in places:
                address, pinned = block.part(places[k], shape, dtype)
            else:
                address, pinned = self.place(("result", k), sizes[k]), None
                if 0 < sizes[k] < STAGED:
                    pinned = self.pinned(("result", k), shape, dtype)
                    taken.append(Block(address, pinned))
            results.append(Result(address, shape, dtype, pinned))
        report = block.part(end, (WORDS,), np.int64) if reports else (0, None)
        return Leaving(results, taken, *report)


def bytes_in(shape: tuple[int, ...], dtype: Any) -> int:
    """The bytes of a value."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def array_in(raw: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """The array at the beginning of some bytes."""
    made: Array = raw[: bytes_in(shape, dtype)].view(dtype).reshape(shape)
    return made


def padded(size: int) -> int:
    """The bytes that a value takes in a block, where the next one begins behind it."""
    return size + -size % ALIGNMENT


def laid_out(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where values of these bytes begin in a block, and where the last one ends."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(padded(end))
        end = offsets[-1] + size
    return offsets, end


def bytes_of_result(size: int) -> int:
    """What a result of so many bytes takes of the device where it is brought to the host."""
    return padded(size) if size <= SMALL else size


def is_small(array: Any) -> bool:
    """Whether an input is of the host, and shares a copy with others."""
    return isinstance(array, np.ndarray) and 0 < array.nbytes <= SMALL
