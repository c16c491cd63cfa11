"""What a kernel's work is, counted from its data: bytes of each operand, and how often each row of
scalar code runs.

Nothing here is of one machine: ``predict`` says how long it takes on one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ....op_graph.axes.affine import Affine
from ....op_graph.axes.lengths import evaluate
from ....op_graph.op_graph import Op, Same
from ....op_graph.regions.while_op import WhileAttributes
from ....op_graph.values.dtypes import name_of
from ..analysis.footprint import Reach, Reaches
from ..analysis.loop_depth import ELEMENT, Depths
from ..analysis.op_counts import DRAW, INDEX, MULTIPLY_ADD, Rows, count, note, reduced_values
from ..ir.nest import Call, Loop, Nest, Pass, Region, Store
from ..ir.scalar_code import Kept, Load, Scalar, walk
from ..nests.random_runs import roots, runs
from ..products.contraction import Contraction, unit_of
from ..products.row_blocking import Blocked, Place
from ..scans.sequential_scan import OrderedLoop
from .library_costs import Counted, call_counted
from .machine import RowCost


class CountsRows(Protocol):
    """What says what elementwise rows count as, as a ``Machine`` does."""

    def row(self, row: str, dtype: str) -> RowCost:
        """What one element of a row takes."""


LIKELY_TURNS = 64  # of a while loop, of which nothing is known


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store: the operand, how often it is run, and what it reaches.

    ``row`` is what it reaches in one turn of the loops around the pass.
    """

    operand: int
    itemsize: int
    writes: bool
    times: int
    reach: Reach
    row: Reach


@dataclass(frozen=True, eq=False, slots=True)
class Stage:
    """One pass: it begins ``begins`` times, and its innermost loop, of ``inner`` turns, takes
    ``turns`` turns in all.

    ``side_by_side`` says that rows are the lanes of vectors; ``reductions`` how many reductions
    there are. What a ``piece`` touches, no stage before it did. ``rows`` are how often rows of
    scalar code run for elements, ``once`` those that run once for each row. ``kept`` are the bytes
    of the row's own arrays that a turn writes and reads; ``itemsize`` is that of the widest value
    computed.
    """

    begins: int
    inner: int
    turns: int
    side_by_side: bool
    reductions: int
    rows: Rows
    once: Rows
    accesses: tuple[Access, ...]
    kept: int
    itemsize: int
    piece: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Product:
    """A contraction's lengths.

    ``left`` and ``right`` are the rows that computing one element of an operand takes, empty for
    what lies in memory; ``along`` whether the elements of left and right adjoin along the summed
    indices; ``store`` is what is done with the sums.
    """

    batch: int
    rows: int
    columns: int
    depth: int
    itemsize: int
    left: Rows
    right: Rows
    along: tuple[bool, ...]
    store: Stage


