"""Work of a kernel, counted from its data: bytes moved per operand, and executions per primitive.

Nothing here depends on a machine: ``roofline`` predicts the time on one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Protocol

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import evaluate
from ....op_graph.op_graph import Op, Same
from ....op_graph.values.dtypes import name_of
from ...sizes.limits import LONG_LOOP_TURNS
from ...sizes.product_problem import PlannedProduct, ProductSizes
from ..analysis.footprint import Reach, Reaches
from ..analysis.loop_depth import ELEMENT_DEPTH, Depths
from ..analysis.op_counts import DRAW, INDEX, MULTIPLY_ADD, Rows, count, note, reduced_values
from ..ir.nest import Call, Loop, Nest, Pass, Region, Store
from ..ir.scalar_code import Kept, Load, Scalar, walk
from ..nests.random_runs import roots, runs
from ..products.contraction import Contraction, plain_strides
from ..products.row_blocking import Blocked, StepOperand
from ..scans.sequential_scan import OrderedLoop
from .library_costs import Counted, count_call
from .machine import RowCost


class CountsRows(Protocol):
    """Protocol of objects that give the cost of elementwise primitives, such as ``Machine``."""

    def row(self, row: str, dtype: str) -> RowCost:
        """Return the cost of one element of a primitive."""


NOMINAL_WHILE_TURNS = LONG_LOOP_TURNS  # assumed iterations of a while loop, whose count is unknown


@dataclass(frozen=True, slots=True)
class AccessCost:
    """One load or store.

    ``operand`` is the operand's number and ``itemsize`` the bytes of an element. ``writes`` is True
    for a store. ``times`` is the number of executions. ``reach`` is the footprint in the whole
    kernel, ``row`` that in one iteration of the loops around the pass.
    """

    operand: int
    itemsize: int
    writes: bool
    times: int
    reach: Reach
    row: Reach


@dataclass(frozen=True, eq=False, slots=True)
class Stage:
    """Work of one pass.

    ``begins`` is the number of times that the pass starts. ``inner`` is the extent of the innermost
    loop and ``turns`` its total number of iterations. ``side_by_side`` is True if vector lanes hold
    different rows. ``reductions`` is the number of reductions. ``rows`` counts primitives executed
    per element, ``once`` those executed once per row. ``accesses`` are the loads and stores.
    ``kept`` is the bytes of row arrays that an iteration writes and reads. ``itemsize`` is that of
    the widest computed value. ``piece`` is True if earlier stages touch none of the same memory.
    """

    begins: int
    inner: int
    turns: int
    side_by_side: bool
    reductions: int
    rows: Rows
    once: Rows
    accesses: tuple[AccessCost, ...]
    kept: int
    itemsize: int
    piece: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ProductCost:
    """Sizes and operand costs of a contraction.

    Rows and columns of ``sizes`` are in the order of the product's form, of which ``planned`` is a
    part. Without a form ``planned`` is None, and results are contiguous along columns. ``left`` and
    ``right`` count the primitives that compute one element of an operand; empty if the operand is
    in memory. ``strides`` are those of both operands as in ``PlannedProduct``. ``store`` is the
    epilogue on the sums.
    """

    sizes: ProductSizes
    itemsize: int
    left: Rows
    right: Rows
    strides: tuple[tuple[Size, Size] | None, tuple[Size, Size] | None]
    store: Stage
    planned: PlannedProduct | None = None


@dataclass(frozen=True, eq=False, slots=True)
class StepCost:
    """Cost of one step of a chain over all rows, and the places of its operands."""

    cost: Cost
    places: tuple[StepOperand, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Cost:
    """Work of one kernel in one call.

    ``read`` and ``written`` are bytes, each element of an operand counted once. ``touched`` is the
    bytes of distinct memory; it is less than their sum where a result overwrites an operand.
    ``rows`` counts executions per primitive. ``moves`` are the bytes read and written of each
    operand (for a library call: of each argument, then of the result). ``stages``, ``product`` or
    ``counted`` describe a nest, a contraction or a library call. ``steps`` are those of a chain,
    whose intermediate results take ``block`` bytes. A loop executes ``inner`` ``turns`` times.
    """

    read: int
    written: int
    touched: int
    rows: Rows
    moves: tuple[tuple[int, int], ...]
    stages: tuple[Stage, ...] = ()
    product: ProductCost | None = None
    counted: Counted | None = None
    steps: tuple[StepCost, ...] = ()
    block: int = 0
    inner: tuple[Cost, ...] = ()
    turns: int = 1

    def operations(self, machine: CountsRows) -> dict[str, int]:
        """Return the number of operations by dtype name, according to ``machine``.

        Casts count. Data movement, selects between pieces and index arithmetic do not.
        """
        found: dict[str, int] = {}
        for (row, dtype), times in self.rows.items():
            if row != INDEX and times:
                count = times * machine.row(row, dtype).operations
                found[dtype] = found.get(dtype, 0) + count
        return found


def cost_of(
    work: Nest | Contraction | Blocked | OrderedLoop | Region | Call,
    lengths: Mapping[str, int],
    places: Sequence[Hashable] | None = None,
    parts: Sequence[Any] = (),
) -> Cost:
    """Return the cost of a kernel for the open lengths ``lengths``; ``KeyError`` if one is missing.

    ``places`` identifies the memory of each operand (of a call: each argument, then the result);
    memory that two operands share is touched once. If None, all operands are in distinct memory.
    ``parts`` are those of the kernel's form, in which products have ``planned``; of a region, for
    each body those of its kernels. Without any, the cost model plans products by itself.
    """
    if isinstance(work, Call):
        counted = count_call(work.op, lengths, places)
        bytes_of = (counted.read, counted.written, counted.touched)
        return Cost(*bytes_of, counted.rows, counted.moves, counted=counted)
    if isinstance(work, Blocked):
        return _blocked_cost(work, lengths, places, parts)
    if isinstance(work, Region):
        return _region_cost(work, lengths, parts)
    if isinstance(work, OrderedLoop):
        return _ordered_cost(work, lengths)
    if isinstance(work, Nest):
        return _NestCost(work, lengths).cost(places)
    return _ContractionCost(work, lengths, parts).cost(places)


def _region_cost(work: Region, lengths: Mapping[str, int], parts: Sequence[Any]) -> Cost:
    """Return the cost of all iterations of a loop, or of the most expensive branch of a case."""
    turns = _turns(work.op, lengths)
    each = [
        tuple([
            cost_of(kernel.work, lengths, _held_places(kernel, body.schedule.base), own)
            for kernel, own in zip(body.schedule.kernels, of_body, strict=False)
        ])
        for body, of_body in zip(work.bodies, parts or repeat(repeat(())), strict=False)
    ]  # fmt: skip
    inner = max(each, key=lambda costs: sum(cost.read + cost.written for cost in costs))
    if work.op.primitive.name == "while":  # condition and body run in each iteration
        inner = tuple([cost for costs in each for cost in costs])
    rows: Rows = {}
    for cost in inner:
        for row, times in cost.rows.items():
            rows[row] = rows.get(row, 0) + times * turns
    read = [(_bytes(arg, lengths), 0) for arg in work.op.args]
    written = [(0, _bytes(op, lengths)) for op in work.results]
    return Cost(
        turns * sum(cost.read for cost in inner),
        turns * sum(cost.written for cost in inner),
        turns * sum(cost.touched for cost in inner),
        rows,
        (*read, *written),
        inner=inner,
        turns=turns,
    )


def _held_places(kernel: Any, base: Mapping[Op, Op]) -> list[Hashable] | None:
    """Return the memory of the operands of a kernel that updates a carry in place, else None."""
    if not kernel.writes:
        return None
    work = kernel.work
    calls = isinstance(work, Call)
    operands = [*(base[arg] for arg in work.op.args), work.op] if calls else work.operands
    return [Same(kernel.writes.get(op, op)) for op in operands]


def _turns(op: Op, lengths: Mapping[str, int]) -> int:
    """Return the iterations of a region's body; a likely number if only a call shows it."""
    if op.primitive.name == "scan":
        return evaluate(op.attrs.axis.expression, lengths)
    if op.primitive.name == "while":
        limit = op.attrs.limit
        return NOMINAL_WHILE_TURNS if limit is None else min(limit, NOMINAL_WHILE_TURNS)
    return 1


