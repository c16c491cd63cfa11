"""Plan verifier: simulates a plan and raises where it could compute wrong values.

It shares nothing with the planner except the plan: it tracks which value each byte of the arena, of
each result and of each variable holds, kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple, NoReturn

from ....errors import PlanError
from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import evaluate, names_of
from ....op_graph.core.traversal import reachable
from ....op_graph.op_graph import Leaf, Op, among, deep_order
from ...kernels.ir.nest import Call
from ...kernels.nests.inlining import element_arguments, inspected_values
from ...kernels.products.row_blocking import Blocked
from ...sizes.limits import LONG_LOOP_TURNS, NOMINAL_LENGTH, SHORT_LOOP_TURNS
from ..facts.target import Layout
from ..facts.value_sizes import bytes_of
from ..fusion.kernel import Kernel
from .form_verifier import verify_forms
from .inplace_legality import reads_first, wrong_step
from .plan import Home, Inside, Placement, Plan, place_plan

# Sample lengths of open names: unequal, small, and one of them 1.
SIMULATED_LENGTHS = (3, 5, 1, 7, 4)
# Increments to try where an axis would have negative length.
LENGTH_INCREMENTS = (0, SHORT_LOOP_TURNS, LONG_LOOP_TURNS, NOMINAL_LENGTH, NOMINAL_LENGTH**2)
SIMULATED_THREADS = 3  # threads of the simulated call


@dataclass(eq=False, slots=True)
class _SimulatedContents:
    start: int
    end: int
    value: Op


ARENA = ("arena", 0)


class _Touched(NamedTuple):
    region: tuple[str, int]
    start: int
    end: int
    write: bool


def _meet(a: _Touched, b: _Touched) -> bool:
    """Return True if the order of two accesses matters."""
    if a.region != b.region or not (a.write or b.write):
        return False
    return max(a.start, b.start) < min(a.end, b.end)


def verify_plan(plan: Plan) -> None:
    """Raise ``PlanError`` for a plan that is not sound.

    In a sound plan, every value that is read was written and is intact. Neither results nor scratch
    memory overwrite what a later kernel, a result or a variable needs. No write of a variable
    precedes a read of its old value or a kernel that can raise. Concurrent kernels touch nothing
    that one of them writes. Results and variables hold their values at the end. What kernels run
    is what they compute (``verify_forms``).
    """
    for inside in plan.inside.values():
        for inner in inside.plans:
            verify_plan(inner)
    verify_forms(plan)
    _Play(plan, played_lengths(deep_order(plan.schedule.program.roots))).run()


def played_lengths(ops: Iterable[Op]) -> dict[str, int]:
    """Return sample lengths of all open names at which no axis has negative length.

    They are made longer, and then given to other names.
    """
    sizes = {axis.expression for op in ops for axis in op.axes}
    names = sorted({name for size in sizes for name in names_of(size)})
    for first, longer in product(range(5), LENGTH_INCREMENTS):
        played = {
            name: SIMULATED_LENGTHS[(k + first) % 5] + LONG_LOOP_TURNS * (k // 5) + longer
            for k, name in enumerate(names)
        }
        if all(evaluate(size, played) >= 0 for size in sizes):
            break
    return played


class _Play:
    def __init__(self, plan: Plan, lengths: dict[str, int]) -> None:
        self.plan, self.lengths = plan, lengths
        self.placed: Placement = place_plan(plan, lengths, SIMULATED_THREADS)
        self.regions: dict[object, list[_SimulatedContents]] = {}
        self.written: Kernel | None = None

    def run(self) -> None:
        """Simulate all kernels in order; raise ``PlanError`` at the first conflict."""
        schedule = self.plan.schedule
        computed: set[Op] = set()
        self.apart()
        for kernel in schedule.kernels:
            for value in self.values(kernel):
                self.read(kernel, value, computed)
            if kernel.ends and self.written is not None and not schedule.held:
                how = "raise" if kernel.raises else "be interrupted"
                self.fail(kernel, f"can {how} after {self.written.op!r} wrote its variable")
            self.work(kernel)
            for op in kernel.results:
                self.write(kernel, op)
            computed.update(kernel.results)
        for op in schedule.program.outputs:
            leaf = self.plan.homes[op].leaf
            held = leaf is not None and among(leaf, schedule.held)
            self.expect_home(op, "variable" if held else "result")
        for leaf, op in schedule.program.updates:
            if self.plan.homes[op].leaf is not leaf:
                raise PlanError(f"the new value {op!r} of {leaf!r} is not in its storage")
            self.expect_home(op, "variable")

    def apart(self) -> None:
        """Raise if kernels of one wave cannot run concurrently."""
        schedule = self.plan.schedule
        waves: dict[int, list[Kernel]] = {}
        for time, kernel in zip(schedule.times, schedule.kernels, strict=True):
            waves.setdefault(time, []).append(kernel)
        for wave in waves.values():
            touched = [self.touched(kernel) for kernel in wave] if len(wave) > 1 else []
            for number, (kernel, own) in enumerate(zip(wave, touched, strict=False)):
                for other, others in zip(wave[:number], touched, strict=False):
                    if any(_meet(a, b) for a in own for b in others):
                        self.fail(kernel, f"is beside that of {other.op!r}, which touches the same")
            if len(wave) > 1 and any(kernel.raises or kernel.has_side_effect for kernel in wave):
                self.fail(wave[0], "is beside one that can raise, or prints")

    def touched(self, kernel: Kernel) -> list[_Touched]:
        """Return the memory that a kernel reads and writes."""
        found = []
        for write, values in ((False, self.values(kernel)), (True, kernel.results)):
            for value in values:
                home = (
                    Home("variable", 0, value)
                    if isinstance(value, Leaf)
                    else self.plan.homes[value]
                )
                place = (home.kind, id(home.leaf) if home.leaf is not None else home.number)
                extent = (0, 1) if home.leaf is not None else self.extent(home, value)
                found.append(_Touched(ARENA if home.kind == "arena" else place, *extent, write))
        number = self.plan.scratch.get(kernel.op)
        if number is not None:
            found.append(_Touched(ARENA, *self.bytes_of(number), True))
        return found

    def values(self, kernel: Kernel) -> list[Op]:
        """Return the values in memory that a kernel reads."""
        roots = list(inspected_values(kernel.op)) if kernel.has_side_effect else []
        roots += [arg for op in kernel.results for arg in op.args]

        def is_read(op: Op) -> bool:
            own = among(op, kernel.results)
            return isinstance(op, Leaf) or (op in self.plan.homes and not own)

        below = reachable(roots, lambda op: () if is_read(op) else element_arguments(op))
        return [op for op in below if is_read(op)]

    def read(self, kernel: Kernel, value: Op, computed: set[Op]) -> None:
        """Raise unless memory holds ``value``; a variable must hold its value at entry."""
        if isinstance(value, Leaf):
            held = self.regions.get(value)
            if held is not None and held[0].value is not value:
                self.fail(kernel, f"reads {value!r} after {held[0].value!r} was written into it")
        else:
            if value not in computed:
                self.fail(kernel, f"reads {value!r}, which was not computed before")
            self.expect(value, f"{kernel.op!r} reads it")

    def work(self, kernel: Kernel) -> None:
        """Claim the kernel's scratch memory; raise if it overlaps its operands or results."""
        if isinstance(kernel.work, Blocked):
            wrong = wrong_step(kernel.work, self.lengths)
            if wrong is not None:
                self.fail(kernel, f"reads {wrong!r} of a block after it was written over")
        number = self.plan.scratch.get(kernel.op)
        numbers = [] if number is None else [number]
        inside = self.plan.inside.get(kernel.op)
        if inside is not None:
            lasting = inside.own
            self.lasts(kernel, inside, lasting)
            for first, inner in zip(inside.first, inside.plans, strict=True):
                numbers += range(first, first + len(inner.buffers))
            numbers += lasting
        for each in numbers:
            self.work_in(kernel, each)

    def lasts(self, kernel: Kernel, inside: Inside, lasting: Sequence[int]) -> None:
        """Raise if memory that a loop keeps between iterations overlaps that of a step."""
        others = [
            number
            for first, inner in zip(inside.first, inside.plans, strict=True)
            for number in range(first, first + len(inner.buffers))
        ]
        for k, number in enumerate(lasting):
            start, end = self.bytes_of(number)
            for other in (*lasting[k + 1 :], *others):
                first, last = self.bytes_of(other)
                if max(first, start) < min(last, end):
                    self.fail(kernel, f"works in buffer {other}, which shares bytes with {number}")

    def bytes_of(self, number: int) -> tuple[int, int]:
        """Return the first byte and the end of a buffer in the arena."""
        start = self.placed.offsets[number]
        return start, start + self.plan.buffers[number].bytes(self.lengths, SIMULATED_THREADS)

    def work_in(self, kernel: Kernel, number: int) -> None:
        """Claim one of the scratch buffers of a kernel."""
        start, end = self.bytes_of(number)
        if start % self.plan.schedule.target.alignment or end > self.placed.arena_bytes:
            self.fail(kernel, f"works at {start} to {end}, outside the arena")
        for value in (*self.values(kernel), *kernel.results):
            home = self.plan.homes.get(value)
            if home is not None and home.kind == "arena":
                first, last = self.extent(home, value)
                if max(first, start) < min(last, end):
                    self.fail(kernel, f"works in the memory of {value!r}")
        region = self.regions.setdefault(_region(Home("arena")), [])
        region[:] = [h for h in region if max(h.start, start) >= min(h.end, end)]

    def write(self, kernel: Kernel, op: Op) -> None:
        """Store ``op`` in its memory; values that lay there are lost."""
        home = self.plan.homes[op]
        start, end = self.extent(home, op)
        region = self.regions.setdefault(_region(home), [])
        for value in self.values(kernel):
            if self.shares(value, home, start, end) and not self.may_share(kernel, op, value):
                self.fail(kernel, f"is computed over {value!r}, which it reads")
        region[:] = [h for h in region if max(h.start, start) >= min(h.end, end)]
        region.append(_SimulatedContents(start, end, op))
        if home.kind == "variable":
            self.written = self.written or kernel

    def shares(self, value: Op, home: Home, start: int, end: int) -> bool:
        """Return True if ``value`` overlaps the bytes ``start`` to ``end`` of a home."""
        if isinstance(value, Leaf):
            return value is home.leaf
        other = self.plan.homes.get(value)
        if other is None or other.leaf is not home.leaf:
            return False
        if home.leaf is None and _region(other) != _region(home):
            return False
        first, last = self.extent(other, value)
        return max(first, start) < min(last, end)

    def may_share(self, kernel: Kernel, op: Op, value: Op) -> bool:
        """Return True if each element of ``value`` is read before it is overwritten."""
        schedule = self.plan.schedule
        if isinstance(kernel.work, Call):
            safe = schedule.target.in_place.get(op.primitive.name, ())
            uses = [k for k, arg in enumerate(op.args) if schedule.base[arg] is value]
            ordered = all(k in safe and op.args[k] is value for k in uses)
        else:
            ordered = reads_first(kernel.work, value, op, self.lengths)
        return (
            ordered
            and schedule.layouts[value] == schedule.layouts[op]
            and schedule.layouts[op] == Layout(schedule.layouts[op].order)
            and value.axes.lengths == op.axes.lengths
            and value.dtype.itemsize == op.dtype.itemsize
        )

    def extent(self, home: Home, op: Op) -> tuple[int, int]:
        """Return the first byte and the end of ``op``; ``PlanError`` if its memory is too small."""
        size = evaluate(bytes_of(op), self.lengths)
        if home.kind != "arena":
            self.fits(home, op)
            return 0, size
        if size > evaluate(self.plan.buffers[home.number].size, self.lengths):
            raise PlanError(f"{op!r} is larger than buffer {home.number}, in which it lives")
        start = self.placed.offsets[home.number]
        if start % self.plan.schedule.target.alignment or start + size > self.placed.arena_bytes:
            raise PlanError(f"{op!r} lies at {start} to {start + size}, outside the arena")
        return start, start + size

    def fits(self, home: Home, op: Op) -> None:
        """Raise unless ``op`` has the layout of the result or variable that contains it."""
        whole = (
            home.leaf if home.leaf is not None else self.plan.schedule.program.outputs[home.number]
        )
        lengths = [op.axes[n].expression for n in self.plan.schedule.layouts[op].order]
        if tuple(lengths) != whole.axes.lengths or op.dtype.itemsize != whole.dtype.itemsize:
            raise PlanError(f"{op!r} does not lie as {whole!r} does, in whose memory it lives")

    def expect(self, value: Op, why: str) -> None:
        """Raise unless ``value`` is intact in its memory; ``why`` names its reader."""
        home = self.plan.homes[value]
        start, end = self.extent(home, value)
        for held in self.regions.get(_region(home), ()):
            if held.value is value and (held.start, held.end) == (start, end):
                return
        if start < end:
            raise PlanError(f"{value!r} is no longer whole where {why}")

    def expect_home(self, op: Op, kind: str) -> None:
        if self.plan.homes[op].kind != kind:
            raise PlanError(f"{op!r} should be a {kind} and lives in {self.plan.homes[op]}")
        self.expect(op, f"it is needed as a {kind}")

    def fail(self, kernel: Kernel, what: str) -> NoReturn:
        raise PlanError(f"the kernel of {kernel.op!r} {what}")


def _region(home: Home) -> object:
    return home.leaf if home.leaf is not None else (home.kind, home.number * (home.kind != "arena"))