@dataclass(frozen=True, eq=False, slots=True)
class StepCost:
    """What a step of a chain does over all rows, and where its operands lie."""

    cost: Cost
    places: tuple[Place, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Cost:
    """What one kernel does in one call.

    ``read`` and ``written`` are bytes, each element of an operand counted once; ``touched`` the
    bytes of memory that these lie in, which is less where a result takes the place of what was
    read. ``rows`` are how often each row of scalar code runs, in all; ``moves`` the bytes that are
    read, and written, of each operand (of a call, of its arguments and its result). A chain has
    ``steps``; what these hand on lies in ``block`` bytes. A loop takes so many ``turns`` of what is
    ``inner``.
    """

    read: int
    written: int
    touched: int
    rows: Rows
    moves: tuple[tuple[int, int], ...]
    stages: tuple[Stage, ...] = ()
    product: Product | None = None
    counted: Counted | None = None
    steps: tuple[StepCost, ...] = ()
    block: int = 0
    inner: tuple[Cost, ...] = ()
    turns: int = 1

    def operations(self, machine: CountsRows) -> dict[str, int]:
        """Operations by the name of the dtype they are done in.

        Casts count, moving data, choices between pieces and the arithmetic of indices do not.
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
) -> Cost:
    """The cost of a kernel where the open lengths are ``lengths``; ``KeyError`` for a missing one.

    ``places`` say for each operand (of a call: each argument, then the result) where it lies: two
    in one place are touched once. Without them each has a place of its own.
    """
    if isinstance(work, Call):
        counted = call_counted(work.op, lengths, places)
        bytes_of = (counted.read, counted.written, counted.touched)
        return Cost(*bytes_of, counted.rows, counted.moves, counted=counted)
    if isinstance(work, Blocked):
        return _blocked_cost(work, lengths, places)
    if isinstance(work, Region):
        return _region_cost(work, lengths)
    if isinstance(work, OrderedLoop):
        return _ordered_cost(work, lengths)
    if isinstance(work, Nest):
        return _NestCost(work, lengths).cost(places)
    return _ContractionCost(work, lengths).cost(places)


def _region_cost(work: Region, lengths: Mapping[str, int]) -> Cost:
    """The cost of a loop, its bodies in each turn; of a case, that of its largest branch."""
    turns = _turns(work.op, lengths)
    each = [
        tuple([
            cost_of(kernel.work, lengths, _held_places(kernel, body.schedule.base))
            for kernel in body.schedule.kernels
        ])
        for body in work.bodies
    ]  # fmt: skip
    inner = max(each, key=lambda costs: sum(cost.read + cost.written for cost in costs))
    if work.op.primitive.name == "while":  # its condition and its body run in each turn
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
    """Where the operands lie of a kernel that changes a carry in its place; None of others."""
    if not kernel.writes:
        return None
    work = kernel.work
    calls = isinstance(work, Call)
    operands = [*(base[arg] for arg in work.op.args), work.op] if calls else work.operands
    return [Same(kernel.writes.get(op, op)) for op in operands]


def _turns(op: Op, lengths: Mapping[str, int]) -> int:
    """How often a region runs its body; where only a call shows that, a number that is likely."""
    if op.primitive.name == "scan":
        return evaluate(op.attrs[0].expression, lengths)
    if op.primitive.name == "while":
        limit = WhileAttributes(op.attrs).limit
        return LIKELY_TURNS if limit is None else min(limit, LIKELY_TURNS)
    return 1


def _ordered_cost(work: OrderedLoop, lengths: Mapping[str, int]) -> Cost:
    """The cost of an ordered loop: one pass of all turns of all rows."""
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
    """Counts of scalar code: rows by how often they run, and what is loaded."""

    def __init__(self, reaches: Reaches, operands: Sequence[Op]) -> None:
        self.reaches, self.operands = reaches, operands
        self.sizes = [reaches.number(op.axes.size) for op in operands]
        self.offsets: dict[tuple[int, bool], list[tuple[Affine, Reach]]] = {}

    def access(self, node: Load | Store, times: int, innermost: str | None, row: Reaches) -> Access:
        """A load or store, which is noted."""
        operand, offset, writes = node.operand, node.offset, isinstance(node, Store)
        size, itemsize = self.sizes[operand], self.operands[operand].dtype.itemsize
        whole = self.reaches.of(offset, innermost, size, itemsize)
        self.offsets.setdefault((operand, writes), []).append((offset, whole))
        each = row.of(offset, innermost, size, itemsize)
        return Access(operand, itemsize, writes, times, whole, each)

    def moves(self) -> tuple[tuple[int, int], ...]:
        """The bytes read, and written, of each operand; what was stored here is there already."""
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
    """The cost of work that moves so many bytes of each operand."""
    touched: dict[Hashable, int] = {}
    for operand, (read, written) in enumerate(moves):
        place = operand if places is None else places[operand]
        touched[place] = max(touched.get(place, 0), read, written)
    read, written = (sum(each[k] for each in moves) for k in range(2))
    return Cost(read, written, sum(touched.values()), rows, tuple(moves), **parts)


def _blocked_cost(
    work: Blocked, lengths: Mapping[str, int], places: Sequence[Hashable] | None
) -> Cost:
    """The cost of a chain: what its steps hand on is no traffic of memory."""
    steps = []
    moves = [[0, 0] for _ in work.operands]
    rows: Rows = {}
    for step, where in zip(work.whole, work.places, strict=True):
        cost = cost_of(step, lengths)
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
        self.row_count = self.turns(rows)
        self.lanes = nest.across.name if nest.across is not None else None
        self.rows: Rows = {}
        self.seen: set[int] = set()  # nodes that are known once, or once for each row
        self.runs: set[int] = set()  # random bits that the pass takes in order

    def turns(self, loops: Iterable[Loop]) -> int:
        total = 1
        for loop in loops:
            total *= self.reaches.extents[loop.name]
        return total

    def enter(self, loops: Iterable[Loop]) -> None:
        """Come to the loops of a pass, which may be other parts of an axis than another pass's."""
        for loop in loops:
            extent = self.reaches.number(loop.extent)
            self.reaches.extents[loop.name] = self.in_row.extents[loop.name] = extent

    def cost(self, places: Sequence[Hashable] | None) -> Cost:
        """What the nest does, its operands in these places; None where each has its own."""
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
        """What the passes of one piece do."""
        counted = _NestCost(piece, self.reaches.lengths)
        stages = counted.cost(None).stages
        for (row, dtype), times in counted.rows.items():
            note(self.rows, row, dtype, times)
        return [replace(stage, piece=True) for stage in stages]

    def stage(self, step: Pass | Store) -> Stage:
        """What one pass does, or a store of a value of the row."""
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
        """What the loops do for these values: their rows, by how often each is computed."""
        self.enter(loops)
        innermost = self.lanes or (loops[-1].name if loops else None)
        turns = self.row_count * self.turns(loops)
        rows: Rows = {}
        once: Rows = {}
        accesses: list[Access] = []
        widest = 1
        for value in walk(*values):
            element = self.depths.value(value) == ELEMENT and bool(loops)
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
    """Whether a nest is computed by its pieces where the open lengths are ``lengths``."""
    return bool(nest.pieces) and all(evaluate(size, lengths) >= 0 for size in nest.holds)


class _ContractionCost:
    def __init__(self, made: Contraction, lengths: Mapping[str, int]) -> None:
        self.made = made
        self.loops = (*made.batch, *made.rows, *made.columns, *made.summed)
        self.reaches = Reaches(self.loops, lengths)
        self.counts = _Counts(self.reaches, made.operands)

    def cost(self, places: Sequence[Hashable] | None) -> Cost:
        """What the contraction does: its sums, and rows for each element read or stored."""
        made = self.made
        batch, rows, columns, depth = (
            self.turns(loops) for loops in (made.batch, made.rows, made.columns, made.summed)
        )
        sizes = (batch * rows * depth, batch * columns * depth)
        left = self.operand(made.left, sizes[0])
        right = self.operand(made.right, sizes[1])
        store = self.store(batch * rows * columns)
        total = dict(store.rows)
        for each, size in ((left, sizes[0]), (right, sizes[1])):
            for (row, dtype), times in each.items():
                note(total, row, dtype, times * size)
        if made.pieces:  # each has its part of the terms
            terms = sum(self.terms(piece) for piece in made.pieces)
            depth = terms // max(batch * rows * columns, 1)
        note(total, MULTIPLY_ADD, name_of(made.dtype), batch * rows * columns * depth)
        along = tuple([self.is_along_sum(value) for value in (made.left, made.right)])
        itemsize = made.dtype.itemsize
        product = Product(batch, rows, columns, depth, itemsize, left, right, along, store)
        return _made(self.counts.moves(), places, total, product=product)

    def terms(self, piece: Contraction) -> int:
        """The products that a piece adds up."""
        loops = (*piece.batch, *piece.rows, *piece.columns, *piece.summed)
        return math.prod(self.reaches.number(loop.extent) for loop in loops)

    def is_along_sum(self, value: Scalar) -> bool:
        """Whether an operand's elements adjoin along a summed index."""
        return unit_of(value, self.loops) in {loop.name for loop in self.made.summed}

    def turns(self, loops: Iterable[Loop]) -> int:
        total = 1
        for loop in loops:
            total *= self.reaches.extents[loop.name]
        return total

    def operand(self, value: Scalar, size: int) -> Rows:
        """The rows that one element of an operand takes; its loads are noted."""
        rows: Rows = {}
        for node in walk(value):
            count(rows, node, 1)
            if isinstance(node, Load):
                self.counts.access(node, size, None, self.reaches)
        return rows

    def store(self, elements: int) -> Stage:
        """What is done with each sum."""
        rows: Rows = {}
        accesses: list[Access] = []
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
