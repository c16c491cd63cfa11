"""Variants of nests for short rows; a call selects one at run time if lengths are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...sizes.limits import AVX512_BYTES, LONG_LOOP_TURNS
from ..analysis.index_boxes import Facts, IndexBox
from ..analysis.index_uses import divides_rows
from ..ir.nest import Fused, Loop, Nest, Pass
from ..ir.scalar_code import Apply, RandomBits, indices, walk
from .inlining import OperandInliner
from .nest_lowering import MAX_SHORT_ROW_ELEMENTS, MIN_ADJACENT_ROWS, NestMaker

# Of a row: one that fills a few vectors is as fast by itself.
MAX_COLLAPSED_ROW_BYTES = AVX512_BYTES
MIN_COLLAPSED_ROWS = LONG_LOOP_TURNS // 2  # of rows that are collapsed, of two elements or more
# The same as ``MAX_SHORT_ROW_ELEMENTS`` for interchanged loops with expensive functions.
MAX_COSTLY_ROW_ELEMENTS = LONG_LOOP_TURNS


def with_short_rows(
    nest: Nest, fused: Fused, operands: OperandInliner, region: IndexBox | None = None
) -> Nest:
    """Return a nest that reduces open rows, with a variant that puts short rows into lanes.

    It covers ``region``, or everything. All of its passes must have the same number of elements.
    """
    region = region or IndexBox()
    size = reduced_size(nest)
    if isinstance(size, int) or nest.across is not None or not nest.rows:
        return nest
    if region.boxes or not (nest.steps and isinstance(nest.steps[0], Pass)):
        return nest
    for step in nest.passes:
        drawn = any(isinstance(node, RandomBits) for node in walk(*step.computed))
        alike = product(loop.extent for loop in step.loops) == size
        if drawn or not alike:
            return nest
    facts = Facts(known=list(operands.known))
    short = NestMaker(fused, operands, region, facts, across=True, short=True).make()
    if short.across is None or short.arrays or divides_rows(short):
        return nest
    sizes = (size - 1, MAX_SHORT_ROW_ELEMENTS - size, short.across.extent - MIN_ADJACENT_ROWS)
    if not can_be(sizes):
        return nest
    shortness = tuple([size for size in sizes if not isinstance(size, int)])
    return replace(nest, short=replace(short, most=MAX_SHORT_ROW_ELEMENTS), shortness=shortness)


def with_turned_loops(nest: Nest, fused: Fused, operands: OperandInliner) -> Nest:
    """Return a full reduction with a variant whose two innermost loops are interchanged.

    The variant is for an innermost loop of open length that is too short for vectors. Reducers with
    state and random draws depend on the order of elements and have no variant.
    """
    reduced = [each for step in nest.passes for each in step.reductions]
    if nest.rows or nest.pieces or not reduced or any(each.folds is None for each in reduced):
        return nest
    if nest.across is not None or not all(ends_open(step.loops) for step in nest.passes):
        return nest
    computed = [value for step in nest.passes for value in step.computed]
    if any(isinstance(node, RandomBits) for node in walk(*computed)):
        return nest
    facts = Facts(known=list(operands.known))
    turned = NestMaker(fused, operands, IndexBox(), facts, across=False).across_last()
    if turned is None:
        return nest
    costly = any(isinstance(x, Apply) and x.row.cost == "expensive" for x in walk(*computed))
    *_, short, long = turned.passes[0].loops
    most = MAX_COSTLY_ROW_ELEMENTS if costly else MAX_SHORT_ROW_ELEMENTS
    sizes = (short.extent - 1, most - short.extent, long.extent - MIN_ADJACENT_ROWS)
    if not can_be(sizes):
        return nest
    shortness = tuple([size for size in sizes if not isinstance(size, int)])
    return replace(nest, short=turned, shortness=shortness)


def can_be(sizes: Sequence[Size]) -> bool:
    """Return True unless the sum of two sizes shows that not all sizes can be >= 0 at once.

    For example, the rows of a square matrix are not both short and many.
    """
    sums = [x + y for x, y in combinations((0, *sizes), 2)]
    return not any(isinstance(each, int) and each < 0 for each in sums)


def ends_open(loops: Sequence[Loop]) -> bool:
    """Return True if there are several loops and the innermost has an open length."""
    return len(loops) > 1 and not isinstance(loops[-1].extent, int)


def with_flat_rows(nest: Nest, fused: Fused, operands: OperandInliner) -> Nest:
    """Return a nest that only stores, with a variant that collapses short rows of open length.

    A nest with pieces has none. The variant computes guards for each element, which pieces do
    without: concatenations of rows of 2 to 16 elements take 0.15 to 0.6 of the time in pieces.
    """
    if nest.pieces or goes_straight(nest):
        return nest
    facts = Facts(known=list(operands.known))
    found = NestMaker(fused, operands, IndexBox(), facts, across=False).flat_rows()
    if found is None:
        return nest
    flat, row, rows = found
    most = MAX_COLLAPSED_ROW_BYTES // max(x.dtype.itemsize for x in flat.passes[0].stores)
    sizes = (row - 1, most - row, rows - MIN_COLLAPSED_ROWS)
    if not can_be(sizes):
        return nest
    shortness = tuple([size for size in sizes if not isinstance(size, int)])
    return replace(nest, short=replace(flat, most=most), shortness=shortness)


def goes_straight(nest: Nest) -> bool:
    """Return True if a nest is one loop without divisions or computed offsets."""
    if nest.rows or not is_plain(nest):
        return False
    stores = nest.passes[0].stores
    found = [store.offset for store in stores]
    for node in walk(*[store.value for store in stores]):
        found += indices(node)
    return all(isinstance(atom, str) for index in found for atom in index.terms)


def is_plain(nest: Nest) -> bool:
    """Return True if a nest is one pass with one loop, without pieces or vector lanes of rows."""
    alone = not nest.pieces and nest.across is None and len(nest.steps) == 1
    return alone and len(nest.passes) == 1 and len(nest.passes[0].loops) == 1


def reduced_size(nest: Nest) -> Size:
    """Return the number of elements of a row that the first pass of a nest reduces."""
    return product(loop.extent for step in nest.passes[:1] for loop in step.loops)
