"""Stage 5, the memory plan: the buffer of each value, its live range, and in-place results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import partial
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import Length, evaluate
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, Same, among
from ...kernels.ir.nest import Region
from ...runtime.arena import place
from ...sizes.buffers import Buffer
from ..facts.value_sizes import bytes_of
from .kernel_forms import FormTable, KernelForm, Place
from .schedule import Kernel, Schedule, carries_of
from .unaligned_places import unaligned_places


@dataclass(frozen=True, eq=False, slots=True)
class Home:
    """Memory of a value: ``arena`` buffer number, ``result`` number, or the variable ``leaf``."""

    kind: str
    number: int = 0
    leaf: Leaf | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Inside:
    """The plans of a region's bodies, within the arena of the surrounding plan.

    ``first`` has for each plan the arena number of its first buffer, ``steps`` the number of its
    first step. ``spare`` maps the number of a carry to its buffers besides its result: one to read
    while the other is written, or a single one if each step updates it in place. ``truth`` is the
    buffer of a condition. ``kept`` are the buffers of packed copies that kernels of a loop body
    keep from iteration to iteration, in order. ``unaligned`` are the places of each body that may
    have any element alignment.
    """

    plans: tuple[Plan, ...]
    first: tuple[int, ...]
    steps: tuple[int, ...]
    spare: dict[int, tuple[int, ...]]
    truth: int | None = None
    kept: tuple[int, ...] = ()
    unaligned: tuple[frozenset[Place], ...] = ()

    @property
    def own(self) -> tuple[int, ...]:
        """Return the buffers of the region that belong to none of its bodies."""
        found = [each for spare in self.spare.values() for each in spare]
        found += [] if self.truth is None else [self.truth]
        return (*found, *self.kept)


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """Kernels in order, and the memory of every value they compute.

    ``homes`` has the memory of each value. ``buffers`` are those of the arena. ``last_use`` is the
    time of the last read of a value. ``hidden`` are (kernel number, bytes) of memory that library
    calls allocate. By a kernel's ``op``, ``kept`` has the packed copy that it keeps from call to
    call (in a loop body, from iteration to iteration), ``scratch`` the number of its scratch
    buffer, ``inside`` the plans of its bodies, and ``forms`` what it runs: its loop trees. Forms
    are for vector registers of ``vector_bytes`` bytes. ``steps`` are the first and last step of
    each kernel. Buffers are reused unless ``reuse`` is False.
    """

    schedule: Schedule
    homes: dict[Op, Home]
    buffers: tuple[Buffer, ...]
    last_use: dict[Op, int]
    hidden: tuple[tuple[int, int | Length], ...]
    kept: dict[Op, Any] = field(default_factory=dict)
    scratch: dict[Op, int] = field(default_factory=dict)
    inside: dict[Op, Inside] = field(default_factory=dict)
    steps: tuple[tuple[int, int], ...] = ()
    forms: dict[Op, KernelForm] = field(default_factory=dict)
    vector_bytes: int = 0
    reuse: bool = True
    kept_numbers: dict[Op, int] = field(init=False)

    def __post_init__(self) -> None:
        numbers = {op: number for number, op in enumerate(self.kept)}
        object.__setattr__(self, "kept_numbers", numbers)

    @property
    def lifetimes(self) -> list[tuple[int, int]]:
        """Return the first and last step of each arena buffer."""
        return [(buffer.first, buffer.last) for buffer in self.buffers]

    @property
    def length(self) -> int:
        """Return the number of steps."""
        return self.steps[-1][1] + 1 if self.steps else 0

    def kernel_at(self, step: int) -> Kernel:
        """Return the kernel of a step; inside a region, the kernel of its body."""
        return next(kernel for at, kernel in kernels_of(self) if at == step)


def plan_memory(
    schedule: Schedule,
    reuse: bool = True,
    steady: Sequence[Op] | None = (),
    table: FormTable | None = None,
    unaligned: Set[Place] = frozenset(),
) -> Plan:
    """Return the plan: results in place where the input dies, else in shared arena buffers.

    With ``reuse=False`` each value has a buffer of its own throughout: the reference for
    comparisons. ``steady`` are the leaves of a body that are constant in all iterations; None for a
    body that has no memory for packed copies. ``table`` has the forms of kernels, a new one of the
    target by default. Values of a body at places ``unaligned`` may have any element alignment.
    """
    target = schedule.target
    if table is None:
        table = FormTable({}) if target.forms is None else target.forms()
    if any(kernel.raises for kernel in schedule.kernels):
        table = table.generated
    timed = list(zip(schedule.times, schedule.kernels, strict=True))
    positions = {op: time for time, kernel in timed for op in kernel.results}
    last_use = dict(positions)
    for time, kernel in timed:
        for value in kernel.reads:
            last_use[value] = time
    homes = _homes(schedule, last_use, reuse)
    place = partial(place_in, homes)
    planned, forms = [], dict[Op, KernelForm]()
    within: dict[Op, tuple[frozenset[Place], ...]] = {}
    for kernel in schedule.kernels:
        if isinstance(kernel.work, Region):
            within[kernel.op] = _unaligned_inside(schedule, kernel, place, unaligned)
        planned.append(_planned(kernel, reuse, table.generated, within.get(kernel.op, ())))
        form = table.form(kernel, place, unaligned, planned[-1])
        if form is not None:
            forms[kernel.op] = form
    steps = _steps(planned)
    waves = _waves(schedule.times, steps)
    spans: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int | Length] = {}
    for op, home in homes.items():
        if home.kind == "arena":
            begins, ends = waves[positions[op]][0], waves[last_use[op]][1]
            first, last = spans.get(home.number, (begins, ends))
            spans[home.number] = (min(first, begins), max(last, ends))
            sizes[home.number] = bytes_of(op)
    numbers = sorted(spans, key=lambda n: spans[n])
    renumbered = {old: new for new, old in enumerate(numbers)}
    end = steps[-1][1] + 1 if steps else 0
    buffers = [Buffer(sizes[n], *(spans[n] if reuse else (0, end))) for n in numbers]
    scratch = _add_scratch(schedule, forms, buffers, waves, end, reuse)
    inside = _add_bodies(schedule, buffers, steps, planned, within, end, reuse)
    homes = {
        op: Home("arena", renumbered[home.number]) if home.kind == "arena" else home
        for op, home in homes.items()
    }
    kept: dict[Op, Any] = {}
    if target.packed is not None and steady is not None:
        kept = target.packed(schedule, forms, steady)
    hidden = _hidden(schedule, planned)
    return Plan(
        schedule, homes, tuple(buffers), last_use, hidden, kept, scratch, inside, tuple(steps),
        forms, table.vector_bytes, reuse,
    )  # fmt: skip


def place_in(homes: Mapping[Op, Home], op: Op) -> Place:
    """Return the memory of ``op``, where values have these ``homes``; ops in one place share it."""
    if isinstance(op, Leaf):
        return "leaf", Same(op)
    if is_bound(op):
        return "constant", Same(op)
    home = homes[op]
    return ("leaf", Same(home.leaf)) if home.leaf is not None else (home.kind, home.number)


def kernels_of(plan: Plan, first: int = 0) -> Iterator[tuple[int, Kernel]]:
    """Yield the kernels of a plan with their steps from ``first`` on; for regions, those of bodies.

    Errors about checked positions and values that are not finite identify kernels by these steps.
    """
    for kernel, (begins, _) in zip(plan.schedule.kernels, plan.steps, strict=True):
        inside = plan.inside.get(kernel.op)
        if inside is None:
            yield first + begins, kernel
            continue
        for inner, at in zip(inside.plans, inside.steps, strict=True):
            yield from kernels_of(inner, first + at)


def _unaligned_inside(
    schedule: Schedule, kernel: Kernel, place: Callable[[Op], Place], unaligned: Set[Place]
) -> tuple[frozenset[Place], ...]:
    """Return the places of each body of a region that may have any element alignment."""
    assert isinstance(kernel.work, Region)
    operands = [place(schedule.base[arg]) for arg in kernel.work.op.args]
    results = list(map(place, kernel.results))
    return unaligned_places(kernel.work, operands, results, unaligned, schedule.target.alignment)


def _planned(
    kernel: Kernel, reuse: bool, table: FormTable, unaligned: Sequence[frozenset[Place]]
) -> tuple[Plan, ...]:
    """Return the plans of a kernel's bodies; those of scans keep packed copies."""
    if not isinstance(kernel.work, Region):
        return ()
    op = kernel.work.op
    loop = op.primitive.name == "scan"
    first = op.attrs.before_captures if loop else None
    return tuple([
        plan_memory(
            inner.schedule, reuse, None if first is None else inner.leaves[first:-1], table, places
        )
        for inner, places in zip(kernel.work.bodies, unaligned, strict=True)
    ])  # fmt: skip


