"""Builder of loop nests with given loops: the reductions, stores and keeps of each pass.

Values that a later pass needs are scalars of the row, stored or kept elements, or recomputed. A
nest without rows is one pass, split along its outermost loop; its reductions give partial values
that are combined in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from functools import partial

from ....op_graph.axes.affine import (
    AffineIndex,
    Size,
    ravel,
    strides,
    unravel,
    variable,
)
from ....op_graph.axes.index_map import Index
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op, among
from ....op_graph.rows.reducers import State, in_order
from ....op_graph.values.dtypes import FLOAT32, HALVES, INT64, name_of
from ...sizes.blocks import L2_BYTES
from ..analysis.index_boxes import Facts, IndexBox, Interval
from ..ir.loop_variables import variables_of
from ..ir.nest import Fused, Keep, Loop, Nest, Pass, Reduction, RowArray, Store
from ..ir.scalar_code import IndexNumber, Kept, Reduced, Scalar
from .constant_reductions import states_of_same
from .inlining import Elements, OperandInliner
from .iteration_space import Groups, IterationSpace, goes_up
from .nest_outputs import Item, Levels, reducer_of, states_of
from .unrolled_reductions import unroll_reduction

# Maximum elements of a row that passes share, or of a row array that keeps an expensive value
# between passes: four rows of float32 stay in a core's cache.
MAX_BUFFERED_ROW_ELEMENTS = L2_BYTES // 16


class NestBuilder:
    """Builds nests of one kernel over a ``region``, with ``facts`` about its lengths."""

    def __init__(
        self, fused: Fused, operands: OperandInliner, region: IndexBox, facts: Facts
    ) -> None:
        self.operands = operands
        self.region, self.facts = region, facts
        self.results = operands.results
        self.cut_inside = {name for box in region.boxes for name, _ in box}
        self.reductions, self.straight = fused.reductions, fused.straight
        self.collapsed = fused.collapsed
        extents: dict[str, Size] = {}
        self.blocks: set[str] = set()  # axes restricted to a block of unknown start
        for op in (*self.results, *(a for r in self.reductions for a in r.args)):
            for axis in op.axes:
                extents.setdefault(axis.name, operands.extent(axis))
                if extents[axis.name] != axis.expression:
                    self.blocks.add(axis.name)
        self.space = IterationSpace(extents)
        self.phases: dict[str, int] = {}
        for name, interval in region.spans:
            self.narrow(name, interval)
        self.single = self.of_one_turn()
        self.rows = None if fused.rows is None else fused.rows - self.single
        self.levels = Levels(fused, operands)
        self.items = [
            Item(i.op, i.reduces, i.level, self.several(i.inner)) for i in self.levels.items()
        ]
        for op in self.results:
            operands.number(op)

    def of_one_turn(self) -> frozenset[str]:
        """Return the axes of extent 1, which need no loop.

        The innermost axis is not among them if the region splits it, as some intervals have extent
        1.
        """
        found = {name for name, extent in self.space.extents.items() if extent == 1}
        if self.region.cuts:
            found.discard(self.operands.order(self.results[0])[-1])
        return frozenset(found)

    def narrow(self, name: str, interval: Interval) -> None:
        """Restrict an axis to an interval, with its number of indices per iteration."""
        self.space.narrow(name, interval)
        self.phases[name] = interval.phases

    def several(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the axes that have loops."""
        return tuple([name for name in names if name not in self.single])

    def build(
        self,
        rows: Groups,
        across: tuple[str, ...] | None,
        merged: dict[tuple[str, ...], Groups],
    ) -> Nest:
        """Return a nest with these row loops, lanes over ``across`` and inner loops ``merged``."""
        self.ranges: dict[Hashable, Size] = {}
        decide, low = self.facts.decide, self.space.low
        self.elements = Elements(
            self.operands, lambda guard: decide(guard, self.ranges), self.ranges
        )
        for op in self.straight:
            self.elements.known[op] = partial(self.short, op)
        self.index = {n: self.operands.at(n, AffineIndex((), low.get(n, 0))) for n in self.single}
        self.arrays: list[RowArray] = []
        self.kept: list[tuple[Op, tuple[AffineIndex, ...], Kept]] = []
        self.states: dict[Op, list[State]] = {}
        self.keeps = bool(self.rows) and across is None and not self.region.boxes
        steps: list[Pass | Store] = []
        ending: list[Pass | Store] = []
        row_loops = tuple([self.loop(axes) for axes in rows])
        side_by_side = None
        if across is not None:
            side_by_side = self.lanes(across)
        divided = not rows and across is None
        last = max((item.level for item in self.items), default=0)
        for level in range(last + 1):
            several = any(isinstance(step, Pass) for step in steps)
            target = ending if divided and several else steps
            self.make_level(level, target, ending if divided else steps, merged)
        if not any(isinstance(step, Pass) for step in steps):
            steps, ending = [*steps, *ending], []
        return Nest(row_loops, side_by_side, tuple(steps), tuple(ending), tuple(self.arrays), ())

    def loop(self, axes: tuple[str, ...]) -> Loop:
        """Return a loop over these axes, collapsed, and set their indices."""
        name = self.space.name(axes)
        extent = self.split(axes, variable(name))
        self.ranges[name] = extent
        return Loop(name, axes, extent)

    def lanes(self, axes: tuple[str, ...]) -> Loop:
        """Return the loop over these axes in vector lanes, and set their indices."""
        extent = self.split(axes, variable("first_lane") + variable("lane"))
        self.ranges.update(first_lane=1, lane=extent)  # bounds of their sum
        return Loop("lane", axes, extent)

    def split(self, axes: tuple[str, ...], index: AffineIndex) -> Size:
        """Set the indices of axes to the digits of ``index``; return their total extent."""
        parts = unravel(index, [self.space.extents[n] for n in axes])
        for axis, part in zip(axes, parts, strict=True):
            self.index[axis] = self.operands.at(axis, part + self.space.low.get(axis, 0))
            self.ranges.update(dict.fromkeys(part.terms, self.space.extents[axis]))
        return product(self.space.extents[n] for n in axes)

    def make_level(
        self,
        level: int,
        steps: list[Pass | Store],
        after: list[Pass | Store],
        merged: dict[tuple[str, ...], Groups],
    ) -> None:
        """Append the passes of one level; items over the same axes share a pass.

        Reducers with state have passes of their own. Results of reductions are stored ``after`` the
        passes. Among passes over as many axes, those that store come last: a result may overwrite
        an operand of the others.
        """
        shapes: dict[tuple[tuple[str, ...], bool], list[Item]] = {}
        for item in self.items:
            if item.level == level:
                shapes.setdefault((item.inner, item.has_state), []).append(item)
        # Reduction results are stored last: they may overwrite operands of others of the level.
        reduced: list[Item] = []
        for (inner, _), items in sorted(shapes.items(), key=turn):
            if not inner and not any(item.reduces for item in items):
                (after if len(shapes) > 1 else steps).extend(self.unrolled(items))
                continue
            steps += self.make_passes(level, inner, items, merged.get(inner))
            for item in items:
                if item.reduces:
                    self.finish(item.op)
                    reduced += [item] if among(item.op, self.results) else []
        after.extend(self.stores(reduced))
        self.release()

    def stores(self, items: Iterable[Item]) -> list[Store]:
        """Return stores of values at the loops' indices."""
        found = []
        for item in items:
            index = self.index_of(item.op)
            value = self.elements.value(item.op, index)
            offset = self.operands.offset(item.op, index)
            found.append(Store(self.operands.number(item.op), offset, value, item.op.dtype))
        return found

    def make_passes(
        self, level: int, inner: tuple[str, ...], items: list[Item], groups: Groups | None
    ) -> list[Pass]:
        """Return a pass for each interval that splits the innermost axis, or for each box."""
        if not self.region.cuts or self.region.unrolled:
            return self.pass_of_boxes(level, inner, items, groups)
        found = []
        for interval in self.region.cuts:
            self.narrow(inner[-1], interval)
            found.append(self.make_pass(level, inner, items, groups))
        return found

    def pass_of_boxes(
        self, level: int, inner: tuple[str, ...], items: list[Item], groups: Groups | None
    ) -> list[Pass]:
        """Return a pass per box, without those whose reduced elements are constant in the box."""
        found = []
        boxes = self.region.boxes if inner else ()
        for number, box in enumerate(boxes or [()]):
            for name, interval in box:
                self.narrow(name, interval)
            made = self.make_pass(level, inner, items, groups, number)
            known = states_of_same(self.elements.code, made)
            if known is None:
                found.append(made)
                continue
            for item, state in zip(items, known, strict=True):
                self.states[item.op][-1] = state
        return found

    def make_pass(
        self,
        level: int,
        inner: tuple[str, ...],
        items: list[Item],
        groups: Groups | None,
        box: int = 0,
    ) -> Pass:
        """Return one pass with everything that is computed in it."""
        self.elements.forget()
        loops = tuple([self.loop(axes) for axes in groups or [(n,) for n in inner]])
        reductions = [self.reduction(item.op, loops, box) for item in items if item.reduces]
        written = [item for item in items if not item.reduces]
        stores = self.unrolled(written)
        keeps = self.keep_costly(level, inner, {loop.name for loop in loops})
        if not self.region.cuts and not self.region.boxes:
            self.elements.readable.update(item.op for item in written)
        return Pass(loops, tuple(reductions), tuple(stores), tuple(keeps))

    def unrolled(self, items: list[Item]) -> list[Store]:
        """Return stores at each index that one iteration covers, for all axes with several."""
        places: dict[str, list[AffineIndex]] = {}
        for name, phases in self.phases.items():
            single = self.space.extents[name] == 1
            if phases > 1 or (single and self.straight):
                low = self.space.low[name]
                turn = AffineIndex() if single else self.index[name] - low
                first = turn * phases + low
                places[name] = [first + k for k in range(phases)]
        if self.region.unrolled:
            last = self.operands.order(self.results[0])[-1]
            places[last] = [AffineIndex((), interval.low) for interval in self.region.cuts]
        found, before = [], dict(self.index)
        for at in itertools.product(*places.values()):
            self.index.update(zip(places, at, strict=True))
            found += self.stores(items)
        self.index = before
        return found

    def index_of(self, op: Op) -> dict[str, AffineIndex]:
        """Return the loops' indices of an op's axes."""
        return {n: self.index_along(n) for n in op.axes.names}

    def index_along(self, name: str) -> AffineIndex:
        """Return the index along an axis, composed of the loops over its digits if divided."""
        digits = self.space.digits.get(name)
        if digits is None:
            return self.index[name]
        extents = [self.space.extents[d] for d in digits]
        return ravel([self.index[d] for d in digits], extents) + self.space.low.get(name, 0)

    def reduction(self, op: Op, loops: tuple[Loop, ...], box: int) -> Reduction:
        """Return a reduction over the elements that ``loops`` cover in box number ``box``."""
        args = [self.elements.value(arg, self.index_of(arg)) for arg in op.args]
        elements = tuple([self.widened(arg) for arg in args])
        reducer = reducer_of(op)
        position, states = None, states_of(op)
        if reducer.positions:
            over = [axis for axis in op.args[0].axes if axis.name not in op.axes]
            at = [self.index_along(axis.name) for axis in over]
            place = ravel(at, [axis.expression for axis in over])
            narrow = INT64 if reducer.place is None else states[reducer.place]
            position = self.elements.code(IndexNumber, place, narrow)
            if not self.region.cuts and goes_up(place, loops):
                reducer = in_order(reducer)
        number = self.levels.reduced[op] + box * len(self.levels.reduced)
        parts = [self.elements.code(Reduced, number, k, dtype) for k, dtype in enumerate(states)]
        self.states.setdefault(op, []).append(tuple(parts))
        return Reduction(number, reducer, states, elements, position)

    def short(self, op: Op, index: Index) -> Scalar:
        """Return the result of a reduction without a loop."""
        key = self.elements.key(op, index)
        if key not in self.elements.found:
            self.elements.found[key] = op, unroll_reduction(self.elements, op, index)
        return self.elements.found[key][1]

    def widened(self, element: Scalar) -> Scalar:
        """Return an element as float32 if it is a half."""
        half = name_of(element.dtype) in HALVES
        wide: Scalar = self.elements.code.cast(element, FLOAT32) if half else element
        return wide

    def finish(self, op: Op) -> None:
        """Make the result of a reduction available to later passes and stores."""
        reducer, code = reducer_of(op), self.elements.code
        state, *others = self.states[op]
        for other in others:
            state = reducer.combine(code, state, other)
        found = code.cast(reducer.finish(code, state)[0], op.dtype)
        self.elements.known[op] = lambda index: found

    # Row arrays ---------------------------------------------------------------------------------

    def keep_costly(self, level: int, inner: tuple[str, ...], loops: set[str]) -> list[Keep]:
        """Return keeps that store expensive values in row arrays for later passes."""
        size = product(self.space.extents[n] for n in inner)
        if not self.keeps or (isinstance(size, int) and size > MAX_BUFFERED_ROW_ELEMENTS):
            return []
        offset = AffineIndex()
        for name, step in zip(
            inner, strides(tuple([self.space.extents[n] for n in inner])), strict=True
        ):
            offset = offset + self.index[name] * step
        needed = self.levels.later_needs(self.items, level)
        found = []
        for (_, key), (op, value) in self.elements.found.items():
            if op not in needed or among(op, self.results) or op in self.elements.known:
                continue
            if loops.isdisjoint(variables_of(value)):
                continue
            array = RowArray(len(self.arrays), size, op.dtype)
            self.arrays.append(array)
            found.append(Keep(array.number, offset, value))
            kept = self.elements.code(Kept, array.number, offset, op.dtype)
            self.kept.append((op, key, kept))
        return found

    def release(self) -> None:
        """Make the filled row arrays readable for the passes that follow."""
        for op, key, node in self.kept:

            def kept(
                index: Index, op: Op = op, key: tuple[AffineIndex, ...] = key, node: Kept = node
            ) -> Scalar | None:
                return node if tuple([index[n] for n in op.axes.names]) == key else None

            self.elements.known[op] = kept
        self.kept = []


def turn(shape: tuple[tuple[tuple[str, ...], bool], list[Item]]) -> tuple[int, bool]:
    """Sort key of the passes of a level: fewer axes first, then those that store nothing."""
    (inner, _), items = shape
    return len(inner), not all(item.reduces for item in items)
