"""The least time of a kernel, and of a program, that the machine's measured rates allow.

A kernel's ceiling is the larger of two times. One is that of its bytes: each element of an operand
that it reads and of a result that it writes counted once, at the rate that was measured where the
operand comes from: as far away as bytes were touched since it last was, in memory where these are
more than the last cache holds, and where it is a result, whose memory is another at each call. The
other is that of its operations: at the measured rate of multiply-adds, or, where that is longer,
that of the vector instructions of its primitives at the measured rate of instructions, divisions
and roots at theirs. An exponential is 21 instructions, few of which multiply and add. Primitives
without vectors count as multiply-adds, since other code could compute them in vectors. A gather or
scatter counts lines of cache of 64 bytes: one for each run of neighbours that one position stands
for, from where the table lies. A sort counts passes over each of its lines, in the cache that the
line fits: one for each byte of an element, or log2 of the length where that is fewer; where
positions are asked for they are moved, too. A word of random bits counts 20 operations. No time for
starting threads is counted, none for page faults of a result's memory, and none for anything twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.op_graph import Leaf, Op, post_order
from geon.op_graph.values.dtypes import name_of, named_dtype
from geon.transformers.kernels.analysis.footprint import CACHE_LINE_BYTES
from geon.transformers.kernels.analysis.op_counts import INDEX, MULTIPLY_ADD
from geon.transformers.kernels.costs.kernel_costs import Cost, cost_of
from geon.transformers.kernels.costs.machine import Machine
from geon.transformers.kernels.ir.nest import Call, Nest
from geon.transformers.kernels.ir.scalar_code import NODES, Load, inner_indices, walk
from geon.transformers.kernels.products.row_blocking import Blocked
from geon.transformers.lowering.planning.cost_report import operand_places
from geon.transformers.lowering.planning.schedule import Schedule
from geon.transformers.sizes.ceilings import Ceilings

SORTS = frozenset({"sort", "argsort", "top_k"})
POSITION = 8  # bytes
FAR_AWAY = 1 << 29  # bytes: what was touched so long ago lies in memory
WORD = 20  # operations of one word of Philox 4x32-10
FREE = frozenset("copy stop_gradient checked".split())


@dataclass(frozen=True)
class Ceiling:
    """The least seconds of a kernel by its bytes, by its operations, by the lines of cache that
    positions take, and by the passes of a sort."""

    traffic: float
    arithmetic: float
    lines: float = 0.0
    passes: float = 0.0

    @property
    def seconds(self) -> float:
        """The largest of them."""
        return max(self.traffic, self.arithmetic, self.lines, self.passes)

    @property
    def by(self) -> str:
        """Which one that is."""
        found = {"bytes": self.traffic, "operations": self.arithmetic, "lines": self.lines,
                 "passes": self.passes}  # fmt: skip
        return max(found, key=lambda name: found[name])


def kernel_ceilings(
    schedule: Schedule,
    lengths: Mapping[str, int],
    machine: Machine,
    threads: int,
    place: Callable[[Op], Hashable],
) -> list[Ceiling]:
    """The ceiling of each kernel in a call that is one of many; ``place`` says where values lie."""
    limits = machine.on(threads)
    places = [operand_places(schedule, kernel, place) for kernel in schedule.kernels]
    costs = [
        cost_of(kernel.work, lengths, found)
        for kernel, found in zip(schedule.kernels, places, strict=True)
    ]
    recent: dict[Hashable, int] = {}
    found: list[Ceiling] = []
    for turn in range(2):  # the second one finds memory as an earlier call left it
        recent = {where: size for where, size in recent.items() if not is_result(where)}
        for kernel, cost, where in zip(schedule.kernels, costs, places, strict=True):
            if turn:
                away = [max(since(recent, each), cost.touched) for each in where]
                away = [FAR_AWAY if size > machine.caches[-1] else size for size in away]
                traffic = moved_seconds(cost, where, away, limits)
                lines = line_seconds(kernel.work, lengths, limits)
                arithmetic = operation_seconds(kernel, cost, lengths, machine, limits)
                passes = sort_seconds(kernel.work, lengths, limits)
                found.append(Ceiling(traffic, arithmetic, lines, passes))
            for each, move in zip(where, cost.moves, strict=True):
                recent.pop(each, None)
                recent[each] = max(move)
    return found


def is_result(place: Hashable) -> bool:
    """Whether a place, as ``place_of`` says it, is the memory of a result."""
    return isinstance(place, tuple) and place[0] == "result"


def since(recent: dict[Hashable, int], place: Hashable) -> int:
    """The bytes touched since a place was, its own among them."""
    total = 0
    for other in reversed(recent):
        total += recent[other]
        if other == place:
            return total
    return FAR_AWAY


def moved_seconds(cost: Cost, places: list[Any], away: list[int], limits: Ceilings) -> float:
    """The time of the bytes of each operand, by how far away it lies."""
    reads = sum(read for read, _ in cost.moves)
    writes = sum(written for _, written in cost.moves)
    total = 0.0
    for size, (read, written) in zip(away, cost.moves, strict=True):
        if read + written:
            total += (read + written) / limits.bandwidth(size, reads, writes)
    return total


def operation_seconds(
    kernel: Any, cost: Cost, lengths: Mapping[str, int], machine: Machine, limits: Ceilings
) -> float:
    """The time of a kernel's operations, or of its vector instructions if that is longer."""
    counts = dict(cost.operations(machine))
    if isinstance(kernel.work, Call):
        dtype, count = call_operations(kernel.work.op, lengths)
        counts[dtype] = counts.get(dtype, 0) + count
    operations = sum(count / limits.flops(dtype) for dtype, count in counts.items())
    return max(operations, instruction_seconds(cost, machine, limits.threads))


