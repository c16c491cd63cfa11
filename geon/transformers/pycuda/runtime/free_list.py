"""Free lists of memory blocks by exact size.

Allocating from a driver takes as long as many kernels, and freeing waits for all of them. Sizes are
exact, so the device holds no more than was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
