"""Lowering of fused kernels to loop nests: the choice of row loops, merged loops and vector lanes.

A nest iterates over rows in parallel. For each row it runs one or more passes: loops that reduce,
store, or both. Values that a later pass needs are scalars of the row, stored or kept elements, or
recomputed. An update of a part of a value is a nest over the part that stores into the whole.
"""

from __future__ import annotations

from dataclasses import replace

from ....op_graph.axes.affine import Size, variable
from ....op_graph.axes.lengths import exact_quotient, product
from ....op_graph.op_graph import Op
from ....op_graph.rows.slicing import part_index
from ...sizes.limits import AVX2_BYTES, AVX512_BYTES, LONG_LOOP_TURNS
from ..analysis.index_boxes import Facts, IndexBox
from ..analysis.index_uses import Uses, computes, divides_rows
from ..ir.nest import Fill, Fused, Loop, Nest, Pass, Store
from ..ir.scalar_code import Apply, Select, walk
from .buffered_loads import chooses_in_place
from .inlining import Elements, OperandInliner
from .iteration_space import Groups, has_computed_position
from .nest_builder import NestBuilder
from .nest_outputs import Item, loop_order


def make_update(op: Op, operands: OperandInliner) -> Nest:
    """Return the loops of an update: they store the new part; a fill copies the rest if needed."""
    value = op.args[1]
    elements = Elements(operands)
    loops = tuple([
        Loop(f"i_{k}", (axis.name,), axis.expression) for k, axis in enumerate(value.axes)
    ])  # fmt: skip
    index = {axis.name: variable(f"i_{k}") for k, axis in enumerate(value.axes)}
    whole, base = operands.number(op), operands.number(operands.base[op.args[0]])
    read = elements.value(value, index)
    offset = operands.offset(op, elements.resolved(op, part_index(op, index)))
    store = Store(whole, offset, read, op.dtype)
    step = Pass(loops[-1:], stores=(store,))
    fill = Fill(whole, base)
    return Nest(loops[:-1], None, (step,), (), (), tuple(operands.numbers), fill)


# Of a row for rows in vector lanes: it fills no vector.
MAX_SHORT_ROW_ELEMENTS = AVX512_BYTES // 4 - 1
MIN_ADJACENT_ROWS = LONG_LOOP_TURNS  # minimum extent of the axis in vector lanes
# Bytes that a loop must store, lest its scalar remainder dominates.
MIN_VECTOR_LOOP_BYTES = 2 * AVX512_BYTES
MIN_COPIED_ROW_ELEMENTS = 5  # elements up to which copying a row is slower than buffering it


def nest_over(region: IndexBox, facts: Facts, fused: Fused, operands: OperandInliner) -> Nest:
    """Return the loops of a fused kernel over a region of its results.

    Contiguous rows are put into vector lanes, unless a row needs a division or a computed position
    of its own, which does not vectorise.
    """
    nest = NestMaker(fused, operands, region, facts, across=True).make()
    if nest.across is not None and divides_rows(nest):
        nest = NestMaker(fused, operands, region, facts, across=False).make()
    return nest


