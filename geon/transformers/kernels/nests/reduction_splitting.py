"""Pieces of a nest that reduces: choices along its rows are decided, and along what each goes over.

Rows are cut into nests. A row goes over each interval in a pass of its own, and what the passes
find is combined; what is one value all over an interval needs no loop.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ..analysis.index_boxes import Facts, Interval, Region, guards_of, points_of
from ..ir.nest import Fused, Nest, Pass
from ..ir.scalar_code import RandomBits, Scalar, walk
from .inlining import Operands
from .nest_lowering import NestMaker, nest_over
from .short_row_variants import with_short_rows

LONG = 64  # rows side by side,
MANY = 256  # or elements of a row, from which on choices cost more than other loops,
FEW = 8  # and indices of an axis of it, so that borders are not most of it
PIECES = 12  # nests that one is taken apart into
PASSES = 6  # that one pass is taken apart into
TEXT = 512  # nodes of scalar code that pieces may have together,
TIMES = 6  # or how many times those of the whole


def with_row_pieces(nest: Nest, fused: Fused, operands: Operands) -> Nest:
    """A nest that reduces with pieces in which choices are decided, where these are worth it."""
    values = computed(nest)
    if nest.arrays or not any(guards_of(*values)):
        return nest
    if any(isinstance(node, RandomBits) for node in walk(*values)):
        return nest
    return _RowSplitter(nest, fused, operands).apart()


def computed(nest: Nest) -> list[Scalar]:
    """What the passes of a nest compute of each element."""
    return [value for step in nest.passes for value in step.computed]


def count(*nests: Nest) -> int:
    """The nodes of the scalar code of nests."""
    return sum(len(list(walk(*computed(nest)))) for nest in nests)


class _RowSplitter:
    def __init__(self, nest: Nest, fused: Fused, operands: Operands) -> None:
        self.nest, self.fused, self.operands = nest, fused, operands
        self.axes = {
            axis.name: axis
            for op in (*operands.results, *(arg for r in fused.reductions for arg in r.args))
            for axis in op.axes
        }
        self.side_by_side = () if nest.across is None else nest.across.axes
        self.rows = (*(name for loop in nest.rows for name in loop.axes), *self.side_by_side)
        self.facts = Facts()

    def apart(self) -> Nest:
        """The nest with its pieces, where they are worth their text: with all rows cut, or those
        side by side alone.
        """
        if not self.is_long([axis.expression for axis in self.axes.values()], MANY * LONG):
            return self.nest
        for names in dict.fromkeys((self.rows, self.side_by_side)):
            self.facts = Facts(known=list(self.operands.known))
            regions = self.regions(names)
            if regions == [Region()] or len(regions) > PIECES:
                continue
            pieces = tuple([self.piece(each) for each in regions])
            if count(*pieces) <= max(TEXT, TIMES * count(self.nest)):
                made = replace(self.nest, pieces=pieces, holds=tuple(self.facts.assumed))
                if any(piece.short is not None for piece in pieces):
                    made = replace(made, short=None, shortness=())  # short rows are cut, too
                return made
        return self.nest

    def piece(self, region: Region) -> Nest:
        """The nest over a region, and what it is where its rows are short."""
        made = nest_over(region, self.facts, self.fused, self.operands)
        return with_short_rows(made, self.fused, self.operands, region)

    def regions(self, names: tuple[str, ...]) -> list[Region]:
        """The regions that cutting these axes of rows makes, each with the boxes of its passes."""
        found = [Region()]
        for name in names:
            found = [part for region in found for part in self.cut(region, name)]
            if len(found) > PIECES:
                return found
        inner = self.inner()
        if not inner or not self.is_long([self.axes[n].expression for n in inner], MANY):
            return found
        return [replace(region, boxes=self.boxes(region, inner)) for region in found]

    def inner(self) -> tuple[str, ...]:
        """The axes that all passes go over; none where they go over different ones, or digits."""
        shapes = {
            tuple(sorted(name for loop in step.loops for name in loop.axes))
            for step in (*self.nest.steps, *self.nest.ending)
            if isinstance(step, Pass)
        }
        if len(shapes) != 1:
            return ()
        (names,) = shapes
        return names if all(name in self.axes for name in names) else ()

    def is_long(self, extents: list[Size], least: int) -> bool:
        """Whether there are so many indices; of open lengths, whether there may be."""
        size = product(extents)
        return not isinstance(size, int) or size >= least

    def cut(self, region: Region, name: str) -> list[Region]:
        """A region as those in which choices along an axis of rows are decided."""
        least = LONG if name in self.side_by_side else 0
        if name not in self.axes or not self.is_long([self.axes[name].expression], least):
            return [region]
        found = self.intervals(region, name, least)
        if len(found) < 2:
            return [region]
        return [Region((*region.spans, (name, interval))) for interval in found]

    def boxes(
        self, region: Region, inner: tuple[str, ...]
    ) -> tuple[tuple[tuple[str, Interval], ...], ...]:
        """The boxes of a row in which choices along it are decided; none where it stays whole."""
        cuts = []
        for name in inner:
            found = self.intervals(region, name, FEW)
            if len(found) > 1:
                cuts.append([(name, interval) for interval in found])
        boxes = tuple(itertools.product(*cuts)) if cuts else ()
        if not boxes or len(boxes) > PASSES:
            return ()
        size = product([self.axes[name].expression for name in inner])
        if not isinstance(size, int):
            self.facts.assume(size - MANY)
        return boxes

    def intervals(self, region: Region, name: str, least: int) -> list[Interval]:
        """The intervals of an axis on which what is chosen along it is decided."""
        axis = self.axes[name]
        whole = [Interval(0, axis.expression)]
        if self.operands.extent(axis) != axis.expression:
            return whole  # a part of the axis, which begins anywhere
        maker = NestMaker(self.fused, self.operands, region, self.facts, across=False)
        nest = maker.build([(n,) for n in maker.row_order()], None, {})
        variable = maker.space.name((name,))
        points: list[Size] = []
        for guard in guards_of(*computed(nest)):
            points += points_of(guard, variable) or ()
        if not points:
            return whole
        if least and not isinstance(axis.expression, int):
            self.facts.assume(axis.expression - least)
        return self.facts.intervals(axis.expression, points)
