"""Scans on a device: the kernels of the body launched turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ...op_graph.op_graph import Same
from ...op_graph.regions.scan_facts import ScanAttributes
from ..kernels.types import Region
from ..lowering.memory import Plan
from ..lowering.places import place_of
from ..lowering.schedule import Kernel, bytes_of
from ..printing.parameters import Place
from .launches import Carry, Stack, Step, Turns


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """A plan whose kernels are launched: which numbers its places have, beside the program's own.

    Its buffers are those of the program from ``first_buffer`` on, its steps from ``first_step`` on;
    what is at places ``apart`` may begin at any element.
    """

    plan: Plan
    known: Mapping[Place, int] = field(default_factory=dict)
    first_buffer: int = 0
    first_step: int = 0
    apart: Set[Place] = frozenset()

    def step(self, position: int) -> int:
        """The step of the kernel at a position."""
        return self.first_step + self.plan.steps[position][0]


class Turning:
    """What the turns of a scan read and write.

    ``pointer`` gives the number of a place of the plan ``around``, ``virtual`` numbers that stand
    for other places in each turn.
    """

    def __init__(
        self, kernel: Kernel, around: Scope, pointer: Callable[[Place], int], virtual: Iterator[int]
    ) -> None:
        assert isinstance(kernel.work, Region)
        self.work, inside = kernel.work, around.plan.inside[kernel.op]
        a = self.a = ScanAttributes(self.work.op.attrs)
        plan = inside.plans[0]
        outputs, leaves = plan.schedule.program.outputs, self.work.bodies[0].leaves
        given = [pointer(place_of(around.plan, op)) for op in self.work.op.args]
        made = [pointer(place_of(around.plan, op)) for op in kernel.results]
        results = dict(zip(self.work.numbers, made, strict=True))
        self.alignment = plan.schedule.target.alignment
        known: dict[Place, int] = {}
        apart: set[Place] = set()
        self.carries: list[Carry] = []
        self.stacks: list[Stack] = []
        for k, number in enumerate(given):
            place: Place = ("leaf", Same(leaves[k]))
            known[place] = number if k >= a.before_captures else next(virtual)
            if a.carries <= k < a.before_captures:
                self.stack(place, known, apart, number, bytes_of(leaves[k]))
        for k, op in enumerate(outputs):
            place = ("result", k)
            known[place] = next(virtual)
            if k >= a.carries:
                self.stack(place, known, apart, results[k], bytes_of(op))
                continue
            ways = [pointer(("arena", each)) for each in inside.spare[k]]
            last = results.get(k, ways[0])
            reads = known["leaf", Same(leaves[k])]
            self.carries.append(
                Carry(reads, known[place], given[k], last, ways[-1], bytes_of(op), k in results)
            )
        first_buffer = around.first_buffer + inside.first[0]
        first_step = around.first_step + inside.steps[0]
        self.scope = Scope(plan, known, first_buffer, first_step, apart)

    def stack(
        self,
        place: Place,
        known: Mapping[Place, int],
        apart: set[Place],
        pointer: int,
        stride: object,
    ) -> None:
        """Note that a place is part of a stack."""
        self.stacks.append(Stack(known[place], pointer, stride))  # type: ignore[arg-type]  # a size
        aligned = self.alignment
        if not isinstance(stride, int) or stride % aligned:
            apart.add(place)

    def turns(self, steps: tuple[Step, ...], origins: tuple[int, ...]) -> Turns:
        """The step of the scan, whose turns take these steps."""
        a = self.a
        return Turns(
            a.axis.expression, a.reverse, tuple(self.stacks), tuple(self.carries), steps, origins
        )