def _ordered_cost(work: OrderedLoop, lengths: Mapping[str, int]) -> Cost:
    """Return the cost of an ordered loop: one pass over all iterations of all rows."""
    rows, turns = evaluate(work.rows, lengths), evaluate(work.turns, lengths)
    values = [carry.value for carry in work.carries] + [store.value for store in work.stores]
    found: Rows = {}
    for node in walk(*values):
        count(found, node, rows * turns)
    written = {store.operand for store in work.stores}
    written |= {carry.store.operand for carry in work.carries if carry.store is not None}
    moves = [(0, _bytes(op, lengths)) if k in written else (_bytes(op, lengths), 0)
             for k, op in enumerate(work.operands)]  # fmt: skip
    read, wrote = (sum(move[k] for move in moves) for k in range(2))
    itemsize = max([value.dtype.itemsize for value in values])
    once: Rows = {}
    stage = Stage(turns, rows, rows * turns, rows > 1, 0, found, once, (), 0, itemsize)
    return Cost(read, wrote, read + wrote, found, tuple(moves), (stage,))


def _bytes(op: Op, lengths: Mapping[str, int]) -> int:
    return evaluate(op.axes.size, lengths) * op.dtype.itemsize


class _Counts:
    """Counts of scalar code: executions per primitive, and the footprints of loads and stores."""

    def __init__(self, reaches: Reaches, operands: Sequence[Op]) -> None:
        self.reaches, self.operands = reaches, operands
        self.sizes = [reaches.number(op.axes.size) for op in operands]
        self.offsets: dict[tuple[int, bool], list[tuple[AffineIndex, Reach]]] = {}

    def access(
        self, node: Load | Store, times: int, innermost: str | None, row: Reaches
    ) -> AccessCost:
        """Record a load or store, and return its description."""
        operand, offset, writes = node.operand, node.offset, isinstance(node, Store)
        size, itemsize = self.sizes[operand], self.operands[operand].dtype.itemsize
        whole = self.reaches.of(offset, innermost, size, itemsize)
        self.offsets.setdefault((operand, writes), []).append((offset, whole))
        each = row.of(offset, innermost, size, itemsize)
        return AccessCost(operand, itemsize, writes, times, whole, each)

    def moves(self) -> tuple[tuple[int, int], ...]:
        """Return the bytes read and written of each operand; loads of own stores are free."""
        moves = [[0, 0] for _ in self.operands]
        for (operand, writes), found in self.offsets.items():
            if not writes and (operand, True) in self.offsets:
                continue
            itemsize = self.operands[operand].dtype.itemsize
            moves[operand][writes] = self.reaches.union(found, self.sizes[operand]) * itemsize
        return tuple([(read, written) for read, written in moves])


