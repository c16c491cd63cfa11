"""Predicted times of kernels by the roofline model: memory traffic against arithmetic, per pass.

After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", 2009. Beyond the two ceilings, the model covers the issue of loads and
stores, strided elements, dependent additions, and operands that an earlier pass left in a cache.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.values.dtypes import named_dtype
from ...sizes.blocks import CACHE_LINE_BYTES
from ...sizes.limits import MIN_WORK, MISSES_PER_PAGE, PAGE_BYTES
from ...sizes.product_blocks import Shape
from ...sizes.product_cut import cut_product
from ...sizes.product_plan import STREAM, THIN, TILES
from ...sizes.product_problem import PlannedProduct, ProductSizes
from ..analysis.footprint import FAR, UNIT
from ..analysis.op_counts import INDEX, Rows
from ..ir.nest import Call, Nest, Region
from ..nests.unrolled_reductions import MAX_SERIAL_TERMS
from ..products.contraction import Contraction
from ..products.row_blocking import Blocked
from ..scans.sequential_scan import OrderedLoop
from .kernel_costs import AccessCost, Cost, ProductCost, Stage, StepCost, cost_of
from .machine import Machine, RowCost

DIVISION_LATENCY_ADDS = 4  # latency of a quotient or root, in dependent additions


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted ``seconds`` of a kernel, ``bytes`` that it moves, ``operations`` it executes."""

    seconds: float
    bytes: int
    operations: int


def predict(
    work: Nest | Contraction | Blocked | OrderedLoop | Region | Call,
    lengths: Mapping[str, int],
    machine: Machine,
    threads: int = 1,
    places: Sequence[Hashable] | None = None,
    parts: Sequence[Any] = (),
) -> Prediction:
    """Return the prediction for a kernel run alone, for the open lengths ``lengths``.

    ``places`` and ``parts`` as for ``cost_of``. ``KeyError`` if a length is missing.
    """
    return prediction(cost_of(work, lengths, places, parts), machine, threads)


def prediction(
    cost: Cost, machine: Machine, threads: int = 1, behind: Sequence[float] | None = None
) -> Prediction:
    """Return the prediction for work of this cost.

    ``behind`` gives, for each operand, the bytes touched since its last use, which decide the cache
    level that it comes from. Default: the bytes that the kernel touches.
    """
    seconds = _Predictor(cost, machine, threads, behind).seconds()
    return Prediction(seconds, cost.read + cost.written, sum(cost.operations(machine).values()))


