"""Index set splitting of reductions: decides guards along rows and along reduced axes.

Rows are split into nests. A row covers each interval in a pass of its own, and the states of these
passes are combined. A value that is constant in an interval needs no loop.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...sizes.limits import (
    LONG_LOOP_TURNS,
    MAX_CANDIDATES,
    MAX_FUNCTION_NODES,
    MAX_SEARCHED,
    SHORT_LOOP_TURNS,
)
from ..analysis.index_boxes import Facts, IndexBox, Interval, guards_of, points_of
from ..ir.nest import Fused, Nest, Pass
from ..ir.scalar_code import RandomBits, Scalar, walk
from .inlining import OperandInliner
from .nest_lowering import MIN_ADJACENT_ROWS, NestMaker, nest_over
from .short_row_variants import with_short_rows

# Minimum elements of a row, or a result, for which guards cost more than the loops of four pieces.
MIN_ROW_ELEMENTS = 4 * LONG_LOOP_TURNS
# Minimum extent of a split axis of a row, so that borders are not most of it.
MIN_AXIS_ELEMENTS = SHORT_LOOP_TURNS
MAX_PIECES = MAX_SEARCHED  # maximum nests that a nest is split into
MAX_PIECES_PER_PASS = MAX_CANDIDATES  # maximum passes that a pass is split into
MAX_PIECES_NODES = MAX_FUNCTION_NODES  # maximum scalar nodes of all pieces together,
MAX_NODE_GROWTH = 4  # or the maximum as a multiple of the nodes of the unsplit nest


def with_row_pieces(nest: Nest, fused: Fused, operands: OperandInliner) -> Nest:
    """Return a reducing nest with pieces in which guards are decided, if these are worth it."""
    values = element_values(nest)
    if nest.arrays or not any(guards_of(*values)):
        return nest
    if any(isinstance(node, RandomBits) for node in walk(*values)):
        return nest
    return _RowSplitter(nest, fused, operands).apart()


def element_values(nest: Nest) -> list[Scalar]:
    """Return the values that the passes of a nest compute per element."""
    return [value for step in nest.passes for value in step.computed]


def count(*nests: Nest) -> int:
    """Return the number of scalar nodes of nests."""
    return sum(len(list(walk(*element_values(nest)))) for nest in nests)


class _RowSplitter:
    def __init__(self, nest: Nest, fused: Fused, operands: OperandInliner) -> None:
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
        """Return the nest with its pieces, if they are worth their code size.

        All row axes are split, or else only those in vector lanes.
        """
        if not self.is_long(
            [axis.expression for axis in self.axes.values()],
            MIN_ROW_ELEMENTS * MIN_ADJACENT_ROWS,
        ):
            return self.nest
        for names in dict.fromkeys((self.rows, self.side_by_side)):
            self.facts = Facts(known=list(self.operands.known))
            regions = self.regions(names)
            if regions == [IndexBox()] or len(regions) > MAX_PIECES:
                continue
            pieces = tuple([self.piece(each) for each in regions])
            if count(*pieces) <= max(MAX_PIECES_NODES, MAX_NODE_GROWTH * count(self.nest)):
                made = replace(self.nest, pieces=pieces, holds=tuple(self.facts.assumed))
                if any(piece.short is not None for piece in pieces):
                    made = replace(made, short=None, shortness=())  # the pieces have variants
                return made
        return self.nest

    def piece(self, region: IndexBox) -> Nest:
        """Return the nest over a region, with its variant for short rows."""
        made = nest_over(region, self.facts, self.fused, self.operands)
        return with_short_rows(made, self.fused, self.operands, region)

    def regions(self, names: tuple[str, ...]) -> list[IndexBox]:
        """Return the regions that result from splitting these row axes, with their boxes."""
        found = [IndexBox()]
        for name in names:
            found = [part for region in found for part in self.cut(region, name)]
            if len(found) > MAX_PIECES:
                return found
        inner = self.inner()
        if not inner or not self.is_long(
            [self.axes[n].expression for n in inner], MIN_ROW_ELEMENTS
        ):
            return found
        return [replace(region, boxes=self.boxes(region, inner)) for region in found]

    def inner(self) -> tuple[str, ...]:
        """Return the axes that all passes iterate over; () if they differ or are digits."""
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
        """Return True if the product of extents is, or may be if open, at least ``least``."""
        size = product(extents)
        return not isinstance(size, int) or size >= least

    def cut(self, region: IndexBox, name: str) -> list[IndexBox]:
        """Split a region into those in which the guards along a row axis are decided."""
        least = MIN_ADJACENT_ROWS if name in self.side_by_side else 0
        if name not in self.axes or not self.is_long([self.axes[name].expression], least):
            return [region]
        found = self.intervals(region, name, least)
        if len(found) < 2:
            return [region]
        return [IndexBox((*region.spans, (name, interval))) for interval in found]

    def boxes(
        self, region: IndexBox, inner: tuple[str, ...]
    ) -> tuple[tuple[tuple[str, Interval], ...], ...]:
        """Return the boxes of a row in which the guards along it are decided, or ()."""
        cuts = []
        for name in inner:
            found = self.intervals(region, name, MIN_AXIS_ELEMENTS)
            if len(found) > 1:
                cuts.append([(name, interval) for interval in found])
        boxes = tuple(itertools.product(*cuts)) if cuts else ()
        if not boxes or len(boxes) > MAX_PIECES_PER_PASS:
            return ()
        size = product([self.axes[name].expression for name in inner])
        if not isinstance(size, int):
            self.facts.assume(size - MIN_ROW_ELEMENTS)
        return boxes

    def intervals(self, region: IndexBox, name: str, least: int) -> list[Interval]:
        """Return the intervals of an axis in which the guards along it are decided."""
        axis = self.axes[name]
        whole = [Interval(0, axis.expression)]
        if self.operands.extent(axis) != axis.expression:
            return whole  # a block of the axis with unknown start
        maker = NestMaker(self.fused, self.operands, region, self.facts, across=False)
        nest = maker.build([(n,) for n in maker.row_order()], None, {})
        variable = maker.space.name((name,))
        points: list[Size] = []
        for guard in guards_of(*element_values(nest)):
            points += points_of(guard, variable) or ()
        if not points:
            return whole
        if least and not isinstance(axis.expression, int):
            self.facts.assume(axis.expression - least)
        return self.facts.intervals(axis.expression, points)
