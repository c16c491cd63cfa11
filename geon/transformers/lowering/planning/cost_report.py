"""Predicted times of the kernels of a schedule in repeated calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Op, Same
from ...kernels.costs.kernel_costs import Cost, cost_of
from ...kernels.costs.machine import Machine
from ...kernels.costs.roofline import Prediction, prediction
from ...kernels.ir.nest import Call, Region
from ...kernels.nests.inlining import inspected_values
from ..fusion.kernel import Kernel
from .plan import Plan
from .schedule import Schedule


@dataclass(frozen=True, eq=False, slots=True)
class Predicted:
    """A kernel's cost and its predicted time."""

    cost: Cost
    prediction: Prediction


def operand_places(
    schedule: Schedule, kernel: Kernel, place: Callable[[Op], Hashable]
) -> list[Hashable]:
    """Return the memory of a kernel's operands; for a call, of its arguments, then its result."""
    if isinstance(kernel.work, Region):
        read = [place(schedule.base[arg]) for arg in kernel.work.op.args]
        return [*read, *(place(op) for op in kernel.results)]
    if not isinstance(kernel.work, Call):
        return [place(op) for op in kernel.work.operands]
    op = kernel.work.op
    if op.primitive.has_side_effect:
        return [place(schedule.base[arg]) for arg in inspected_values(op)]
    return [*(place(schedule.base[arg]) for arg in op.args), place(op)]


def written_place(schedule: Schedule) -> Callable[[Op], Hashable]:
    """Return a map from values to memory before planning: their own, or that of their variable."""
    leaves: dict[Op, Op] = {}
    for kernel in schedule.kernels:
        leaves.update(kernel.writes)
    return lambda op: Same(leaves.get(op, op))


def parts_of(plan: Plan, kernel: Kernel) -> tuple[Any, ...]:
    """Return the parts of a kernel's form; of a region, for each body those of its kernels."""
    if isinstance(kernel.work, Region):
        plans = plan.inside[kernel.op].plans
        return tuple([tuple([parts_of(each, k) for k in each.schedule.kernels]) for each in plans])
    form = plan.forms.get(kernel.op)
    return () if form is None else form.parts


def predictions(
    schedule: Schedule,
    lengths: Mapping[str, int],
    machine: Machine,
    threads: int,
    place: Callable[[Op], Hashable],
    plan: Plan | None = None,
) -> list[Predicted]:
    """Return the kernels' costs and times in a steady state of repeated calls.

    ``place`` identifies the memory of a value. The number of bytes touched since its last use
    decides which cache level a value comes from. ``plan`` has the kernels' forms. Raises
    ``KeyError`` if a length is missing.
    """
    places = [operand_places(schedule, kernel, place) for kernel in schedule.kernels]
    costs = [
        cost_of(kernel.work, lengths, found, () if plan is None else parts_of(plan, kernel))
        for kernel, found in zip(schedule.kernels, places, strict=True)
    ]
    recent = _ReuseDistances(4 * machine.caches[-1])
    found = []
    for turn in range(2):  # the second iteration starts with the caches of an earlier call
        for cost, where in zip(costs, places, strict=True):
            behind = [recent.since(each) for each in where] if turn else None
            recent.touch(dict(zip(where, [max(move) for move in cost.moves], strict=True)))
            if turn:
                found.append(Predicted(cost, prediction(cost, machine, threads, behind)))
    return found


class _ReuseDistances:
    """Memory places by the time of their last use; beyond ``most`` bytes all are equally far."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: dict[Hashable, int] = {}  # in order of last use

    def touch(self, sizes: Mapping[Hashable, int]) -> None:
        """Record that bytes of these places are used."""
        for place, size in sizes.items():
            self.sizes.pop(place, None)
            self.sizes[place] = size

    def since(self, place: Hashable) -> float:
        """Return the bytes used since the last use of a place, its own included."""
        total = 0
        for other in reversed(self.sizes):
            total += self.sizes[other]
            if other == place or total > self.most:
                return float(total)
        return float(self.most)
