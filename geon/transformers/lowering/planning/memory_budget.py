"""A program for so many bytes: what to compute again, where all values at once take more.

The plan of the program as it is says at which kernel most memory is taken, and which values lie
there for later kernels. Of several choices what to keep of these, each is planned; of those that
fit, the one whose kernels should take the least time is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....errors import SizeError
from ....op_graph.axes.axes import Axis
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, deep_order, post_order
from ....op_graph.regions.scan import ForBytes
from ....op_graph.regions.segments import Division
from ...kernels.costs.kernel_costs import cost_of
from ...sizes.budget import Budget
from ..facts.target import Target
from ..fusion.kernel import Kernel
from ..fusion.layout import lay_out
from ..rules.program import Program
from ..rules.rematerialisation import Recomputation, Regions, connected
from .cost_report import operand_places, predictions, written_place
from .derivable_values import kept_once
from .plan import Plan, place_plan, plan_memory
from .schedule import Schedule, schedule

# Levels of segments that are tried, and of scans whose stacks take such a share of the budget.
SEGMENTS = ((1, 4), (1, 1 << 62), (2, 1 << 62), (3, 1 << 62))
NEAR = 8  # kernels before the fullest one that are looked at
BYTES_OF_A_STEP = 16  # that are moved in the time of one step, of targets without a model


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """A program with what it takes: bytes, and time in a unit that choices share."""

    program: Program
    bytes: int
    time: float


class Fitting:
    """Plans programs for a budget; new ops are in ``own``."""

    def __init__(
        self, budget: Budget, target: Target, own: OwnTable, check: bool, reuse: bool
    ) -> None:
        self.budget, self.target, self.own = budget, target, own
        self.check, self.reuse = check, reuse
        self.lengths = dict(budget.lengths)

    def fitted(self, program: Program, divided: Callable[[Division], Program]) -> Program:
        """The program, computing again what has to be for the budget.

        ``divided`` builds it with scans in segments. ``SizeError`` where no choice fits.
        """
        once = program if self.check else kept_once(program, self.target, self.own)
        laid_out, plan, first = self.planned(once)
        if first.bytes <= self.budget.bytes:
            return once
        found = [first]
        if once is not program:
            laid_out, plan, choice = self.planned(program)
            found.append(choice)
        found += self.again(laid_out, plan)
        for made in self.in_segments(program, divided):
            laid_out, plan, choice = self.planned(made)
            found.append(choice)
            if choice.bytes > self.budget.bytes:
                found += self.again(laid_out, plan)
        fitting = [choice for choice in found if choice.bytes <= self.budget.bytes]
        if not fitting:
            least = min(found, key=lambda choice: choice.bytes)
            raise SizeError(
                f"memory={self.budget.bytes} bytes are too few: a call takes {first.bytes} bytes, "
                f"and {least.bytes} are the least that was found where values are computed again"
                f"{self.shown_lengths()}; give that many, or smaller lengths"
            )
        return min(fitting, key=lambda choice: choice.time).program

    def again(self, program: Program, plan: Plan) -> Iterator[Choice]:
        """What it takes to compute values again that lie where a plan takes most."""
        crest = self.crest(program, plan)
        for kept in crest.policies():
            made = self.without(program, crest, kept)
            if len(made.again) > len(program.again):
                yield self.planned(made)[-1]

    def in_segments(
        self, program: Program, divided: Callable[[Division], Program]
    ) -> Iterator[Program]:
        """The program with scans in segments: those of long stacks alone, then all, then in
        segments of segments; none where there is no scan that keeps stacks for others."""
        known = {scans_of(program)}
        if not any(known):
            return
        for levels, share in SEGMENTS:
            made = divided(ForBytes(levels, self.budget.bytes // share, self.lengths))
            scans = scans_of(made)
            if scans in known:
                continue
            known.add(scans)
            yield made

    def shown_lengths(self) -> str:
        """The lengths that bytes are for, as part of a sentence."""
        shown = ", ".join(f"{name} = {length}" for name, length in self.budget.lengths)
        return f" (for {shown})" if shown else ""

    def planned(self, program: Program) -> tuple[Program, Plan, Choice]:
        """A program laid out, its plan, and what it takes."""
        laid_out = lay_out(program, self.target, self.own, self.check)
        plan = plan_memory(schedule(laid_out, self.target, self.own, self.check), self.reuse)
        placed = place_plan(plan, self.lengths, self.budget.threads)
        return laid_out.program, plan, Choice(program, placed.peak_bytes, self.time(plan.schedule))

    def time(self, made: Schedule) -> float:
        """What the kernels should take, on the machine that the target decides by.

        Where it has none, steps of scalar code and what is moved count.
        """
        place = written_place(made)
        if self.target.model is not None:
            found = predictions(made, self.lengths, self.target.model, self.budget.threads, place)
            return sum(each.prediction.seconds for each in found)
        places = [operand_places(made, kernel, place) for kernel in made.kernels]
        costs = [
            cost_of(kernel.work, self.lengths, each)
            for kernel, each in zip(made.kernels, places, strict=True)
        ]
        return sum(
            sum(cost.rows.values()) + (cost.read + cost.written) / BYTES_OF_A_STEP for cost in costs
        )

    def fullest(self, plan: Plan) -> int:
        """The kernel at which buffers take most."""
        taken = [0] * (plan.length + 2)  # a plan without reuse has buffers that outlive all
        for buffer in plan.buffers:
            size = buffer.bytes(self.lengths, self.budget.threads)
            taken[buffer.first] += size
            taken[buffer.last + 1] -= size
        now, largest, found = 0, -1, 0
        for step, change in enumerate(taken[:-1]):
            now += change
            if now > largest:
                largest, found = now, step
        return next(k for k, (first, last) in enumerate(plan.steps) if first <= found <= last)

    def crest(self, program: Program, plan: Plan) -> Crest:
        """Where the plan of a program takes most, and what lies there."""
        kernels, order = plan.schedule.kernels, post_order(program.roots)
        at = self.fullest(plan)
        time = plan.schedule.times[at]
        held: dict[Op, Kernel] = {}
        stays: set[Op] = {op for op in order if op.primitive.acts}
        for kernel in kernels[:at]:
            for op in kernel.results:
                if plan.homes[op].kind != "arena":
                    stays.add(op)
                elif plan.last_use[op] > time:
                    held[op] = kernel
        later = {op for kernel in kernels[at + 1 :] for op in kernel.results}
        # The kernel itself may compute what nothing else needs.
        tried = [
            descendants(order, kernel.results) for kernel in kernels[max(at - NEAR, 0) : at + 1]
        ]
        past = max(reversed(tried), key=lambda found: len(found & later))
        return Crest(held, stays, past, order)

    def without(self, program: Program, crest: Crest, kept: set[Op]) -> Program:
        """The program where values that are held and not ``kept`` are computed again later."""
        stays = crest.stays | kept
        inside = below([op for op in crest.held if op not in kept], stays | crest.past)
        number = connected(inside, lambda op, arg: True)
        bits = (1 << len(set(number.values()))) - 1
        regions = Regions(number, dict.fromkeys(crest.past, bits), stays)
        with building(self.own):
            work = Recomputation(crest.order, program.roots, regions)
            return program.mapped(work.run(), work.again)


@dataclass(frozen=True, eq=False, slots=True)
class Crest:
    """The kernel of a plan at which memory is fullest.

    ``held`` are the values that are made before it and read after it, with their kernels, in order;
    ``stays`` what is in memory of its own all the time, ``past`` what is computed from what it, or
    a kernel just before it, computes.
    """

    held: dict[Op, Kernel]
    stays: set[Op]
    past: set[Op]
    order: list[Op]

    def policies(self) -> Iterator[set[Op]]:
        """What to keep of the values that are held.

        All that are dear to compute; all but every second one, third, fourth, sixth, and so on;
        every second, third, fourth and so on alone; none.
        """
        dear = {op for op, kernel in self.held.items() if is_dear(kernel)}
        if dear:
            yield dear
        held = list(self.held)
        for apart in steps_to(len(held)):
            yield set(held) - set(held[apart - 1 :: apart])
            yield set(held[apart - 1 :: apart])
        yield set()


def scans_of(program: Program) -> tuple[Axis, ...]:
    """The axes of all scans, by which programs in other segments differ."""
    return tuple([op.attrs[0] for op in deep_order(program.roots) if op.primitive.name == "scan"])


def descendants(order: Sequence[Op], ops: Iterable[Op]) -> set[Op]:
    """These and all that is computed from them, of ops in order."""
    found = set(ops)
    for op in order:
        if any(arg in found for arg in op.args):
            found.add(op)
    return found


def below(ops: Sequence[Op], stays: set[Op]) -> dict[Op, None]:
    """These and all that they are computed from, down to what stays and to storage."""
    found: dict[Op, None] = {}
    stack = list(ops)
    while stack:
        op = stack.pop()
        known = op in found or op in stays or isinstance(op, Leaf) or is_bound(op)
        if not known and not op.primitive.acts:
            found[op] = None
            stack += op.args
    return found


def is_dear(kernel: Kernel) -> bool:
    """Whether a kernel is a product or a call of a library, or reduces."""
    rows = [op.primitive for op in kernel.results]
    reduces = kernel.fused is not None and bool(kernel.fused.reductions)
    return reduces or any(
        row.kind in ("contraction", "reduction", "ordered") or row.cost == "kernel" for row in rows
    )


def steps_to(count: int) -> Iterator[int]:
    """2, 3, 4, 6, 8, 12 and so on, at most ``count``."""
    step = 2
    while step <= count:
        yield step
        if step + step // 2 <= count:
            yield step + step // 2
        step *= 2
