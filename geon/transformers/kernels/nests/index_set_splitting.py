"""Index set splitting: replace guards by nests over regions in which each guard is constant.

Joins, padding, updates and gradients of slices select the argument of each element by guards. Where
guards depend on intervals of axes, the loops are split at the ends of these: outer axes into nests,
the innermost one into consecutive passes of a row, so that each row is still traversed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from ....op_graph.axes.affine import Quotient, Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ...sizes.limits import LONG_LOOP_TURNS, MAX_SEARCHED, SHORT_LOOP_TURNS
from ..analysis.index_boxes import Facts, IndexBox, Interval, guards_of, phases_of, points_of
from ..analysis.index_uses import Uses
from ..ir.nest import Fused, Nest
from ..ir.scalar_code import Apply, Load, Scalar, atoms, walk
from .inlining import OperandInliner
from .mixed_radix import divisions
from .nest_lowering import MIN_VECTOR_LOOP_BYTES, NestMaker, nest_over
from .reduction_splitting import (
    MAX_NODE_GROWTH,
    MAX_PIECES_NODES,
    MIN_ROW_ELEMENTS,
    with_row_pieces,
)
from .short_row_variants import with_flat_rows, with_short_rows, with_turned_loops
from .unrolled_reductions import is_straight

MAX_UNROLLED_ELEMENTS = SHORT_LOOP_TURNS  # of an innermost axis that is stored without a loop
# Minimum elements inside of an axis for iterations that cover several indices: loops over fewer of
# float32 are lengthened.
MIN_STRIDED_ELEMENTS = MIN_VECTOR_LOOP_BYTES // 4
MAX_THIN_BORDER_ELEMENTS = SHORT_LOOP_TURNS  # maximum elements of a border, in which guards stay
MIN_INTERVAL_ELEMENTS = LONG_LOOP_TURNS  # of an interval whose thin neighbours are borders
MAX_PIECES = MAX_SEARCHED  # maximum loops that a nest is split into
# The same as ``MAX_PIECES_NODES`` where elements have unrolled windows.
MAX_WINDOW_PIECES_NODES = 2 * MAX_PIECES_NODES
# The same as ``MIN_INTERVAL_ELEMENTS`` for windows that reach beyond their operand.
MIN_WINDOW_INTERVAL_ELEMENTS = SHORT_LOOP_TURNS


def make_nest(fused: Fused, operands: OperandInliner, alone: bool = True) -> Nest:
    """Return the loops of a fused kernel, split into regions if it joins values.

    With ``alone`` (not a step of a chain), short rows are put into vector lanes.
    """
    if is_straight(fused, operands):
        fused = replace(fused, rows=None, reductions=(), straight=fused.reductions)
    nest = nest_over(IndexBox(), Facts(known=list(operands.known)), fused, operands)
    if fused.rows is None and not fused.reductions:
        if any(guards_of(*stored_values(nest))):
            nest = _Splitter(fused, operands).apart(nest)
        if alone:
            nest = with_flat_rows(nest, fused, operands)
    if alone and fused.rows is not None and fused.reductions:
        nest = with_turned_loops(with_short_rows(nest, fused, operands), fused, operands)
        nest = with_row_pieces(nest, fused, operands)
    return with_operands(nest, tuple(operands.numbers))


def with_operands(nest: Nest, operands: tuple[Op, ...]) -> Nest:
    """Return the nest, its pieces and its short variant with other ``operands``."""
    pieces = tuple([with_operands(piece, operands) for piece in nest.pieces])
    short = None if nest.short is None else with_operands(nest.short, operands)
    return replace(nest, operands=operands, pieces=pieces, short=short)


def stored_values(nest: Nest) -> list[Scalar]:
    """Return the values that the passes of a nest store."""
    return [store.value for step in nest.passes for store in step.stores]


class _Splitter:
    def __init__(self, fused: Fused, operands: OperandInliner) -> None:
        self.fused, self.operands = fused, operands
        self.result = operands.results[0]
        self.order = operands.order(self.result)
        self.long: float = MIN_INTERVAL_ELEMENTS

    def apart(self, nest: Nest) -> Nest:
        """Return the nest with its pieces, if they are worth their code size."""
        size = self.result.axes.size
        if isinstance(size, int) and size < MIN_ROW_ELEMENTS:
            return nest
        enough = max(MAX_PIECES_NODES, MAX_NODE_GROWTH * count(nest))
        if not self.fused.straight:
            return self.pieces(nest, enough, MIN_INTERVAL_ELEMENTS) or nest
        return (
            self.pieces(nest, max(MAX_WINDOW_PIECES_NODES, enough), math.inf)
            or self.pieces(nest, max(MAX_WINDOW_PIECES_NODES, enough), MIN_WINDOW_INTERVAL_ELEMENTS)
            or nest
        )

    def pieces(self, nest: Nest, enough: int, long: float) -> Nest | None:
        """Return the nest with pieces of at most ``enough`` nodes, or None if there are none.

        Thin intervals next to intervals of ``long`` elements are borders, in which guards stay.
        """
        self.long = long
        # Split as many outer axes as the limits allow: all or none, where there are no borders.
        for first in range(len(self.order) if long < math.inf else 1):
            facts = Facts(known=list(self.operands.known))
            regions = self.regions(self.order[first:], facts)
            if regions == [IndexBox()]:
                return None
            if sum(max(len(region.cuts), 1) for region in regions) > MAX_PIECES:
                continue
            pieces = self.nests_over(regions, facts, enough)
            if pieces is not None:
                return replace(nest, pieces=pieces, holds=tuple(facts.assumed))
        return None

    def nests_over(
        self, regions: Iterable[IndexBox], facts: Facts, enough: int
    ) -> tuple[Nest, ...] | None:
        """Return a nest for each region, or None once they have more than ``enough`` nodes."""
        found: list[Nest] = []
        for region in regions:
            found.append(nest_over(region, facts, self.fused, self.operands))
            enough -= count(found[-1])
            if enough < 0:
                return None
        return tuple(found)

    def regions(self, names: tuple[str, ...], facts: Facts) -> list[IndexBox]:
        """Return the regions that result from splitting these axes, outermost first.

        A border along an outer axis is split along the innermost axis only.
        """
        found, borders = [IndexBox()], list[IndexBox]()
        for name in names[:-1]:
            parts = [part for region in found for part in self.cut(region, name, facts)]
            spans = [span for span in (part.of(name) for part in parts) if span is not None]
            found = [p for p in parts if not is_border(p.of(name), spans, self.long)]
            borders += [p for p in parts if is_border(p.of(name), spans, self.long)]
            if len(found) > MAX_PIECES:
                return found
        last = names[-1]
        if self.divides(last, facts):
            return [part for region in (*found, *borders) for part in self.cut(region, last, facts)]
        return [self.cut_rows(region, last, facts) for region in (*found, *borders)]

    def divides(self, name: str, facts: Facts) -> bool:
        """Return True if values are read at quotients of an axis, which is then iterated by digits.

        Its intervals then become separate nests, each with digits of its own.
        """
        if self.intervals(IndexBox(), name, facts)[1] > 1:
            return False  # each iteration covers all remainders
        maker = NestMaker(self.fused, self.operands, IndexBox(), facts, across=False)
        divided = Uses()
        for offset in Uses.of(maker.by_element()).offsets:
            for each in divisions(offset):
                if isinstance(each, Quotient):
                    divided.direct(each.of)
        return maker.space.name((name,)) in divided.values

    def cut(self, region: IndexBox, name: str, facts: Facts) -> list[IndexBox]:
        """Split a region into those in which the guards along an axis are decided."""
        intervals, phases = self.intervals(region, name, facts)
        found = with_borders(in_turns(intervals, phases, facts), self.long)
        if found == [Interval(0, self.result.axes[name].expression)]:
            return [region]
        return [IndexBox((*region.spans, (name, interval))) for interval in found]

    def cut_rows(self, region: IndexBox, name: str, facts: Facts) -> IndexBox:
        """Return a region whose rows are split; short rows of known length into single elements."""
        length = self.result.axes[name].expression
        found, phases = self.intervals(region, name, facts)
        if len(found) < 2 and phases == 1:
            return region
        if isinstance(length, int) and length <= MAX_UNROLLED_ELEMENTS:
            singles = tuple([Interval(k, 1) for k in range(length)])
            return replace(region, cuts=singles, unrolled=True)
        return replace(region, cuts=tuple(in_turns(found, phases, facts)))

    def intervals(self, region: IndexBox, name: str, facts: Facts) -> tuple[list[Interval], int]:
        """Return the intervals of an axis in which its guards are decided, and a period.

        The period is that of guards on remainders, in indices; 1 if there are none.
        """
        axis = self.result.axes[name]
        whole = [Interval(0, axis.expression)]
        if self.operands.extent(axis) != axis.expression:
            return whole, 1  # a block of the axis with unknown start
        if name not in self.chosen:
            return whole, 1
        maker = NestMaker(self.fused, self.operands, region, facts, across=False)
        nest = maker.by_element()
        variable = maker.space.name((name,))
        points: list[Size] = []
        phases = 1
        for guard in guards_of(*stored_values(nest)):
            points += points_of(guard, variable) or ()
            phases = math.lcm(phases, phases_of(guard, variable))
        found = whole
        if points:
            found = with_borders(facts.intervals(axis.expression, points), self.long)
        return found, phases if phases <= MAX_UNROLLED_ELEMENTS and self.unrolls(
            name, maker, nest
        ) else 1

    @cached_property
    def chosen(self) -> set[str]:
        """Return the axes that guards depend on."""
        facts = Facts(known=list(self.operands.known))
        maker = NestMaker(self.fused, self.operands, IndexBox(), facts, across=False)
        guards = guards_of(*stored_values(maker.by_element()))
        found = {atom for guard in guards for atom in atoms(guard.index)}
        return {name for name in self.order if maker.space.name((name,)) in found}

    def unrolls(self, name: str, maker: NestMaker, nest: Nest) -> bool:
        """Return True if an iteration along an axis may cover several indices, unrolled.

        Otherwise guards are buffered: for short loops inside, which are collapsed with it, and for
        elementary functions, as compilers do not vectorise interleaved results of them. Loads at
        quotients of an index are unrolled, because each phase then reads contiguous elements.
        """
        inner = self.order[self.order.index(name) + 1 :]
        if self.fused.straight:
            return True  # each index has windows of its own
        if inner:
            length = product(maker.space.extents[n] for n in inner)
            return not isinstance(length, int) or length >= MIN_STRIDED_ELEMENTS
        nodes = list(walk(*stored_values(nest)))
        offsets = [node.offset for node in nodes if isinstance(node, Load)]
        functions = any(isinstance(x, Apply) and x.row.cost == "expensive" for x in nodes)
        return not functions or any(True for offset in offsets for _ in divisions(offset))


def in_turns(intervals: list[Interval], phases: int, facts: Facts) -> list[Interval]:
    """Split intervals into loops of ``phases`` indices per iteration and their remainders.

    The intervals stay disjoint, so that neighbours can be joined.
    """
    found = []
    for interval in intervals:
        taken = with_phases(interval, phases, facts)
        rest = taken.rest
        if isinstance(rest.extent, int):
            rest = with_phases(rest, phases, facts)
        if rest.extent == 0:
            found.append(taken)
        else:
            found += [replace(taken, extent=taken.turns * taken.phases), rest]
    return found


def with_phases(interval: Interval, phases: int, facts: Facts) -> Interval:
    """Return the interval with ``phases`` indices per iteration, or all if it has fewer."""
    if phases == 1 or interval.extent == 0:
        return interval
    if isinstance(interval.extent, int) and interval.extent < phases:
        return replace(interval, phases=interval.extent)
    found = replace(interval, phases=phases)
    facts.note(found.rest.extent)  # a remainder is not negative
    return found


def is_thin(interval: Interval) -> bool:
    """Return True if an interval has at most ``MAX_THIN_BORDER_ELEMENTS`` elements."""
    return isinstance(interval.extent, int) and interval.extent <= MAX_THIN_BORDER_ELEMENTS


def is_border(interval: Interval | None, intervals: list[Interval], least: float) -> bool:
    """Return True if an interval is thin and another has at least ``least`` elements."""
    long = any(not isinstance(each.extent, int) or each.extent >= least for each in intervals)
    return long and interval is not None and is_thin(interval)


def with_borders(intervals: list[Interval], least: float) -> list[Interval]:
    """Join neighbouring thin intervals of one border."""
    found: list[Interval] = []
    for each in intervals:
        if found and is_border(each, intervals, least) and is_thin(found[-1]):
            both = Interval(found[-1].low, found[-1].extent + each.extent)
            if is_thin(both):
                found[-1] = both
                continue
        found.append(each)
    return found


def count(nest: Nest) -> int:
    """Return the number of scalar nodes of the stored values, summed over passes."""
    stores = [[store.value for store in step.stores] for step in nest.passes]
    return sum(1 for values in stores for _ in walk(*values))