class _Predictor:
    def __init__(
        self, cost: Cost, machine: Machine, threads: int, behind: Sequence[float] | None
    ) -> None:
        self.cost, self.machine = cost, machine
        small = sum(cost.rows.values()) + (cost.read + cost.written) // 4 < MIN_WORK
        self.threads = 1 if small else max(threads, 1)
        self.ceilings = machine.on(self.threads)
        self.alone = machine.on(1)
        self.speeds = machine.speeds
        self.behind = [max(each, cost.touched) for each in behind or [0.0] * len(cost.moves)]
        in_place = cost.read + cost.written - cost.touched
        self.in_place = min(in_place / cost.written, 1.0) if cost.written else 0.0
        self.known: set[int] = set()  # numbers of operands that an earlier pass has accessed

    def seconds(self) -> float:
        """Return the seconds of the kernel: launch overhead plus work."""
        return self.speeds.start + self.speeds.wake * (self.threads - 1) + self.work()

    def work(self) -> float:
        """Return the seconds of the stages in sequence, without launch overhead."""
        speeds = self.speeds
        if self.cost.counted is not None:
            counted = self.cost.counted
            steps = counted.steps * speeds.serial
            steps += counted.picked * speeds.at(speeds.far, counted.among)
            return overlap_seconds(steps / self.threads, self.fetched(self.cost.moves))
        if self.cost.product is not None:
            return self.product(self.cost.product)
        if self.cost.steps:
            return self.chain(self.cost.steps)
        if self.cost.inner:
            each = [prediction(cost, self.machine, self.threads) for cost in self.cost.inner]
            return self.cost.turns * sum(found.seconds for found in each)
        return sum(self.stage(stage) for stage in self.cost.stages)

    def chain(self, steps: Sequence[StepCost]) -> float:
        """Return the seconds of a chain's steps, whose intermediates stay in a block of memory."""
        found = 0.0
        behind = dict(enumerate(self.behind))
        for step in steps:
            inside = _Predictor(step.cost, self.machine, self.threads, None)
            inside.threads, inside.ceilings = self.threads, self.ceilings
            inside.behind = [
                self.cost.block if place.inner else behind[place.number] for place in step.places
            ]
            found += inside.work()
            for place in step.places:
                if not place.inner:  # the next step finds the block in cache
                    behind[place.number] = min(behind[place.number], 2 * self.cost.block)
        return found

    def fetched(self, moves: Sequence[tuple[float, float]]) -> float:
        """Return the seconds to move bytes (read, written) of each operand from its cache level.

        A result that overwrites an operand is in cache already; its write-back overlaps with reads.
        """
        reads, writes = (sum(each[k] for each in moves) for k in range(2))
        writes *= 1 - self.in_place
        found = 0.0
        for size, (read, written) in zip(self.behind, moves, strict=True):
            bytes_of = read + written * (1 - self.in_place)
            if bytes_of:
                found += bytes_of / self.ceilings.bandwidth(size, reads, writes, plain=True)
        return found

    def again(self, size: float, reads: float, writes: float = 0.0) -> float:
        """Return the seconds to move bytes within a working set of ``size`` bytes."""
        if reads + writes == 0:
            return 0.0
        return (reads + writes) / self.ceilings.bandwidth(size, reads, writes, plain=True)

    # Passes -------------------------------------------------------------------------------------

    def stage(self, stage: Stage) -> float:
        """Return the seconds of one pass: arithmetic overlapped with memory traffic."""
        return overlap_seconds(self.computed(stage), self.moved(stage))

    def at_once(self, stage: Stage) -> int:
        """Return the number of rows that are processed in vector lanes together."""
        rows = min(stage.inner, self.machine.side_by_side) if stage.side_by_side else 1
        return max(rows, 1)

    def block_bytes(self, access: AccessCost, at_once: int) -> int:
        """Return the bytes of cache lines that a block of ``at_once`` rows touches."""
        if access.reach.step == UNIT:
            return max(access.row.elements * access.itemsize * at_once, access.row.elements)
        return access.row.line_bytes * (at_once if access.reach.step == FAR else 1)

    def moved(self, stage: Stage) -> float:
        """Return the seconds of memory traffic: first touches from memory, others from cache."""
        moves = [[0.0, 0.0] for _ in self.cost.moves]
        again = 0.0
        rows = self.at_once(stage)
        blocks = math.ceil(stage.begins / rows)
        block = {id(a): self.block_bytes(a, rows) if stage.side_by_side else a.row.line_bytes
                 for a in stage.accesses}  # fmt: skip
        footprint = sum(block.values()) + stage.kept * stage.turns / max(stage.begins, 1)
        runs = 0.0
        for operand, writing in {(a.operand, a.writes): None for a in stage.accesses}:
            same = [a for a in stage.accesses if (a.operand, a.writes) == (operand, writing)]
            whole = max(a.reach.line_bytes for a in same)
            if operand in self.known and not stage.piece:
                again += max(whole, blocks * max(block[id(a)] for a in same))
            else:
                moves[operand][writing] += whole
            runs += max((a.times for a in same if a.reach.step == UNIT), default=0) / rows
        self.known.update(a.operand for a in stage.accesses)
        found = self.fetched([(read, written) for read, written in moves])
        found += self.again(footprint, again)
        if stage.side_by_side and rows < stage.inner:
            # Each block restarts the stream of each row, before the prefetcher detects it.
            furthest = max(self.behind, default=0.0)
            found += runs * self.speeds.at(self.speeds.latency, furthest) / self.threads
        return found

    def computed(self, stage: Stage) -> float:
        """Return the seconds of all iterations: arithmetic, or loads and stores if longer."""
        lanes = min(self.machine.lanes(stage.itemsize), max(stage.inner, 1))
        serial = self.is_serial(stage.rows)
        vectors = stage.turns / lanes
        if serial:
            lanes, vectors = 1, float(stage.turns)
        total = self.scalar_code(stage.rows, lanes, serial)
        far = sum(self.far(a) for a in stage.accesses)
        near = 0.0
        loads: float = sum(
            a.times * a.itemsize for a in stage.accesses if not a.writes and is_near(a)
        )
        stores = sum(a.times * a.itemsize for a in stage.accesses if a.writes and is_near(a))
        loads += self.shifted(stage)
        if stage.side_by_side:
            loads += stage.reductions * stage.turns * stage.itemsize
            stores += stage.reductions * stage.turns * stage.itemsize
        stores += stage.kept * stage.turns
        if loads + stores:
            near = (loads + stores) / self.alone.bandwidth(self.machine.caches[0], loads, stores)
        if stage.reductions and not stage.side_by_side:
            total = max(total, vectors * self.speeds.chain)
            folds = max(stage.begins, vectors / MAX_SERIAL_TERMS)
            total += folds * stage.reductions * 2 * math.log2(2 * lanes) * self.speeds.chain
        return (max(total, near + far) + self.between(stage, lanes)) / self.threads

    def between(self, stage: Stage, lanes: int) -> float:
        """Return the seconds of the code that runs once per row, as a dependent chain."""
        if stage.side_by_side:
            return self.scalar_code(stage.once, lanes)
        found = 0.0
        for (row, dtype), times in stage.once.items():
            cost = self.machine.row(row, dtype)
            steps = cost.statements + (DIVISION_LATENCY_ADDS - 1) * cost.divisions
            each = self.one_by_one(cost) if cost.serial else steps * self.speeds.chain
            found += times * each
        return found

    def one_by_one(self, cost: RowCost) -> float:
        """Return the seconds of one element of a serial primitive: own code or library call."""
        own = cost.statements > 1
        return cost.statements * self.speeds.serial if own else self.speeds.call

    def shifted(self, stage: Stage) -> float:
        """Return the bytes of loads that may straddle cache lines.

        Of several shifted loads of one operand, at most one can be aligned.
        """
        found = 0.0
        seen: set[int] = set()
        for access in stage.accesses:
            if not access.writes and access.reach.step == UNIT:
                found += access.times * access.itemsize * (access.operand in seen)
                seen.add(access.operand)
        return found

    def is_serial(self, rows: Rows) -> bool:
        """Return True if one of the primitives prevents vectorisation."""
        return any(self.machine.row(row, dtype).serial for row, dtype in rows)

    def scalar_code(self, rows: Rows, lanes: int, serial: bool = False) -> float:
        """Return the seconds of the primitives ``rows``, with ``lanes`` elements per vector."""
        statements = divisions = calls = 0.0
        for (row, dtype), times in rows.items():
            cost, itemsize = self.machine.row(row, dtype), named_dtype(dtype).itemsize
            if cost.serial:
                calls += times * self.one_by_one(cost)
                continue
            vectors = times / min(lanes, self.machine.lanes(4 if row == INDEX else itemsize))
            statements += vectors * cost.statements
            divisions += vectors * cost.divisions * self.speeds.division[8 if itemsize == 8 else 4]
        each = self.speeds.serial if serial else self.speeds.statement
        return max(statements * each, divisions) + calls

    def far(self, access: AccessCost) -> float:
        """Return the seconds to gather elements that are not adjacent."""
        if is_near(access):
            return 0.0
        size = access.row.line_bytes if access.row.elements > 1 else max(self.behind)
        if access.reach.scattered:
            size = access.reach.line_bytes
        elif access.reach.line_bytes < CACHE_LINE_BYTES * access.reach.elements:
            size = 0  # several elements per cache line, which is fetched once
        return access.times * self.speeds.at(self.speeds.far, size)

    # Products -----------------------------------------------------------------------------------

    def product(self, product: ProductCost) -> float:
        """Return the seconds of a contraction by the algorithm of its plan, with its epilogue."""
        planned = product.planned
        if planned is None:  # before there are forms
            of = self.machine.shapes[8 if product.itemsize == 8 else 4]
            planned = PlannedProduct(of, False, None, *product.strides)
        plan = planned.plan_for(product.sizes)
        sizes = product.sizes.transposed() if plan.exchanged else product.sizes
        if plan.way == TILES:
            found = self.tiles(product, planned.of, sizes) + self.packing(product, planned)
        else:
            found = self.few(product, sizes, plan.way != STREAM)
            if plan.way == THIN:
                found += self.packing(product, planned)
        return found + self.stored(product)

    def tiles(self, product: ProductCost, of: Shape, sizes: ProductSizes) -> float:
        """Return the seconds of register tiles, which compute whole tiles at the borders too."""
        height = of.heights[0] if sizes.rows >= of.heights[0] else max(sizes.rows, 1)
        lanes = self.machine.lanes(product.itemsize)
        panel = of.panel if sizes.columns > lanes else lanes
        padded = math.ceil(sizes.rows / height) * height * math.ceil(sizes.columns / panel) * panel
        rate = self.speeds.tile[8 if product.itemsize == 8 else 4]
        return 2 * sizes.batches * padded * sizes.depth / rate / self.threads

    def few(self, product: ProductCost, sizes: ProductSizes, dots: bool) -> float:
        """Return the seconds of a stream or of dot products, without packing."""
        elements = sizes.batches * sizes.rows * sizes.columns
        flops = 2 * elements * sizes.depth
        rate = self.speeds.stream[8 if product.itemsize == 8 else 4]
        loads = sizes.batches * sizes.columns * sizes.depth * product.itemsize
        near = loads / self.alone.bandwidth(self.machine.caches[0], 1, 0)
        seconds = max(flops / rate, near)
        if dots:  # a horizontal add ends each sum
            lanes = self.machine.lanes(product.itemsize)
            seconds += math.log2(2 * lanes) * elements * self.speeds.statement
        line = product.itemsize * (sizes.depth if dots else sizes.columns)
        if line < PAGE_BYTES:
            seconds += self.waits()
        fetched = self.fetched([(read, 0) for read, _ in self.cost.moves])
        return overlap_seconds(seconds / self.threads, fetched)

    def waits(self) -> float:
        """Return the seconds that short rows wait: the prefetcher restarts in each page."""
        found = 0.0
        for size, (read, _) in zip(self.behind, self.cost.moves, strict=True):
            if size > self.machine.caches[1]:
                found += (
                    MISSES_PER_PAGE * read / PAGE_BYTES * self.speeds.at(self.speeds.latency, size)
                )
        return found

    def packing(self, product: ProductCost, planned: PlannedProduct) -> float:
        """Return the seconds to pack both operands and to spill partial sums between blocks."""
        lanes, sizes = self.machine.lanes(product.itemsize), product.sizes
        least = ProductSizes(*[max(size, 1) for size in astuple(sizes)[:4]])
        cut = cut_product(planned.of, planned.problem(least, self.threads))
        left = math.prod((sizes.batches, sizes.rows, sizes.depth, cut.column_blocks))
        right = math.prod((sizes.batches, sizes.columns, sizes.depth))
        right *= 1 if cut.packed_columns else cut.row_blocks
        moved = 2.0 * (left + right)
        total = self.scalar_code(_times(product.left, left), lanes)
        total += self.scalar_code(_times(product.right, right), lanes)
        blocks = math.ceil(sizes.depth / cut.depth_block)
        moved += sizes.batches * sizes.rows * sizes.columns * 2.0 * blocks
        # Packed blocks and sums lie in the second-level cache.
        second = self.machine.caches[min(1, len(self.machine.caches) - 1)] / 2
        total += moved * product.itemsize / self.alone.bandwidth(second, 1, 1)
        return max(total / self.threads, self.fetched([(read, 0) for read, _ in self.cost.moves]))

    def stored(self, product: ProductCost) -> float:
        """Return the seconds of the epilogue."""
        moves = [[0.0, 0.0] for _ in self.cost.moves]
        for access in product.store.accesses:
            moves[access.operand][access.writes] += access.reach.line_bytes
        fetched = self.fetched([(read, written) for read, written in moves])
        return overlap_seconds(self.computed(product.store), fetched)


def is_near(access: AccessCost) -> bool:
    """Return True if consecutive iterations access adjacent elements, or the same one."""
    return access.reach.step != FAR


def overlap_seconds(first: float, second: float) -> float:
    """Return the seconds of two overlapping activities that slow each other down.

    That is about the longer one if the other is short, and 1.41 times one if both are equal.
    """
    return math.hypot(first, second)


def _times(rows: Rows, times: int) -> Rows:
    return {key: count * times for key, count in rows.items()}
