"""Scans on a device: the kernels of the body launched turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ...op_graph.op_graph import Op, Same
from ...op_graph.regions.scan_facts import ScanAttributes
from ..kernels.types import Region
from ..lowering.memory import Plan
from ..lowering.places import place_of
from ..lowering.schedule import Kernel, bytes_of
from ..printing.parameters import Place
from .launches import Carry, Stack, Step, Turns
from .naming import Chosen, Moved


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """A plan whose kernels are launched: which numbers its places have, beside the program's own.

    Its buffers are those of the program from ``first_buffer`` on, its steps from ``first_step`` on;
    what is at places ``apart`` may begin at any element, and what is done is that of the branches
    ``chosen``. What is ``looped`` is done in turns.
    """

    plan: Plan
    known: Mapping[Place, int] = field(default_factory=dict)
    first_buffer: int = 0
    first_step: int = 0
    apart: Set[Place] = frozenset()
    chosen: tuple[Chosen, ...] = ()
    looped: bool = False

    def step(self, position: int) -> int:
        """The step of the kernel at a position."""
        return self.first_step + self.plan.steps[position][0]


def lying(region: Op, around: Scope) -> list[Op]:
    """The values in whose memory the arguments of a region lie."""
    return [around.plan.schedule.base[arg] for arg in region.args]


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
        given = [pointer(place_of(around.plan, op)) for op in lying(self.work.op, around)]
        made = [pointer(place_of(around.plan, op)) for op in kernel.results]
        results = dict(zip(self.work.numbers, made, strict=True))
        self.alignment = plan.schedule.target.alignment
        known: dict[Place, int] = {}
        apart: set[Place] = set()
        self.carries: list[Carry] = []
        self.stacks: list[Stack] = []
        self.before: list[Moved] = []
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
            size, stays = bytes_of(op), k in results
            if stays and around.chosen:  # where there is no turn, it is as it was before
                self.before.append(Moved(("number", (0, last)), ("number", (0, given[k])), size))
            both = given[k], last, ways[-1]
            self.carries.append(
                Carry(reads, known[place], *both, size, stays and not around.chosen)
            )
        first_buffer = around.first_buffer + inside.first[0]
        first_step = around.first_step + inside.steps[0]
        self.scope = Scope(plan, known, first_buffer, first_step, apart, around.chosen, True)

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


def branches(kernel: Kernel, around: Scope, pointer: Callable[[Place], int]) -> list[Scope]:
    """The scopes of the branches of a case: each does nothing where another was chosen."""
    assert isinstance(kernel.work, Region)
    work, inside = kernel.work, around.plan.inside[kernel.op]
    lies = lying(work.op, around)
    given = [pointer(place_of(around.plan, op)) for op in lies]
    results = [pointer(place_of(around.plan, op)) for op in kernel.results]
    found = []
    for k, body in enumerate(work.bodies):
        known: dict[Place, int] = {}
        apart: set[Place] = set()
        for leaf, arg, number in zip(body.leaves, lies, given, strict=True):
            known["leaf", Same(leaf)] = number
            if place_of(around.plan, arg) in around.apart:
                apart.add(("leaf", Same(leaf)))
        for n, (op, number) in enumerate(zip(kernel.results, results, strict=True)):
            known["result", n] = number
            if place_of(around.plan, op) in around.apart:
                apart.add(("result", n))
        buffer, step = around.first_buffer + inside.first[k], around.first_step + inside.steps[k]
        chosen = (*around.chosen, Chosen(given[0], k))
        found.append(Scope(inside.plans[k], known, buffer, step, apart, chosen, around.looped))
    return found
