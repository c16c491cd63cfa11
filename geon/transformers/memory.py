"""Stage 5: the plan. Which buffer each value lives in, how long, and what is computed in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..op_graph.lengths import Length, evaluate, names_of
from ..op_graph.op_graph import Leaf, Op, among
from .place import place
from .schedule import Schedule, bytes_of


@dataclass(frozen=True, slots=True)
class Buffer:
    """Arena memory: ``size`` bytes, alive from kernel ``first`` to kernel ``last``."""

    size: int | Length
    first: int
    last: int


@dataclass(frozen=True, eq=False, slots=True)
class Home:
    """Where a value lives: ``arena`` buffer number, ``result`` number, or a ``variable``."""

    kind: str
    number: int = 0
    leaf: Leaf | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """Kernels in order and the home of every value they compute.

    ``kept`` has for some kernels, by ``op``, the copy that they keep from call to call.
    """

    schedule: Schedule
    homes: dict[Op, Home]
    buffers: tuple[Buffer, ...]
    last_use: dict[Op, int]
    hidden: tuple[tuple[int, int | Length], ...]
    kept: dict[Op, Any] = field(default_factory=dict)

    @property
    def lifetimes(self) -> list[tuple[int, int]]:
        """First and last kernel of each arena buffer."""
        return [(buffer.first, buffer.last) for buffer in self.buffers]


def plan_memory(schedule: Schedule, reuse: bool = True) -> Plan:
    """Homes for all values: in place where the input dies, else arena buffers that share memory.

    With ``reuse=False`` each value has a buffer of its own that lives throughout: the plan that
    others are compared with.
    """
    positions = {op: k for k, kernel in enumerate(schedule.kernels) for op in kernel.results}
    last_use = dict(positions)
    for k, kernel in enumerate(schedule.kernels):
        for value in kernel.reads:
            last_use[value] = k
    homes = _homes(schedule, positions, last_use, reuse)
    spans: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int | Length] = {}
    for op, home in homes.items():
        if home.kind == "arena":
            first, last = spans.get(home.number, (positions[op], last_use[op]))
            spans[home.number] = (min(first, positions[op]), max(last, last_use[op]))
            sizes[home.number] = bytes_of(op)
    numbers = sorted(spans, key=lambda n: spans[n])
    renumbered = {old: new for new, old in enumerate(numbers)}
    end = len(schedule.kernels)
    buffers = tuple(Buffer(sizes[n], *(spans[n] if reuse else (0, end))) for n in numbers)
    homes = {
        op: Home("arena", renumbered[home.number]) if home.kind == "arena" else home
        for op, home in homes.items()
    }
    return Plan(schedule, homes, buffers, last_use, _hidden(schedule), _kept(schedule))


def _homes(
    schedule: Schedule, positions: dict[Op, int], last_use: dict[Op, int], reuse: bool
) -> dict[Op, Home]:
    """The home of each kernel's result; walked backwards, so that a dying input can join it."""
    results: dict[Op, int] = {op: k for k, op in enumerate(schedule.program.outputs)}
    reads = _leaf_reads(schedule)
    calm = 1 + max((k for k, kernel in enumerate(schedule.kernels) if kernel.raises), default=-1)
    homes: dict[Op, Home] = {}
    joined: set[Op] = set()
    buffers = 0
    for k in range(len(schedule.kernels) - 1, -1, -1):
        kernel = schedule.kernels[k]
        for op in kernel.results:
            if op in homes:
                continue
            if op in kernel.writes:
                homes[op] = Home("variable", 0, kernel.writes[op])
            elif op in results:
                homes[op] = Home("result", results[op])
            else:
                homes[op] = Home("arena", buffers)
                buffers += 1
        if not reuse:
            continue
        for op, value in kernel.may_join:
            if value in homes or isinstance(value, Leaf) or last_use[value] != k or op in joined:
                continue
            made = positions[value]
            if value in results or not _may_join(schedule, homes[op], value, made, reads, calm):
                continue
            homes[value] = homes[op]
            joined.add(op)
    return homes


def _leaf_reads(schedule: Schedule) -> dict[Op, list[int]]:
    reads: dict[Op, list[int]] = {}
    for k, kernel in enumerate(schedule.kernels):
        for value in kernel.reads:
            if isinstance(value, Leaf):
                reads.setdefault(value, []).append(k)
    return reads


def _may_join(
    schedule: Schedule, home: Home, value: Op, made: int, reads: dict[Op, list[int]], calm: int
) -> bool:
    """Whether ``value``, which kernel ``made`` computes, may be computed in ``home`` already.

    A variable's storage is free once everything that reads the old value has run (its producer may
    read it in place), and from kernel ``calm`` on, after which nothing raises.
    """
    producer = schedule.kernels[made]
    if value in producer.writes:
        return False
    if home.leaf is None:
        return True
    late = [k for k in reads.get(home.leaf, ()) if k >= made]
    if any(k > made for k in late) or (late and not among(home.leaf, producer.in_place[value])):
        return False
    return made >= calm


def _hidden(schedule: Schedule) -> tuple[tuple[int, int | Length], ...]:
    """Bytes that library calls take by themselves, by kernel."""
    found = []
    for k, kernel in enumerate(schedule.kernels):
        each = schedule.target.hidden.get(kernel.op.primitive.name)
        if each is not None:
            size: int | Length = each
            for length in kernel.op.args[0].axes.lengths:
                size = size * length
            found.append((k, size))
    return tuple(found)


def _kept(schedule: Schedule) -> dict[Op, Any]:
    """The copies that kernels keep from call to call, by kernel."""
    keeps = schedule.target.keeps
    if keeps is None:
        return {}
    found = ((kernel.op, keeps(schedule, kernel)) for kernel in schedule.kernels)
    return {op: kept for op, kept in found if kept is not None}


@dataclass(frozen=True, slots=True)
class Placement:
    """A plan under given lengths: offsets of the arena's buffers, and bytes."""

    offsets: tuple[int, ...]
    arena_bytes: int
    result_bytes: int
    hidden_bytes: int
    kept_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """What a call takes beside its inputs and the variables."""
        return self.arena_bytes + self.result_bytes + self.hidden_bytes + self.kept_bytes


def place_plan(plan: Plan, lengths: Mapping[str, int]) -> Placement:
    """Offsets and exact sizes of a plan under ``lengths``."""
    sizes = [evaluate(buffer.size, lengths) for buffer in plan.buffers]
    offsets, total = place(sizes, plan.lifetimes, plan.schedule.target.alignment)
    results = sum(evaluate(bytes_of(op), lengths) for op in plan.schedule.program.outputs)
    hidden = max((evaluate(size, lengths) for _, size in plan.hidden), default=0)
    kept = sum(copy.bytes(lengths) for copy in plan.kept.values())
    return Placement(tuple(offsets), total, results, hidden, kept)


def peak(plan: Plan, lengths: Mapping[str, int]) -> int | Length:
    """Peak bytes under ``lengths``; the sum of all sizes over the open names where some miss."""
    outputs = plan.schedule.program.outputs
    sizes = [buffer.size for buffer in plan.buffers] + [bytes_of(op) for op in outputs]
    needed = {name for size in sizes for name in names_of(size)}
    for copy in plan.kept.values():
        needed |= {name for size in (copy.size, copy.rows) for name in names_of(size)}
    if needed <= set(lengths):
        return place_plan(plan, lengths).peak_bytes
    total: int | Length = 0
    kept = [copy.size for copy in plan.kept.values()]
    for size in [*sizes, *(size for _, size in plan.hidden), *kept]:
        total = total + size
    return total
