"""Offsets of buffers in an arena: a pure function of sizes and lifetimes, on plain integers.

This file imports nothing of geon: its text is part of the modules that ``Transformer.write`` makes.
"""

from __future__ import annotations

from collections.abc import Sequence

SMALL_PLAN = 400
Lifetimes = Sequence[tuple[int, int]]
Placed = tuple[list[int], int]


def place(sizes: Sequence[int], lifetimes: Lifetimes, alignment: int = 64) -> Placed:
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
    holes: list[tuple[int, int]] = []
    total = 0
    dead = 0
    for k in order:
        while lifetimes[deaths[dead]][1] < lifetimes[k][0]:
            gone = deaths[dead]
            dead += 1
            _free(holes, offsets[gone], offsets[gone] + sizes[gone])
        offsets[k], total = _take(holes, sizes[k], total)
    return offsets, total


def _take(holes: list[tuple[int, int]], size: int, total: int) -> tuple[int, int]:
    """An offset for ``size`` bytes, taken from the holes or the end, and the new total."""
    fitting = [hole for hole in holes if hole[1] - hole[0] >= size]
    if fitting and size:
        hole = min(fitting, key=lambda hole: (hole[1] - hole[0], hole[0]))
        holes.remove(hole)
        if hole[0] + size < hole[1]:
            holes.append((hole[0] + size, hole[1]))
        return hole[0], total
    if holes and size:
        last = max(holes, key=lambda hole: hole[1])
        if last[1] == total:  # grow the hole at the end
            holes.remove(last)
            return last[0], last[0] + size
    return total, total + size


def _free(holes: list[tuple[int, int]], start: int, end: int) -> None:
    """Make a hole, joined with its neighbours."""
    if start == end:
        return
    for hole in list(holes):
        if hole[1] == start:
            holes.remove(hole)
            start = hole[0]
        elif hole[0] == end:
            holes.remove(hole)
            end = hole[1]
    holes.append((start, end))