class NestMaker(NestBuilder):
    """Chooses the loops of one kernel: rows, merged loops and vector lanes.

    With ``across``, contiguous rows may be put into vector lanes; with ``short``, those of open
    length too.
    """

    def __init__(
        self,
        fused: Fused,
        operands: OperandInliner,
        region: IndexBox,
        facts: Facts,
        across: bool,
        short: bool = False,
    ) -> None:
        super().__init__(fused, operands, region, facts)
        self.wants_across, self.takes_short = across, short

    def make(self) -> Nest:
        """Return the nest, with neighbouring loops merged where all offsets allow it."""
        if self.rows is None:
            return self.map_nest()
        nest = self.row_nest()
        if self.reductions and self.take_apart(Uses.of(nest)):
            self.items = [replace(i, inner=self.space.divided(i.inner)) for i in self.items]
            nest = self.row_nest()
        return nest

    def row_nest(self) -> Nest:
        """Return passes for each row, with neighbouring loops merged where all offsets allow it."""
        order = self.row_order()
        across = None
        reads: tuple[str, ...] = ()
        if self.reductions:
            reads = self.space.divided(self.several(loop_order(self.reductions[0], self.operands)))
        if self.wants_across and reads:
            across = reads[-1] if reads[-1] in order else self.beside(order)
        lanes = None if across is None else self.adjoining(order, across)
        rows: Groups = [(n,) for n in order if lanes is None or n not in lanes]
        nest = self.build(rows, lanes, {})
        merged = self.merged_inner(nest)
        made = self.build(rows, lanes, merged) if merged else nest
        if merged and any(map(chooses_in_place, made.passes)):
            merged = self.merged_inner(nest, longer=False)
            made = self.build(rows, lanes, merged) if merged else nest
        return made

    def adjoining(self, order: list[str], across: str) -> tuple[str, ...]:
        """Return the row axes that merge with the axis in vector lanes.

        With several passes it is that axis alone, because the matching of attention expects these
        loops.
        """
        nest = self.build([(n,) for n in order], None, {}) if len(order) > 1 else None
        if nest is None or len(nest.passes) > 1:
            return (across,)
        groups = self.space.merged(order, Uses.of(nest))
        return next(group for group in groups if across in group)

    def beside(self, order: list[str]) -> str | None:
        """Return the axis along which short rows are in vector lanes; None if they are long."""
        inner = {n for item in self.items if item.reduces for n in item.inner}
        size = product(self.space.extents[n] for n in inner)
        if not (0 < size <= MAX_SHORT_ROW_ELEMENTS if isinstance(size, int) else self.takes_short):
            return None
        for name in reversed(order):
            extent = self.space.extents[name]
            if not isinstance(extent, int) or extent >= MIN_ADJACENT_ROWS:
                return name
        return None

    def row_order(self) -> list[str]:
        """Return the axes of the rows, in memory order."""
        if self.reductions:
            order = loop_order(self.reductions[0], self.operands)
        else:
            order = self.operands.order(self.results[0])
        rows = self.rows or frozenset()
        return list(self.space.divided([n for n in order if n in rows]))

    def by_element(self) -> Nest:
        """Return a nest of one pass with a loop for each axis."""
        self.rows = frozenset()
        self.go_over(self.walked())
        return self.build([], None, {})

    def go_over(self, inner: tuple[str, ...]) -> None:
        """Store all results in one pass over these axes."""
        self.items = [Item(i.op, False, 0, inner) for i in self.items]

    def walked(self) -> tuple[str, ...]:
        """Return the axes that have loops, in memory order."""
        order = self.operands.order(self.results[0])
        if self.region.unrolled:
            return self.several(order[:-1])
        return self.space.divided(self.several(order))

    def take_apart(self, uses: Uses) -> bool:
        """Iterate divided axes by their digits; return False if there are none."""
        if self.region.cuts or self.region.boxes:
            return False
        if any(phases > 1 for phases in self.phases.values()):
            return False
        names = dict.fromkeys(n for item in self.items for n in item.inner)
        order = [n for n in self.space.extents if n in names or n in (self.rows or ())]
        return self.space.divide([n for n in order if n not in self.blocks], uses)

    def map_nest(self) -> Nest:
        """Return one pass over all axes: a single loop if memory allows, else with row loops."""
        order = self.walked()
        if not order:
            return self.by_element()
        nest = self.by_element()
        uses = Uses.of(nest)
        if self.take_apart(uses):
            order = self.walked()
            nest = self.by_element()
            uses = Uses.of(nest)
        if len(order) == 1:
            return nest
        groups = self.space.merged(order, uses)
        if len(groups) == 1:
            self.go_over(order)
            return self.build([], None, {order: groups})
        inner, (across, nearer) = groups[-1], self.space.across(order, uses)
        longer = self.space.lengthened(groups, uses, self.enough(nest))
        row = product(self.space.extents[n] for n in inner)
        few = isinstance(row, int) and row <= self.collapsed
        short = few and len(longer) < len(groups) and not self.fills_vectors(inner, nest)
        if across is not None and across not in inner and self.wants_across and not short:
            self.go_over(inner)
            rows = [n for group in groups[:-1] for n in group]
            nearer |= set(rows[rows.index(across) + 1 :])
            around = [n for n in rows if n != across and n not in nearer]
            inside = [n for n in rows if n in nearer]
            loops: Groups = [(n,) for n in (*around, *inside)]
            return self.build(loops, (across,), {inner: [inner]})
        if self.fills_vectors(inner, nest):
            return self.with_groups(groups)
        made = self.with_groups(longer)
        if len(longer) < len(groups) and any(map(chooses_in_place, made.passes)):
            return self.with_groups(groups)
        return made

    def with_groups(self, groups: Groups) -> Nest:
        """Return one pass over the last group, with row loops over the others."""
        self.go_over(groups[-1])
        return self.build(groups[:-1], None, {groups[-1]: [groups[-1]]})

    def flat_rows(self) -> tuple[Nest, Size, Size] | None:
        """Return one pass over the elements of many rows of open length in one loop.

        Also return the length of a row and the number of rows in the loop. Return None if all axes
        merge into one loop, or the rows are not adjacent in the results.
        """
        order = self.walked()
        uses = Uses.of(self.by_element())
        if self.take_apart(uses):
            order = self.walked()
            uses = Uses.of(self.by_element())
        if len(order) < 2:
            return None
        *rows, inner = self.space.merged(order, uses)
        row = product(self.space.extents[name] for name in inner)
        if not rows or has_computed_position(uses) or isinstance(row, int):
            return None
        if not self.space.adjoin(rows[-1][-1], inner[0], uses.needed, uses.places):
            return None
        flat = (*rows.pop(), *inner)
        self.go_over(flat)
        nest = self.build(rows, None, {flat: [flat]})
        count = exact_quotient(nest.passes[0].loops[0].extent, row)
        return None if count is None else (nest, row, count)

    def fills_vectors(self, inner: tuple[str, ...], nest: Nest) -> bool:
        """Return True if the innermost loop consists of whole vectors and does little but copy.

        Values that are constant in it then stay in registers; a longer loop would have to buffer
        them.
        """
        length = product(self.space.extents[n] for n in inner)
        size = min(op.dtype.itemsize for op in self.results)
        if not isinstance(length, int) or length * size % AVX2_BYTES or not computes(nest):
            return False
        stores = [store.value for step in nest.passes for store in step.stores]
        return not any(
            isinstance(x, Select) or (isinstance(x, Apply) and x.row.cost == "expensive")
            for x in walk(*stores)
        )

    def enough(self, nest: Nest) -> int:
        """Return the minimum number of iterations of an innermost loop that is not lengthened.

        That is two vectors of the narrowest elements; for copies, the count below which buffering
        is slower. It is 0 where the loop is split.
        """
        if self.region.cuts or self.region.boxes:
            return 0
        if not computes(nest):
            return MIN_COPIED_ROW_ELEMENTS
        return MIN_VECTOR_LOOP_BYTES // min(op.dtype.itemsize for op in self.results)

    def across_last(self) -> Nest | None:
        """Return a nest without rows whose two innermost loops are interchanged, or None.

        It is for an innermost loop of open length, which may be short.
        """
        whole = self.row_nest()
        if whole.rows or whole.across is not None or whole.arrays:
            return None
        swapped: dict[tuple[str, ...], Groups] = {}
        for step in whole.passes:
            *around, last = [loop.axes for loop in step.loops] or [()]
            if not around or isinstance(step.loops[-1].extent, int):
                return None
            inner = tuple([name for axes in (*around, last) for name in axes])
            swapped[inner] = [*around[:-1], last, around[-1]]
        if not swapped:
            return None
        made = self.build([], None, swapped)
        steps, ending = tuple(map(around_first, made.steps)), tuple(map(around_first, made.ending))
        return replace(made, steps=steps, ending=ending)

    def merged_inner(self, nest: Nest, longer: bool = True) -> dict[tuple[str, ...], Groups]:
        """Return the merged loops for each set of inner axes; lengthen short ones if ``longer``."""
        found = {}
        uses = Uses.of(nest)
        enough = self.enough(nest)
        for inner in {item.inner: None for item in self.items if item.inner}:
            groups = self.space.merged(inner, uses, self.cut_inside)
            if nest.across is None and longer:
                groups = self.space.lengthened(groups, uses, enough)
            if len(groups) < len(inner):
                found[inner] = groups
        return found


def around_first(step: Pass | Store) -> Pass | Store:
    """Return a pass with interchanged loops, split along its previous outermost loop."""
    if not isinstance(step, Pass):
        return step
    return replace(step, divided=1 if len(step.loops) == 2 else 0)
