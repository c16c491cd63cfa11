"""Where inputs and results of calls lie on the device, and in what pinned memory of the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .device import Array, Device
from .memory import DeviceArray, Pinned


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
        size = math.prod(shape) * np.dtype(dtype).itemsize
        found = self.pins.get(whose)
        if found is None or found.bytes.nbytes < size:
            self.pins.pop(whose, None)
            self.generation += 1
            found = self.pins[whose] = Pinned(self.device, size)
        made: Array = found.bytes[:size].view(dtype).reshape(shape)
        return made
