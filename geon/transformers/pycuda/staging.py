"""Where inputs and results of calls lie on the device, and in what pinned memory of the host."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .device import Array, Device
from .memory import ALIGNMENT, DeviceArray, Pinned

SMALL = 1 << 16  # bytes of a value up to which it shares a copy with others


class Block(NamedTuple):
    """What one copy moves: its address on the device, and its bytes in pinned memory."""

    address: int
    pinned: Array

    def part(self, offset: int, shape: tuple[int, ...], dtype: Any) -> tuple[int, Array]:
        """A value in it: its address, and its array of pinned memory."""
        return self.address + offset, array_in(self.pinned[offset:], shape, dtype)


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


def bytes_in(shape: tuple[int, ...], dtype: Any) -> int:
    """The bytes of a value."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def array_in(raw: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """The array at the beginning of some bytes."""
    made: Array = raw[: bytes_in(shape, dtype)].view(dtype).reshape(shape)
    return made


def side_by_side(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where values of these bytes begin in a block, and the bytes of the block."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end + -end % ALIGNMENT)
        end = offsets[-1] + size
    return offsets, end
