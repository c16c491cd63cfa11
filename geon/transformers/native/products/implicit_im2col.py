"""Windows that tiles read where they overlap: in memory, or in a band of what some rows show.

A packed block has each element once for every window that shows it. A band has it once, with zeros
for what is beyond a border, and rows are places in it: a row's summed indices are runs of elements
that adjoin, at the same offsets from each place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import Guard
from ...kernels.ir.nest import Loop
from ..sizes.blocking import BAND, BAND_BYTES, GROUP, RUN, RUNS, Shape


@dataclass(frozen=True)
class Along:
    """Windows along one axis: the loop of rows goes `step` positions a turn, that of what is summed
    `apart`; positions lie `far` apart in memory, and are inside where the guard holds.
    """

    rows: Loop
    step: int
    taps: Loop | None
    apart: int
    far: Size
    guard: Guard | None

    @property
    def span(self) -> int:
        """How many positions one window reaches over."""
        return 1 if self.taps is None else (known(self.taps) - 1) * self.apart + 1


@dataclass(frozen=True)
class Band:
    """What blocks of up to `most` rows show: lines of positions `across`, one below the other
    `down`, and in each line a plane for each index of `planes`, whose `others` are guards that hold
    for a whole plane. A position is `each` elements that adjoin in memory; the loops over them step
    by `inner`.
    """

    across: Along
    down: Along | None
    planes: tuple[Loop, ...]
    others: tuple[Guard, ...]
    inner: Mapping[str, int]
    each: int
    most: int

    @property
    def count(self) -> int:
        """The number of planes."""
        return depth_of(self.planes)

    @property
    def height(self) -> int:
        """The lines that one row reaches over."""
        return self.down.span if self.down is not None else 1

    def positions(self, length: int) -> int:
        """The positions of a line, where as many rows adjoin."""
        return (min(length, self.most) - 1) * self.across.step + self.across.span

    @property
    def elements(self) -> int:
        """The most elements of a band, at any lengths."""
        length = self.across.rows.extent
        lengths = [length] if isinstance(length, int) else range(1, self.most + 1)
        return max(self.lines(n) * self.positions(n) for n in lengths) * self.count * self.each

    def lines(self, length: int) -> int:
        """The most lines of a band whose rows adjoin in so many.

        Those of the first run, of the one after it and of one after each end of the axis `down`
        share none with the run before.
        """
        runs = (self.most - 2) // length + 2
        if self.down is None:
            return runs
        below = self.down.rows.extent
        alone = min(runs, 3 + runs // below) if isinstance(below, int) else runs
        shared = min(self.down.step, self.height)
        return alone * self.height + (runs - alone) * shared

    def steps(self, line: str) -> dict[str, str]:
        """The distance in a band that each summed loop steps by; `line` is that of two lines."""
        found = {name: str(step) for name, step in self.inner.items()}
        inner = 1
        for loop in reversed(self.planes):
            found[loop.name] = f"{inner} * ({line} / {self.count})"
            inner *= known(loop)
        if self.down is not None and self.down.taps is not None:
            found[self.down.taps.name] = f"{self.down.apart} * {line}"
        if self.across.taps is not None:
            found[self.across.taps.name] = str(self.across.apart * self.each)
        return found


def known(loop: Loop) -> int:
    """The turns of a loop over what windows show."""
    assert isinstance(loop.extent, int)
    return loop.extent


def are_known(loops: Sequence[Loop]) -> bool:
    """Whether loops over what windows show are of known lengths, and none is empty."""
    return all(isinstance(loop.extent, int) and loop.extent > 0 for loop in loops)


def depth_of(loops: Sequence[Loop]) -> int:
    """The turns of such loops together."""
    return math.prod(map(known, loops))


def runs(loops: Sequence[Loop], steps: Mapping[str, str]) -> tuple[list[str], int]:
    """The offsets of the runs of elements that adjoin, row-major, and how long they are."""
    run, outer = 1, list(loops)
    while outer and steps[outer[-1].name] == str(run):
        run *= known(outer.pop())
    offsets = [
        " + ".join(
            f"{index} * ({steps[loop.name]})"
            for index, loop in zip(place, outer, strict=True)
            if index
        )
        for place in combinations(*(range(known(loop)) for loop in outer))
    ]
    return [offset or "0" for offset in offsets], run


def are_served(loops: Sequence[Loop], steps: Mapping[str, str]) -> bool:
    """Whether runs are few and long enough for tiles, which turn from one to the next."""
    run, depth = 1, depth_of(loops)
    for loop in reversed(loops):
        if steps[loop.name] != str(run):
            break
        run *= known(loop)
    return run >= min(RUN, depth) and depth <= run * RUNS


def filled(run: int, of: Shape) -> int:
    """The elements of the vectors that read so many which adjoin."""
    return -(-run // of.vector) * of.vector


def overlap(strides: Mapping[str, Size], rows: Sequence[Loop], summed: Sequence[Loop]) -> bool:
    """Whether windows of an operand without a border share elements: a loop goes on inside of what
    another one reaches over.
    """
    for row in rows:
        for tap in summed:
            far, near = strides.get(row.name, 0), strides.get(tap.name, 0)
            if not (isinstance(far, int) and isinstance(near, int) and far > 0 and near > 1):
                continue
            if far < near * known(tap) and (far % near == 0 or near % far == 0):
                return True
    return False


def most_rows(summed: Sequence[Loop], of: Shape) -> int:
    """The most rows of windows at a time: of those in several blocks sums wait in memory."""
    return BAND if depth_of(summed) <= of.depth else GROUP


def find_band(
    strides: Mapping[str, Size],
    guards: Sequence[Guard],
    rows: Sequence[Loop],
    summed: Sequence[Loop],
    of: Shape,
    most: int | None = None,
) -> Band | None:
    """The band of an operand with such strides and borders; None where it has none, or a large one.

    In which order `summed` is does not matter. Of columns that are windows rows are the summed
    indices, and what is summed here the columns. Blocks are of `most` rows, or of as many as blocks
    of rows have.
    """
    if not rows or not are_known(summed):
        return None
    across = _along(rows[-1], strides, guards, summed)
    if across is None:
        return None
    down = _along(rows[-2], strides, guards, summed) if len(rows) > 1 else None
    if down is not None and (down.taps is None or down.taps is across.taps):
        down = None
    both = [across] if down is None else [across, down]
    own = [each.guard for each in both]
    taken = {each.taps.name for each in both if each.taps is not None}
    others = tuple([guard for guard in guards if guard not in own])
    guarded = {name for guard in others for name in guard.index.terms}
    if guarded & (taken | {each.rows.name for each in both}):
        return None
    inner: dict[str, int] = {}
    each = 1
    free = [loop for loop in summed if loop.name not in taken | guarded]
    while loop := next((d for d in free if strides.get(d.name, 0) == each), None):
        free.remove(loop)
        inner[loop.name] = each
        each *= known(loop)
    planes = tuple([loop for loop in summed if loop.name not in taken | set(inner)])
    found = Band(across, down, planes, others, inner, each, most or most_rows(summed, of))
    return found if found.elements * of.bytes <= BAND_BYTES else None


def _along(
    rows: Loop, strides: Mapping[str, Size], guards: Sequence[Guard], summed: Sequence[Loop]
) -> Along | None:
    """Windows along the axis that a loop of rows goes along; None where they are no such.

    A window of one position makes rows the positions.
    """
    own = [guard for guard in guards if rows.name in guard.index.terms]
    far = strides.get(rows.name, 0)
    if not own:
        return Along(rows, 1, None, 1, far, None)
    terms = own[0].index.terms
    taps = [loop for loop in summed if loop.name in terms]
    step = terms[rows.name]
    if len(own) > 1 or len(terms) != 1 + len(taps) or not isinstance(step, int) or step < 1:
        return None
    if not taps:
        return Along(rows, 1, None, 1, far, own[0])
    apart, between = terms[taps[0].name], strides.get(taps[0].name, 0)
    if len(taps) > 1 or not isinstance(apart, int) or apart < 1:
        return None
    if apart == 1:
        position = between
    elif step == 1:
        position = far
    elif isinstance(far, int) and far % step == 0:
        position = far // step
    else:
        return None
    if position * step != far or position * apart != between:
        return None
    return Along(rows, step, taps[0], apart, position, own[0])