def _steps(planned: Sequence[Sequence[Plan]]) -> list[tuple[int, int]]:
    """Return the first and the last step of each kernel."""
    found: list[tuple[int, int]] = []
    for plans in planned:
        first = found[-1][1] + 1 if found else 0
        found.append((first, first + max(1, sum(plan.length for plan in plans)) - 1))
    return found


def _waves(times: Sequence[int], steps: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the first and the last step of the kernels that run at each time."""
    found: dict[int, tuple[int, int]] = {}
    for time, (begins, ends) in zip(times, steps, strict=True):
        found[time] = (found.get(time, (begins, ends))[0], ends)
    return found


def _add_bodies(
    schedule: Schedule,
    buffers: list[Buffer],
    steps: Sequence[tuple[int, int]],
    planned: Sequence[tuple[Plan, ...]],
    unaligned: Mapping[Op, tuple[frozenset[Place], ...]],
    end: int,
    reuse: bool,
) -> dict[Op, Inside]:
    """Append buffers of bodies, of double-buffered carries and of packed copies.

    Return the description of each region by its kernel's ``op``.
    """
    found: dict[Op, Inside] = {}
    for kernel, (begins, ends), plans in zip(schedule.kernels, steps, planned, strict=True):
        if not isinstance(kernel.work, Region):
            continue
        first, starts, at = [], [], begins
        for plan in plans:
            first.append(len(buffers))
            starts.append(at)
            for buffer in plan.buffers:
                span = (at + buffer.first, at + buffer.last) if reuse else (0, end)
                buffers.append(Buffer(buffer.size, *span, buffer.scratch))
            at += plan.length
        spare: dict[int, tuple[int, ...]] = {}
        throughout = (begins, ends) if reuse else (0, end)
        for number, size in carry_sizes(kernel.work):
            count = 2 - (number in kernel.work.numbers) - (number in kernel.work.held)
            spare[number] = tuple(range(len(buffers), len(buffers) + count))
            buffers += [Buffer(size, *throughout)] * count
        copies = [Buffer(0, *throughout, (copy,)) for plan in plans for copy in plan.kept.values()]
        kept = tuple(range(len(buffers), len(buffers) + len(copies)))
        buffers += copies
        truth = None
        if kernel.work.op.primitive.name == "while":
            truth = len(buffers)
            buffers.append(Buffer(1, *throughout))
        found[kernel.op] = Inside(
            plans, tuple(first), tuple(starts), spare, truth, kept, unaligned[kernel.op]
        )
    return found


def carry_sizes(work: Region) -> list[tuple[int, int | Length]]:
    """Return the numbers and bytes of the carries of a loop."""
    return [(k, bytes_of(work.op.bodies[-1].results[k])) for k in range(carries_of(work.op))]


def _add_scratch(
    schedule: Schedule,
    forms: Mapping[Op, KernelForm],
    buffers: list[Buffer],
    waves: Mapping[int, tuple[int, int]],
    end: int,
    reuse: bool,
) -> dict[Op, int]:
    """Append the scratch buffers of kernels; return their numbers by kernel.

    Small scratch memory that is ``lasting`` is one buffer for all kernels, so that it stays in
    cache.
    """
    scratch = schedule.target.scratch
    needed = {} if scratch is None else scratch(schedule, forms)
    timed = zip(schedule.times, schedule.kernels, strict=True)
    positions = {kernel.op: time for time, kernel in timed}
    lasting = {op: each for op, each in needed.items() if each.lasting}
    found: dict[Op, int] = {}
    for ops in [[op] for op in needed if op not in lasting] + ([list(lasting)] if lasting else []):
        where = [waves[positions[op]] for op in ops]
        span = (min(where)[0], max(last for _, last in where)) if reuse else (0, end)
        found.update(dict.fromkeys(ops, len(buffers)))
        buffers.append(Buffer(0, *span, tuple({needed[op]: None for op in ops})))
    return found


def _homes(schedule: Schedule, last_use: dict[Op, int], reuse: bool) -> dict[Op, Home]:
    """Return the memory of each result; visited backwards, so that dying inputs can share it."""
    results: dict[Op, int] = {op: k for k, op in enumerate(schedule.program.outputs)}
    times, reads = schedule.times, _reads(schedule)
    makers = {op: k for k, kernel in enumerate(schedule.kernels) for op in kernel.results}
    ending = [k for k, kernel in enumerate(schedule.kernels) if kernel.ends]
    safe = max(ending, default=-1) + 1  # first kernel after those that may end the call early
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
            if value in homes or isinstance(value, Leaf) or op in joined:
                continue
            if last_use[value] != times[k] or any(
                r != k and times[r] == times[k] for r in reads[value]
            ):
                continue  # other kernels read it at that time or later
            made = makers[value]
            if value in results or not _may_join(schedule, homes[op], value, made, reads, safe):
                continue
            homes[value] = homes[op]
            joined.add(op)
    return homes


def _reads(schedule: Schedule) -> dict[Op, list[int]]:
    """Return the kernels that read each value."""
    reads: dict[Op, list[int]] = {}
    for k, kernel in enumerate(schedule.kernels):
        for value in kernel.reads:
            reads.setdefault(value, []).append(k)
    return reads


def _may_join(
    schedule: Schedule,
    home: Home,
    value: Op,
    made: int,
    reads: dict[Op, list[int]],
    safe: int,
) -> bool:
    """Return True if kernel ``made`` may compute ``value`` in ``home`` already.

    A variable's storage is free once all readers of the old value have run (the producer may read
    it in place), and from kernel ``safe`` on, as later kernels cannot end the call.
    """
    producer = schedule.kernels[made]
    if value in producer.writes:
        return False
    if home.leaf is None:
        return True
    times = schedule.times
    late = [k for k in reads.get(home.leaf, ()) if times[k] >= times[made]]
    if any(k != made for k in late) or (late and not among(home.leaf, producer.in_place[value])):
        return False
    return made >= safe


def _hidden(
    schedule: Schedule, planned: Sequence[Sequence[Plan]]
) -> tuple[tuple[int, int | Length], ...]:
    """Return (kernel number, bytes) of memory that library calls allocate by themselves."""
    found = []
    for k, kernel in enumerate(schedule.kernels):
        found += [(k, size) for plan in planned[k] for _, size in plan.hidden]
        each = schedule.target.hidden.get(kernel.op.primitive.name)
        if each is not None:
            size: int | Length = each
            for length in kernel.op.args[0].axes.lengths:
                size = size * length
            found.append((k, size))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Placement:
    """A plan at given lengths: offsets of the arena's buffers, and bytes."""

    offsets: tuple[int, ...]
    arena_bytes: int
    result_bytes: int
    hidden_bytes: int
    kept_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """Return the bytes that a call takes besides its inputs and variables."""
        return self.arena_bytes + self.result_bytes + self.hidden_bytes + self.kept_bytes


