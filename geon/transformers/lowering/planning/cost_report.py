"""What the kernels of a schedule should take, one after another, call after call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from ....op_graph.op_graph import Op, Same
from ...kernels.costs.kernel_costs import Cost, cost_of
from ...kernels.costs.machine import Machine
from ...kernels.costs.roofline import Prediction, prediction
from ...kernels.ir.nest import Call, Region
from ...kernels.nests.inlining import examined
from ..fusion.kernel import Kernel
from .schedule import Schedule


@dataclass(frozen=True, eq=False, slots=True)
class Predicted:
    """A kernel's cost, and what it should take."""

    cost: Cost
    prediction: Prediction


def operand_places(
    schedule: Schedule, kernel: Kernel, place: Callable[[Op], Hashable]
) -> list[Hashable]:
    """Where the operands of a kernel's work lie; of a call, its arguments and then its result."""
    if isinstance(kernel.work, Region):
        read = [place(schedule.base[arg]) for arg in kernel.work.op.args]
        return [*read, *(place(op) for op in kernel.results)]
    if not isinstance(kernel.work, Call):
        return [place(op) for op in kernel.work.operands]
    op = kernel.work.op
    if op.primitive.acts:
        return [place(schedule.base[arg]) for arg in examined(op)]
    return [*(place(schedule.base[arg]) for arg in op.args), place(op)]


def written_place(schedule: Schedule) -> Callable[[Op], Hashable]:
    """The place of a value before memory is planned: its own, or the variable it is written to."""
    leaves: dict[Op, Op] = {}
    for kernel in schedule.kernels:
        leaves.update(kernel.writes)
    return lambda op: Same(leaves.get(op, op))


def predictions(
    schedule: Schedule,
    lengths: Mapping[str, int],
    machine: Machine,
    threads: int,
    place: Callable[[Op], Hashable],
) -> list[Predicted]:
    """The kernels' costs and times in a call that is one of many; ``place`` says where values lie.

    What was touched long ago is in no cache any more: a value comes from as far away as there were
    bytes touched since it last was. Raises ``KeyError`` where a length is missing.
    """
    places = [operand_places(schedule, kernel, place) for kernel in schedule.kernels]
    costs = [
        cost_of(kernel.work, lengths, found)
        for kernel, found in zip(schedule.kernels, places, strict=True)
    ]
    recent = _Recent(4 * machine.caches[-1])
    found = []
    for turn in range(2):  # the second one finds memory as an earlier call left it
        for cost, where in zip(costs, places, strict=True):
            behind = [recent.since(each) for each in where] if turn else None
            recent.touch(dict(zip(where, [max(move) for move in cost.moves], strict=True)))
            if turn:
                found.append(Predicted(cost, prediction(cost, machine, threads, behind)))
    return found


class _Recent:
    """Places by when they were last touched; what is more than ``most`` bytes behind is far."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: dict[Hashable, int] = {}  # the one touched last comes last

    def touch(self, sizes: Mapping[Hashable, int]) -> None:
        """Note that so many bytes of places are touched."""
        for place, size in sizes.items():
            self.sizes.pop(place, None)
            self.sizes[place] = size

    def since(self, place: Hashable) -> float:
        """The bytes touched since this place was, its own among them."""
        total = 0
        for other in reversed(self.sizes):
            total += self.sizes[other]
            if other == place or total > self.most:
                return float(total)
        return float(self.most)
