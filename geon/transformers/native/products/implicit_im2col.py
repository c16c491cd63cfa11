"""Implicit im2col: overlapping windows that register tiles read in place or in a padded band.

A packed block has each element once for every window that contains it. A band has it once, with
zeros for the padding. Each row is an offset in the band, and its summed indices are contiguous runs
at the same offsets from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product as combinations

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import InRange
from ...kernels.ir.nest import Loop
from ...kernels.products.windows import overlapping_windows, window_loops
from ...sizes.product_blocks import (
    MAX_BAND_BYTES,
    MAX_BAND_ROWS,
    MAX_WINDOW_RUNS,
    MIN_WINDOW_RUN_ELEMENTS,
    ROWS_PER_GROUP,
    Shape,
)


@dataclass(frozen=True)
class WindowAxis:
    """Windows along one axis.

    `rows` is the loop over windows, with a stride of `step` positions. `taps` is the loop inside
    the window, with a dilation of `apart` positions; None for a single tap. `far` is the memory
    stride between positions, in elements. `guard` holds for positions inside the operand; None if
    there is no padding.
    """

    rows: Loop
    step: int
    taps: Loop | None
    apart: int
    far: Size
    guard: InRange | None

    @property
    def span(self) -> int:
        """Return the number of positions that one window spans."""
        return 1 if self.taps is None else (known_extent(self.taps) - 1) * self.apart + 1


@dataclass(frozen=True)
class Band:
    """The padded copy of the elements that blocks of up to `most` rows read.

    `across` are the windows along a line of positions, `down` those over several lines, or None.
    `planes` are the loops over planes of each line. `others` are guards that hold for a whole
    plane. `inner` are the strides of the loops over contiguous elements of a position. `each` is
    the number of these elements.
    """

    across: WindowAxis
    down: WindowAxis | None
    planes: tuple[Loop, ...]
    others: tuple[InRange, ...]
    inner: Mapping[str, int]
    each: int
    most: int

    @property
    def count(self) -> int:
        """Return the number of planes."""
        return depth_of(self.planes)

    @property
    def height(self) -> int:
        """Return the number of lines that one window spans."""
        return self.down.span if self.down is not None else 1

    def positions(self, length: int) -> int:
        """Return the positions of a line that serves `length` neighbouring rows."""
        return (min(length, self.most) - 1) * self.across.step + self.across.span

    @property
    def elements(self) -> int:
        """Return the maximum number of elements of a band, for any open length."""
        length = self.across.rows.extent
        lengths = [length] if isinstance(length, int) else range(1, self.most + 1)
        return max(self.lines(n) * self.positions(n) for n in lengths) * self.count * self.each

    def lines(self, length: int) -> int:
        """Return the maximum number of lines of a band if lines serve `length` rows each.

        The lines of the first run, of the next one, and of the first one after each end of the axis
        `down` are not shared with the previous run.
        """
        runs = (self.most - 2) // length + 2
        if self.down is None:
            return runs
        below = self.down.rows.extent
        alone = min(runs, 3 + runs // below) if isinstance(below, int) else runs
        shared = min(self.down.step, self.height)
        return alone * self.height + (runs - alone) * shared

    @property
    def known_steps(self) -> dict[str, int | None]:
        """Return the stride of each summed loop in the band, None where it depends on its lines."""
        found: dict[str, int | None] = dict(self.inner)
        found |= dict.fromkeys(loop.name for loop in self.planes)
        if self.down is not None and self.down.taps is not None:
            found[self.down.taps.name] = None
        if self.across.taps is not None:
            found[self.across.taps.name] = self.across.apart * self.each
        return found

    def steps(self, line: str) -> dict[str, str]:
        """Return the stride of each summed loop in the band, as C; `line` is the stride between
        lines.
        """
        found = {name: str(step) for name, step in self.inner.items()}
        inner = 1
        for loop in reversed(self.planes):
            found[loop.name] = f"{inner} * ({line} / {self.count})"
            inner *= known_extent(loop)
        if self.down is not None and self.down.taps is not None:
            found[self.down.taps.name] = f"{self.down.apart} * {line}"
        if self.across.taps is not None:
            found[self.across.taps.name] = str(self.across.apart * self.each)
        return found


@dataclass(frozen=True)
class Windows:
    """Windows that tiles read: in a padded ``band``, or in place if that is None.

    The elements of a window are ``runs`` contiguous runs of ``run`` elements. Vectors may read up
    to ``beyond`` elements past the end of a band.
    """

    band: Band | None
    runs: int
    run: int
    beyond: int = 0

    @property
    def elements(self) -> int:
        """Return the maximum number of elements of a band that is read, 0 without a band."""
        return 0 if self.band is None else self.band.elements + self.beyond

    @property
    def most(self) -> int:
        """Return the maximum number of windows at a time."""
        return MAX_BAND_ROWS if self.band is None else self.band.most


def known_extent(loop: Loop) -> int:
    """Return the extent of a loop over taps, which is known."""
    assert isinstance(loop.extent, int)
    return loop.extent


def are_known(loops: Sequence[Loop]) -> bool:
    """Return True if loops over taps have known, nonzero extents."""
    return all(isinstance(loop.extent, int) and loop.extent > 0 for loop in loops)


def depth_of(loops: Sequence[Loop]) -> int:
    """Return the product of the extents of loops over taps."""
    return math.prod(map(known_extent, loops))


def contiguous_run(loops: Sequence[Loop], steps: Mapping[str, Size | None]) -> int:
    """Return the elements of a contiguous run: those of the innermost loops that adjoin.

    ``steps`` are the strides of loops, None for one that depends on a band's lines.
    """
    run = 1
    for loop in reversed(loops):
        if steps[loop.name] != run:
            break
        run *= known_extent(loop)
    return run


def run_offsets(loops: Sequence[Loop], steps: Mapping[str, str], run: int) -> list[str]:
    """Return the offsets of contiguous runs of ``run`` elements in row-major order, as C."""
    outer, inside = list(loops), 1
    while inside < run:
        inside *= known_extent(outer.pop())
    offsets = [
        " + ".join(
            f"{index} * ({steps[loop.name]})"
            for index, loop in zip(place, outer, strict=True)
            if index
        )
        for place in combinations(*(range(known_extent(loop)) for loop in outer))
    ]
    return [offset or "0" for offset in offsets]


def has_long_runs(depth: int, run: int) -> bool:
    """Return True if runs of ``depth`` summed indices are few and long enough for register tiles,
    which restart at each run.
    """
    return run >= min(MIN_WINDOW_RUN_ELEMENTS, depth) and depth <= run * MAX_WINDOW_RUNS


def vector_elements(run: int, of: Shape) -> int:
    """Return the elements of the whole vectors that cover a run."""
    return -(-run // of.vector) * of.vector


def overlap(strides: Mapping[str, Size], rows: Sequence[Loop], summed: Sequence[Loop]) -> bool:
    """Return True if windows without padding share elements of known, larger strides than one."""
    far, near = (
        [(loop, step) for loop in loops if isinstance(step := strides.get(loop.name, 0), int)]
        for loops in (rows, summed)
    )
    return any(
        far_step > 0 and near_step > 1 and overlapping_windows(row, tap, strides) is not None
        for row, far_step in far
        for tap, near_step in near
    )


def find_band(
    strides: Mapping[str, Size],
    guards: Sequence[InRange],
    rows: Sequence[Loop],
    summed: Sequence[Loop],
    of: Shape,
    most: int | None = None,
) -> Band | None:
    """Return the band of an operand with these strides and guards; None if it is impossible or too
    large.

    The order of `summed` does not matter. If columns are windows, `rows` are the summed indices and
    `summed` the columns. `most` is the number of rows of a block, by default `MAX_BAND_ROWS`, or
    `ROWS_PER_GROUP` if the band of these would be too large.
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
        each *= known_extent(loop)
    planes = tuple([loop for loop in summed if loop.name not in taken | set(inner)])
    for rows_at_once in (MAX_BAND_ROWS, ROWS_PER_GROUP) if most is None else (most,):
        found = Band(across, down, planes, others, inner, each, rows_at_once)
        if found.elements * of.bytes <= MAX_BAND_BYTES:
            return found
    return None


def _along(
    rows: Loop, strides: Mapping[str, Size], guards: Sequence[InRange], summed: Sequence[Loop]
) -> WindowAxis | None:
    """Return the windows along the axis of a loop over rows, or None if its guards do not fit.

    Without taps, rows themselves are the positions.
    """
    own = [guard for guard in guards if rows.name in guard.index.terms]
    far = strides.get(rows.name, 0)
    if not own:
        return WindowAxis(rows, 1, None, 1, far, None)
    loops = window_loops(own[0].index, [rows], summed)
    if len(own) > 1 or loops is None or loops.stride < 1:
        return None
    if loops.summed is None:
        return WindowAxis(rows, 1, None, 1, far, own[0])
    position = loops.position_stride(strides)
    if loops.dilation < 1 or position is None:
        return None
    return WindowAxis(rows, loops.stride, loops.summed, loops.dilation, position, own[0])
