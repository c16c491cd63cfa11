"""Memory planner: offsets of buffers in an arena from their sizes and lifetimes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

MAX_SEARCHED_BUFFERS = 400
Lifetimes = Sequence[tuple[int, int]]
Placed = tuple[list[int], int]


def place(sizes: Sequence[int], lifetimes: Lifetimes, alignment: int) -> Placed:
    """Return offsets for buffers of these sizes in bytes, and the bytes of the arena.

    ``lifetimes`` has for each buffer the first and last step at which it is live; buffers that are
    live at one step do not overlap. Two greedy orders are tried, by size and by time, and the
    smaller arena is used; large plans use the second alone, whose cost is nearly linear in the
    number of buffers.
    """
    rounded = [-(-size // alignment) * alignment for size in sizes]
    best = _by_time(rounded, lifetimes)
    if len(sizes) <= MAX_SEARCHED_BUFFERS:
        other = _by_size(rounded, lifetimes)
        if other[1] < best[1]:
            best = other
    return best


def _by_size(sizes: Sequence[int], lifetimes: Lifetimes) -> Placed:
    """Place the largest buffers first, each at the lowest offset that is free for its lifetime."""
    offsets = [0] * len(sizes)
    placed: list[tuple[int, int, int, int]] = []
    total = 0
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], lifetimes[k])):
        first, last = lifetimes[k]
        at = 0
        for start, end, other_first, other_last in placed:
            if other_first <= last and first <= other_last and start < at + sizes[k] and at < end:
                at = end
        offsets[k] = at
        placed.append((at, at + sizes[k], first, last))
        placed.sort()
        total = max(total, at + sizes[k])
    return offsets, total


def _by_time(sizes: Sequence[int], lifetimes: Lifetimes) -> Placed:
    """Place buffers in order of birth, each in the smallest free block; merge freed blocks."""
    offsets = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda k: lifetimes[k])
    deaths = sorted(range(len(sizes)), key=lambda k: lifetimes[k][1])
    holes = _Holes()
    dead = 0
    for k in order:
        while lifetimes[deaths[dead]][1] < lifetimes[k][0]:
            gone = deaths[dead]
            dead += 1
            holes.free(offsets[gone], offsets[gone] + sizes[gone])
        offsets[k] = holes.take(sizes[k])
    return offsets, holes.total


class _Holes:
    """The free blocks of an arena by size, start and end; ``total`` is the arena's bytes."""

    def __init__(self) -> None:
        self.total = 0
        self.by_size: list[tuple[int, int]] = []  # (size, start), sorted
        self.ends: dict[int, int] = {}  # start -> end
        self.starts: dict[int, int] = {}  # end -> start

    def take(self, size: int) -> int:
        """Return the start of ``size`` free bytes: in the smallest fitting block, or at the end."""
        if not size:
            return self.total
        place = bisect_left(self.by_size, (size, 0))
        if place < len(self.by_size):
            start = self.by_size[place][1]
        else:
            start = self.starts.get(self.total, self.total)  # a free block at the end grows
            self.total = start + size
        end = self._remove(start) if start in self.ends else start
        if start + size < end:
            self._add(start + size, end)
        return start

    def free(self, start: int, end: int) -> None:
        """Free a block and merge it with its free neighbours."""
        if start == end:
            return
        if start in self.starts:
            before = self.starts[start]
            self._remove(before)
            start = before
        if end in self.ends:
            end = self._remove(end)
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        self.ends[start], self.starts[end] = end, start
        insort(self.by_size, (end - start, start))

    def _remove(self, start: int) -> int:
        end = self.ends.pop(start)
        del self.starts[end]
        del self.by_size[bisect_left(self.by_size, (end - start, start))]
        return end