def _made(
    moves: Sequence[tuple[int, int]], places: Sequence[Hashable] | None, rows: Rows, **parts: Any
) -> Cost:
    """Return the cost of work that moves ``moves`` bytes (read, written) of each operand."""
    touched: dict[Hashable, int] = {}
    for operand, (read, written) in enumerate(moves):
        place = operand if places is None else places[operand]
        touched[place] = max(touched.get(place, 0), read, written)
    read, written = (sum(each[k] for each in moves) for k in range(2))
    return Cost(read, written, sum(touched.values()), rows, tuple(moves), **parts)


def _blocked_cost(
    work: Blocked,
    lengths: Mapping[str, int],
    places: Sequence[Hashable] | None,
    parts: Sequence[Any],
) -> Cost:
    """Return the cost of a chain; values that its steps hand on are no memory traffic."""
    steps = []
    moves = [[0, 0] for _ in work.operands]
    rows: Rows = {}
    steps_parts = parts or [()] * len(work.whole)
    for step, where, own in zip(work.whole, work.places, steps_parts, strict=True):
        cost = cost_of(step, lengths, None, own)
        steps.append(StepCost(cost, where))
        for (row, dtype), times in cost.rows.items():
            note(rows, row, dtype, times)
        for (read, written), place in zip(cost.moves, where, strict=True):
            if not place.inner:
                own = moves[place.number]
                own[0] = own[0] if own[1] else max(own[0], read)
                own[1] = max(own[1], written)
    pairs = [(read, written) for read, written in moves]
    block = work.cut.bytes(lengths)
    return _made(pairs, places, rows, steps=tuple(steps), block=block)


