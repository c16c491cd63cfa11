"""Memory budgets: finds values to recompute so that a program fits into a number of bytes.

The plan of the unchanged program shows the kernel at which memory peaks, and the values that are
kept there for later kernels. Several sets of values to keep are planned. Of the programs that fit,
the one with the least predicted time is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ....errors import SizeError
from ....lazy_dataclasses import dataclass
from ....op_graph.axes.axes import Axis
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound, reachable
from ....op_graph.op_graph import Leaf, Op, deep_order, post_order
from ....op_graph.regions.scan import ForBytes
from ....op_graph.regions.segments import Division
from ...kernels.costs.kernel_costs import cost_of
from ...sizes.budget import Budget
from ...sizes.limits import MAX_CANDIDATES
from ..facts.target import Target
from ..fusion.kernel import Kernel
from ..fusion.layout import lay_out
from ..rules.program import Program
from ..rules.rematerialisation import Recomputation, Regions, connected_components
from .cost_report import operand_places, predictions, written_place
from .derivable_values import kept_once
from .kernel_forms import FormTable
from .plan import Plan, place_plan, plan_memory
from .schedule import Schedule, schedule

# Segmentations tried: levels of nesting, and n for scans whose stacks exceed 1/n of the budget.
SEGMENT_LEVELS_AND_SHARES = ((1, 4), (1, 1 << 62), (2, 1 << 62), (3, 1 << 62))
KERNELS_BEFORE_PEAK = MAX_CANDIDATES  # maximum kernels before the peak that are tried as a boundary
BYTES_PER_STEP = 16  # bytes moved in the time of one scalar step, for targets without a model


@dataclass(frozen=True, eq=False, slots=True)
class BudgetCandidate:
    """A program with its peak bytes and its time, in a unit that all choices share."""

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
        self.table: FormTable | None = None if target.forms is None else target.forms()

    def fitted(self, program: Program, divided: Callable[[Division], Program]) -> Program:
        """Return the program, with recomputation as the budget requires.

        ``divided`` builds it with scans in segments. ``SizeError`` if no choice fits.
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

    def again(self, program: Program, plan: Plan) -> Iterator[BudgetCandidate]:
        """Yield choices that recompute values kept where a plan's memory peaks."""
        crest = self.crest(program, plan)
        for kept in crest.policies():
            made = self.without(program, crest, kept)
            if len(made.again) > len(program.again):
                yield self.planned(made)[-1]

    def in_segments(
        self, program: Program, divided: Callable[[Division], Program]
    ) -> Iterator[Program]:
        """Yield the program with scans in segments, if scans keep stacks for others.

        First only scans with large stacks are segmented, then all, then in nested segments.
        """
        known = {scans_of(program)}
        if not any(known):
            return
        for levels, share in SEGMENT_LEVELS_AND_SHARES:
            made = divided(ForBytes(levels, self.budget.bytes // share, self.lengths))
            scans = scans_of(made)
            if scans in known:
                continue
            known.add(scans)
            yield made

    def shown_lengths(self) -> str:
        """Return the lengths that byte counts are for, as part of a sentence."""
        shown = ", ".join(f"{name} = {length}" for name, length in self.budget.lengths)
        return f" (for {shown})" if shown else ""

    def planned(self, program: Program) -> tuple[Program, Plan, BudgetCandidate]:
        """Return a laid-out program, its plan, and its choice."""
        laid_out = lay_out(program, self.target, self.own, self.check)
        made = schedule(laid_out, self.target, self.own, self.check)
        plan = plan_memory(made, self.reuse, table=self.table)
        placed = place_plan(plan, self.lengths, self.budget.threads)
        return (
            laid_out.program,
            plan,
            BudgetCandidate(program, placed.peak_bytes, self.time(plan.schedule)),
        )

    def time(self, made: Schedule) -> float:
        """Return the predicted time of the kernels, on the target's model machine.

        Without a model it is the number of scalar operations plus weighted bytes.
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
            sum(cost.rows.values()) + (cost.read + cost.written) / BYTES_PER_STEP for cost in costs
        )

    def fullest(self, plan: Plan) -> int:
        """Return the kernel at which buffers take most memory."""
        taken = [0] * (plan.length + 2)  # buffers of a plan without reuse outlive all steps
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
        """Return the memory peak of a plan, with the values that are kept there."""
        kernels, order = plan.schedule.kernels, post_order(program.roots)
        at = self.fullest(plan)
        time = plan.schedule.times[at]
        held: dict[Op, Kernel] = {}
        stays: set[Op] = {op for op in order if op.primitive.has_side_effect}
        for kernel in kernels[:at]:
            for op in kernel.results:
                if plan.homes[op].kind != "arena":
                    stays.add(op)
                elif plan.last_use[op] > time:
                    held[op] = kernel
        later = {op for kernel in kernels[at + 1 :] for op in kernel.results}
        # The kernel's own results may have no later readers, so earlier kernels are tried, too.
        tried = [
            descendants(order, kernel.results)
            for kernel in kernels[max(at - KERNELS_BEFORE_PEAK, 0) : at + 1]
        ]
        past = max(reversed(tried), key=lambda found: len(found & later))
        return Crest(held, stays, past, order)

    def without(self, program: Program, crest: Crest, kept: set[Op]) -> Program:
        """Return the program that recomputes held values that are not ``kept``."""
        stays = crest.stays | kept
        inside = collect_dependencies(
            [op for op in crest.held if op not in kept], stays | crest.past
        )
        number = connected_components(inside, lambda op, arg: True)
        bits = (1 << len(set(number.values()))) - 1
        regions = Regions(number, dict.fromkeys(crest.past, bits), stays)
        with building(self.own):
            work = Recomputation(crest.order, program.roots, regions)
            return program.mapped(work.run(), work.again)


@dataclass(frozen=True, eq=False, slots=True)
class Crest:
    """The kernel of a plan at which memory peaks.

    ``held`` maps the values that are computed before it and read after it to their kernels, in
    order. ``stays`` are values with memory of their own throughout. ``past`` are ops computed from
    results of the kernel, or of one just before it. ``order`` has all ops in order.
    """

    held: dict[Op, Kernel]
    stays: set[Op]
    past: set[Op]
    order: list[Op]

    def policies(self) -> Iterator[set[Op]]:
        """Yield sets of held values to keep.

        These are: all expensive ones; all but every second, third, fourth, sixth, ...; every
        second, third, fourth, ...; none.
        """
        expensive = {op for op, kernel in self.held.items() if is_expensive(kernel)}
        if expensive:
            yield expensive
        held = list(self.held)
        for apart in steps_to(len(held)):
            yield set(held) - set(held[apart - 1 :: apart])
            yield set(held[apart - 1 :: apart])
        yield set()


def scans_of(program: Program) -> tuple[Axis, ...]:
    """Return the axes of all scans, which identify a segmentation."""
    return tuple([op.attrs.axis for op in deep_order(program.roots) if op.primitive.name == "scan"])


def descendants(order: Sequence[Op], ops: Iterable[Op]) -> set[Op]:
    """Return ``ops`` and everything computed from them, given all ops in order."""
    found = set(ops)
    for op in order:
        if any(arg in found for arg in op.args):
            found.add(op)
    return found


def collect_dependencies(ops: Sequence[Op], stays: set[Op]) -> dict[Op, None]:
    """Return ``ops`` and everything they depend on, down to values that stay and to storage."""

    def again(op: Op) -> bool:
        known = op in stays or isinstance(op, Leaf) or is_bound(op)
        return not known and not op.primitive.has_side_effect

    return dict.fromkeys(reachable(filter(again, ops), lambda op: filter(again, op.args)))


def is_expensive(kernel: Kernel) -> bool:
    """Return True if a kernel is expensive: a product, a reduction or a library call."""
    rows = [op.primitive for op in kernel.results]
    reduces = kernel.fused is not None and bool(kernel.fused.reductions)
    return reduces or any(
        row.kind in ("contraction", "reduction", "ordered") or row.cost == "kernel" for row in rows
    )


def steps_to(count: int) -> Iterator[int]:
    """Yield 2, 3, 4, 6, 8, 12, ..., up to ``count``."""
    step = 2
    while step <= count:
        yield step
        if step + step // 2 <= count:
            yield step + step // 2
        step *= 2
