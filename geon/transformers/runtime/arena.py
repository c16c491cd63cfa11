"""Offsets of buffers in an arena: a pure function of sizes and lifetimes, on plain integers."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

SMALL_PLAN = 400
Lifetimes = Sequence[tuple[int, int]]
Placed = tuple[list[int], int]


def place(sizes: Sequence[int], lifetimes: Lifetimes, alignment: int) -> Placed:
    """Offsets for buffers of these sizes in bytes, and the bytes of the arena.

    ``lifetimes`` has for each buffer the first and last step it is alive at; two that are alive at
    one step do not overlap. Two greedy orders are tried, by size and by time, and the smaller arena
    is taken; large plans use the second alone, whose cost is linear in the number of buffers.
    """
    rounded = [-(-size // alignment) * alignment for size in sizes]
    best = _by_time(rounded, lifetimes)
    if len(sizes) <= SMALL_PLAN:
        other = _by_size(rounded, lifetimes)
        if other[1] < best[1]:
            best = other
    return best


def _by_size(sizes: Sequence[int], lifetimes: Lifetimes) -> Placed:
    """Largest first, each at the lowest offset free for its whole life."""
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
    """In order of birth, each in the smallest hole that fits; holes of the dead are joined."""
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
    """The free parts of an arena, found by size, by start and by end; ``total`` is its bytes."""

    def __init__(self) -> None:
        self.total = 0
        self.by_size: list[tuple[int, int]] = []  # (size, start), in order
        self.ends: dict[int, int] = {}  # start to end
        self.starts: dict[int, int] = {}  # end to start

    def take(self, size: int) -> int:
        """The start of ``size`` free bytes: of the smallest hole that fits, else at the end."""
        if not size:
            return self.total
        place = bisect_left(self.by_size, (size, 0))
        if place < len(self.by_size):
            start = self.by_size[place][1]
        else:
            start = self.starts.get(self.total, self.total)  # a hole at the end grows
            self.total = start + size
        end = self._remove(start) if start in self.ends else start
        if start + size < end:
            self._add(start + size, end)
        return start

    def free(self, start: int, end: int) -> None:
        """Make a hole, joined with its neighbours."""
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
