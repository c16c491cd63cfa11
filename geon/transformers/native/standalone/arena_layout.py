"""Offsets of arena buffers as C statements over open lengths.

The order in which buffers lie above each other is that of ``place`` for sample lengths. Of two
buffers that are live at one step, the later one in this order begins behind the end of the earlier
one, for all lengths. So no two of them overlap, and for the sample lengths the arena is as small as
``place`` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ...runtime.arena import Lifetimes, place
from ...sizes.limits import NOMINAL_LENGTH


def lower_neighbours(sizes: Sequence[int], lifetimes: Lifetimes, alignment: int) -> list[list[int]]:
    """Return for each buffer those below it that it must not overlap, in an order of placement.

    Buffers that lie below another one of the list are left out.
    """
    offsets, _ = place(sizes, lifetimes, alignment)
    order = sorted(range(len(sizes)), key=lambda k: (offsets[k], offsets[k] + sizes[k], k))
    below = [0] * len(sizes)  # bit sets over buffers
    for position, k in enumerate(order):
        first, last = lifetimes[k]
        for other in order[:position]:
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]:
                below[k] |= 1 << other
    found: list[list[int]] = []
    for k in range(len(sizes)):
        implied = 0
        for other in _members(below[k]):
            implied |= below[other]
        found.append(_members(below[k] & ~implied))
    return found


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def layout_statements(
    sizes: Sequence[Size],
    lifetimes: Lifetimes,
    names: Sequence[str],
    alignment: int,
    length: Callable[[Size], str],
) -> tuple[list[str], int | None]:
    """Return statements that set ``at[k]`` and ``end[k]`` of each buffer, and the arena's bytes.

    ``sizes`` are in bytes, over the open ``names``; ``length`` prints one. The bytes are None if
    they depend on a name.
    """
    sample: Mapping[str, int] = dict.fromkeys(names, NOMINAL_LENGTH)
    sampled = [max(evaluate(size, sample), 0) for size in sizes]
    below = lower_neighbours(sampled, lifetimes, alignment)
    offsets, _ = place(sampled, lifetimes, alignment)
    lines: list[str] = []
    ends: dict[int, int] = {}  # of buffers whose end depends on no name
    for k in sorted(range(len(sizes)), key=lambda k: (offsets[k], offsets[k] + sampled[k], k)):
        start = max((ends[j] for j in below[k] if j in ends), default=0)
        moving = [j for j in below[k] if j not in ends]
        lines.append(f"at_[{k}] = {start};")
        lines += [f"if (end_[{j}] > at_[{k}]) at_[{k}] = end_[{j}];" for j in moving]
        size = sizes[k]
        if isinstance(size, int):
            size = -(-size // alignment) * alignment
            lines.append(f"end_[{k}] = at_[{k}] + {size};")
            if not moving:
                ends[k] = start + size
        else:
            each, mask = f"({length(size)} + {alignment - 1})", f"~INT64_C({alignment - 1})"
            lines.append(f"end_[{k}] = at_[{k}] + ({each} & {mask});")
    known = max(ends.values(), default=0) if len(ends) == len(sizes) else None
    return lines, known