class _NestCost:
    def __init__(self, nest: Nest, lengths: Mapping[str, int]) -> None:
        self.nest = nest
        rows = [*nest.rows, *([nest.across] if nest.across is not None else [])]
        loops = [loop for each in nest.passes for loop in each.loops]
        self.reaches = Reaches([*rows, *loops], lengths)
        self.in_row = Reaches(loops, lengths)
        self.depths = Depths.of(nest)
        self.counts = _Counts(self.reaches, nest.operands)
        self.row_count = self.reaches.turns(rows)
        self.lanes = nest.across.name if nest.across is not None else None
        self.rows: Rows = {}
        self.seen: set[int] = set()  # ids of nodes computed once, or once per row
        self.runs: set[int] = set()  # ids of random bits that the pass draws in order

    def enter(self, loops: Iterable[Loop]) -> None:
        """Set the extents of a pass's loops; passes may cover different intervals of an axis."""
        for loop in loops:
            extent = self.reaches.number(loop.extent)
            self.reaches.extents[loop.name] = self.in_row.extents[loop.name] = extent

    def cost(self, places: Sequence[Hashable] | None) -> Cost:
        """Return the cost of the nest; ``places`` as for ``cost_of``."""
        stages = tuple([self.stage(step) for step in (*self.nest.steps, *self.nest.ending)])
        moves = list(self.counts.moves())
        if is_apart(self.nest, self.reaches.lengths):
            self.rows = {}
            stages = tuple([stage for piece in self.nest.pieces for stage in self.piece(piece)])
        fill = self.nest.fill
        if fill is not None and (places is None or places[fill.operand] != places[fill.source]):
            op = self.nest.operands[fill.operand]
            size = self.reaches.number(op.axes.size) * op.dtype.itemsize
            moves[fill.operand], moves[fill.source] = (0, size), (size, 0)
        return _made(moves, places, self.rows, stages=stages)

    def piece(self, piece: Nest) -> list[Stage]:
        """Return the stages of one piece."""
        counted = _NestCost(piece, self.reaches.lengths)
        stages = counted.cost(None).stages
        for (row, dtype), times in counted.rows.items():
            note(self.rows, row, dtype, times)
        return [replace(stage, piece=True) for stage in stages]

    def stage(self, step: Pass | Store) -> Stage:
        """Return the work of one pass, or of a store of a value of the row."""
        if isinstance(step, Store):
            return self.made((), [step.value], [step], 0, 0)
        values = roots(step)
        for each in step.reductions:
            values += reduced_values(each)
        self.runs = {id(run.node) for run in runs(self.nest, step, self.depths)}
        kept = sum(self.nest.arrays[keep.number].dtype.itemsize for keep in step.keeps)
        return self.made(step.loops, values, step.stores, len(step.reductions), kept)

    def made(
        self,
        loops: Sequence[Loop],
        values: Sequence[Scalar],
        stores: Sequence[Store],
        reductions: int,
        kept: int,
    ) -> Stage:
        """Return the stage that computes ``values``; each node counts by its loop depth."""
        self.enter(loops)
        innermost = self.lanes or (loops[-1].name if loops else None)
        turns = self.row_count * self.reaches.turns(loops)
        rows: Rows = {}
        once: Rows = {}
        accesses: list[AccessCost] = []
        widest = 1
        for value in walk(*values):
            element = self.depths.value(value) == ELEMENT_DEPTH and bool(loops)
            if not element:
                if id(value) in self.seen:
                    continue
                self.seen.add(id(value))
            known_once = self.depths.value(value) == 0 and not element
            times = turns if element else 1 if known_once else self.row_count
            if element and id(value) in self.runs:
                note(rows, DRAW, name_of(value.dtype), times)
            else:
                count(rows if element else once, value, times)
            if isinstance(value, Load):
                accesses.append(self.counts.access(value, times, innermost, self.in_row))
            elif isinstance(value, Kept):
                kept += value.dtype.itemsize
            if element:
                widest = max(widest, value.dtype.itemsize)
        accesses += [self.counts.access(store, turns, innermost, self.in_row) for store in stores]
        for (row, dtype), times in (*rows.items(), *once.items()):
            note(self.rows, row, dtype, times)
        inner = self.reaches.extents[innermost] if innermost is not None else 1
        return Stage(
            self.row_count, inner, turns, self.lanes is not None, reductions, rows, once,
            tuple(accesses), kept, widest,
        )  # fmt: skip