def instruction_seconds(cost: Cost, machine: Machine, threads: int) -> float:
    """The time of the vector instructions of a kernel's primitives, in full vectors."""
    speeds, issued, divided = machine.speeds, 0.0, 0.0
    for (row, dtype), times in cost.rows.items():
        each, itemsize = machine.row(row, dtype), named_dtype(dtype).itemsize
        if row in (INDEX, MULTIPLY_ADD) or each.serial:
            continue
        vectors = times * itemsize / machine.vector_bytes
        issued += vectors * each.statements * speeds.statement
        divided += vectors * each.divisions * speeds.division[8 if itemsize == 8 else 4]
    return max(issued, divided) / threads


def call_operations(op: Op, lengths: Mapping[str, int]) -> tuple[str, int]:
    """The operations of a library's function that its cost does not count, and their dtype."""
    if op.primitive.name == "top_k":
        return name_of(op.args[0].dtype), elements(op.args[0], lengths)
    if op.primitive.name == "random_bits":
        return "int32", WORD * elements(op, lengths) * op.dtype.itemsize // 4
    return "float32", 0


def sort_seconds(work: Any, lengths: Mapping[str, int], limits: Ceilings) -> float:
    """The time of the passes of a sort; of the largest ones, those over what is found."""
    if not isinstance(work, Call) or work.op.primitive.name not in SORTS:
        return 0.0
    op = work.op
    length = int(evaluate(op.axes[op.attrs.axis].expression, lengths))
    if length < 2:
        return 0.0
    itemsize = op.args[0].dtype.itemsize
    width = itemsize + (POSITION if op.primitive.name != "sort" else 0)
    passes = min(itemsize, math.ceil(math.log2(length)))
    moved = 2 * passes * elements(op, lengths) * width
    return moved / limits.bandwidth(2 * length * width, 1, 1)


def line_seconds(work: Any, lengths: Mapping[str, int], limits: Ceilings) -> float:
    """The time of the lines of cache that computed positions take, from where the table lies."""
    if isinstance(work, Nest):
        return _nest_lines(work, lengths, limits)
    if isinstance(work, Blocked):
        return sum(line_seconds(step, lengths, limits) for step in work.whole)
    if isinstance(work, Call) and work.op.primitive.name == "scatter":
        table, index, value = work.op.args
        run = elements(value, lengths) // max(elements(index, lengths), 1)
        times = 2 if work.op.attrs.mode == "add" else 1
        size = elements(table, lengths) * table.dtype.itemsize
        return _lines(elements(value, lengths), run, table.dtype.itemsize, size, limits, times)
    return 0.0


