"""Memory that was given back, kept for what asks for the same size again.

Asking a driver for memory takes as long as many kernels, and giving it back waits for all of them.
Sizes are exact, so what a device has to hold is what was asked for, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Spares:
    """Blocks by address, made by ``make(size)``; those given back are made anew only when full.

    ``full`` is the error that ``make`` raises where there is no room: then all spare blocks are
    dropped, and it is asked once more.
    """

    def __init__(self, make: Callable[[int], Any], full: type[Exception]) -> None:
        self.make, self.full = make, full
        self.used: dict[int, tuple[int, Any]] = {}
        self.spare: dict[int, list[Any]] = {}
        self.bytes = 0  # of spare blocks

    def take(self, size: int) -> int:
        """The address of a block of this size."""
        if self.spare.get(size):
            made = self.spare[size].pop()
            self.bytes -= size
        else:
            made = self.made(size)
        address = int(made)
        self.used[address] = size, made
        return address

    def made(self, size: int) -> Any:
        """A new block."""
        try:
            return self.make(size)
        except self.full:
            self.spare.clear()
            self.bytes = 0
            return self.make(size)

    def give_back(self, address: int) -> None:
        """Keep a block for later."""
        size, made = self.used.pop(address)
        self.spare.setdefault(size, []).append(made)
        self.bytes += size