def place_plan(plan: Plan, lengths: Mapping[str, int], threads: int = 1) -> Placement:
    """Return the offsets and exact sizes of a plan at ``lengths``, for calls on ``threads``."""
    sizes = [buffer.bytes(lengths, threads) for buffer in plan.buffers]
    offsets, total = place(sizes, plan.lifetimes, plan.schedule.target.alignment)
    takes, outputs = plan.schedule.target.result_bytes, plan.schedule.program.outputs
    results = sum(takes(evaluate(bytes_of(op), lengths)) for op in outputs)
    hidden = max((evaluate(size, lengths) for _, size in plan.hidden), default=0)
    kept = sum(copy.bytes(lengths) for copy in plan.kept.values())
    return Placement(tuple(offsets), total, results, hidden, kept)


def peak(plan: Plan, lengths: Mapping[str, int], threads: int = 1) -> int | Length:
    """Return the peak bytes at ``lengths``, for calls on ``threads``.

    If some lengths are missing, return the sum of all sizes as an expression of the open lengths.
    """
    try:
        return place_plan(plan, lengths, threads).peak_bytes
    except KeyError:  # a size depends on a length that is missing
        pass
    takes = plan.schedule.target.result_bytes
    results = [bytes_of(op) for op in plan.schedule.program.outputs]
    sizes = [buffer.most(threads) for buffer in plan.buffers]
    sizes += [takes(size) if isinstance(size, int) else size for size in results]
    total: int | Length = 0
    kept = [copy.size for copy in plan.kept.values()]
    for size in [*sizes, *(size for _, size in plan.hidden), *kept]:
        total = total + size
    return total