def _nest_lines(nest: Nest, lengths: Mapping[str, int], limits: Ceilings) -> float:
    total = 0.0
    outer = [*nest.rows, *([nest.across] if nest.across is not None else [])]
    for step in (*nest.steps, *nest.ending):
        loops = [*outer, *getattr(step, "loops", ())]
        roots = [step] if not hasattr(step, "stores") else [*step.stores, *step.keeps]
        values = [each.value for each in roots]
        for each in getattr(step, "reductions", ()):
            values += each.elements
        seen = {node for node in walk(*values) if isinstance(node, Load)}
        for load in seen:
            computed = [atom for atom in load.offset.terms if _is_position(atom)]
            if not computed:
                continue
            counts = {loop.name: int(evaluate(loop.extent, lengths)) for loop in loops}
            plain = [atom for atom in load.offset.terms if isinstance(atom, str)]
            run = 1
            for atom in plain:
                if int(evaluate(load.offset.terms[atom], lengths)) == 1:
                    run = counts.get(atom, 1)
            all_of = math.prod(counts.values())
            op = nest.operands[load.operand]
            size = elements(op, lengths) * op.dtype.itemsize
            total += _lines(all_of, run, op.dtype.itemsize, size, limits)
    return total


def _is_position(atom: Any) -> bool:
    """Whether an atom is a computed position, or a part of the division of one."""
    if isinstance(atom, NODES):
        return True
    return any(_is_position(each) for index in inner_indices(atom) for each in index.terms)


def _lines(
    count: int, run: int, itemsize: int, size: int, limits: Ceilings, times: int = 1
) -> float:
    """The time of ``count`` elements of a table of ``size`` bytes, in runs of neighbours."""
    each = math.ceil(max(run, 1) * itemsize / CACHE_LINE_BYTES) * CACHE_LINE_BYTES
    moved = count / max(run, 1) * each * times
    return moved / limits.bandwidth(size, 1, times - 1)


def elements(op: Op, lengths: Mapping[str, int]) -> int:
    """How many elements a value has."""
    return int(evaluate(op.axes.size, lengths))


# Programs -----------------------------------------------------------------------------------------


def program_ceiling(
    roots: list[Op], lengths: Mapping[str, int], machine: Machine, threads: int
) -> float:
    """The least time of a graph: the bytes of its inputs and results, or its operations.

    Each op of the graph counts once. Inputs lie as far away as all of these bytes, results in
    memory.
    """
    limits = machine.on(threads)
    counts: dict[str, int] = {}
    read = written = 0
    for op in post_order(roots):
        if isinstance(op, Leaf):
            read += elements(op, lengths) * op.dtype.itemsize
        else:
            dtype, count = graph_operations(op, lengths, machine)
            counts[dtype] = counts.get(dtype, 0) + count
    for op in set(roots):
        written += elements(op, lengths) * op.dtype.itemsize
    size = read + written if read + written <= machine.caches[-1] else FAR_AWAY
    traffic = read / limits.bandwidth(size, read, written)
    traffic += written / limits.bandwidth(FAR_AWAY, read, written)
    return max(traffic, sum(count / limits.flops(dtype) for dtype, count in counts.items()))


def graph_operations(op: Op, lengths: Mapping[str, int], machine: Machine) -> tuple[str, int]:
    """The operations of one op, and the dtype they are done in."""
    row = op.primitive
    dtype = name_of((op.args[-1] if op.args else op).dtype)
    if row.name == "dot":
        depth = 1
        for name in op.attrs.over:
            depth *= int(evaluate(op.args[0].axes[name].expression, lengths))
        return dtype, 2 * depth * elements(op, lengths)
    if row.kind == "reduction" or row.name in ("cumsum", "cumprod"):
        return dtype, elements(op.args[0], lengths)
    if row.kind == "elementwise" and row.name not in FREE:
        return dtype, machine.row(row.name, dtype).operations * elements(op, lengths)
    return call_operations(op, lengths)