def is_apart(nest: Nest, lengths: Mapping[str, int]) -> bool:
    """Return True if a nest is computed by its pieces for the open lengths ``lengths``."""
    return bool(nest.pieces) and all(evaluate(size, lengths) >= 0 for size in nest.holds)


class _ContractionCost:
    def __init__(self, made: Contraction, lengths: Mapping[str, int], parts: Sequence[Any]) -> None:
        self.made, self.parts = made, parts
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)
        self.reaches = Reaches(self.loops, lengths)
        self.counts = _Counts(self.reaches, made.operands)

    def cost(self, places: Sequence[Hashable] | None) -> Cost:
        """Return the cost: multiply-adds, and primitives per element read or stored."""
        made = self.made
        batch, rows, columns, depth = (
            self.reaches.turns(loops)
            for loops in (made.batch, made.rows, made.columns, made.summed)
        )
        sizes = (batch * rows * depth, batch * columns * depth)
        left = self.operand(made.left, sizes[0])
        right = self.operand(made.right, sizes[1])
        store = self.store(batch * rows * columns)
        total = dict(store.rows)
        for each, size in ((left, sizes[0]), (right, sizes[1])):
            for (row, dtype), times in each.items():
                note(total, row, dtype, times * size)
        if made.pieces:  # the terms of the sum are divided among the pieces
            terms = sum(self.terms(piece) for piece in made.pieces)
            depth = terms // max(batch * rows * columns, 1)
        note(total, MULTIPLY_ADD, name_of(made.dtype), batch * rows * columns * depth)
        strides = (
            plain_strides(made.left, made.rows, made.summed, self.loops),
            plain_strides(made.right, made.columns, made.summed, self.loops),
        )
        found, planned = ProductSizes(batch, rows, columns, depth), self.planned()
        along_rows = any(loop.name == made.unit for loop in made.rows)  # stores adjoin along rows
        if along_rows if planned is None else planned.turned:
            found, left, right, strides = found.transposed(), right, left, strides[::-1]
        product = ProductCost(found, made.dtype.itemsize, left, right, strides, store, planned)
        return _made(self.counts.moves(), places, total, product=product)

    def planned(self) -> PlannedProduct | None:
        """Return what the form fixes, of several pieces that with most terms; None without one."""
        if not self.parts:
            return None
        pieces = zip(self.made.pieces or (self.made,), self.parts, strict=True)
        _, form = max(pieces, key=lambda pair: self.terms(pair[0]))
        planned: PlannedProduct = form.planned
        return planned.at(self.reaches.lengths)

    def terms(self, piece: Contraction) -> int:
        """Return the number of products that a piece sums."""
        loops = (*piece.batch, *piece.rows, *piece.columns, *piece.summed)
        return math.prod(self.reaches.number(loop.extent) for loop in loops)

    def operand(self, value: Scalar, size: int) -> Rows:
        """Return the primitives that compute one element of an operand, and record its loads."""
        rows: Rows = {}
        for node in walk(value):
            count(rows, node, 1)
            if isinstance(node, Load):
                self.counts.access(node, size, None, self.reaches)
        return rows

    def store(self, elements: int) -> Stage:
        """Return the stage of the epilogue that is applied to each sum."""
        rows: Rows = {}
        accesses: list[AccessCost] = []
        stores = self.made.stores
        widest = self.made.dtype.itemsize
        for value in walk(*[store.value for store in stores]):
            count(rows, value, elements)
            if isinstance(value, Load):
                accesses.append(self.counts.access(value, elements, self.made.unit, self.reaches))
            widest = max(widest, value.dtype.itemsize)
        for each in stores:
            accesses.append(self.counts.access(each, elements, self.made.unit, self.reaches))
        inner = self.reaches.extents[self.made.unit] if self.made.unit is not None else 1
        return Stage(1, inner, elements, False, 0, rows, {}, tuple(accesses), 0, widest)
