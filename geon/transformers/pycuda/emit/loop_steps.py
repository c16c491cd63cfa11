"""Steps of scans, while loops and cases whose body kernels are launched once per iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op, Same
from ...kernels.ir.nest import Region
from ...lowering.facts.value_sizes import bytes_of
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.plan import Plan
from ...lowering.planning.schedule import Kernel
from ...printing.nests.parameters import Place
from ..launches.launch_ir import Carry, Stack, Step, Turns, Until
from ..launches.naming import Chosen, MemoryCopy


@dataclass(frozen=True, eq=False, slots=True)
class LaunchScope:
    """The plan of a region's body and how its places map to pointer indices.

    ``known`` maps places to pointer indices of the program. ``first_buffer`` and ``first_step`` are
    the offsets of its buffers and steps in those of the program. Values at places ``apart`` may
    have any element alignment. The body runs only if all branches in ``chosen`` are taken.
    ``looped`` is True for the body of a loop.
    """

    plan: Plan
    known: Mapping[Place, int] = field(default_factory=dict)
    first_buffer: int = 0
    first_step: int = 0
    apart: Set[Place] = frozenset()
    chosen: tuple[Chosen, ...] = ()
    looped: bool = False

    def step(self, position: int) -> int:
        """Return the program's number of the kernel at ``position``."""
        return self.first_step + self.plan.steps[position][0]


def lying(region: Op, around: LaunchScope) -> list[Op]:
    """Return the values that own the memory of a region's arguments."""
    return [around.plan.schedule.base[arg] for arg in region.args]


class Turning:
    """Pointers of a scan: carries, stacked operands and results, and the scope of its body.

    ``pointer`` returns the index of a place of the plan ``around``. ``virtual`` yields indices for
    pointers that change in each iteration.
    """

    def __init__(
        self,
        kernel: Kernel,
        around: LaunchScope,
        pointer: Callable[[Place], int],
        virtual: Iterator[int],
    ) -> None:
        assert isinstance(kernel.work, Region)
        self.work, inside = kernel.work, around.plan.inside[kernel.op]
        a = self.a = self.work.op.attrs
        plan = inside.plans[0]
        outputs, leaves = plan.schedule.program.outputs, self.work.bodies[0].leaves
        lies = lying(self.work.op, around)
        given = [pointer(place_of(around.plan, op)) for op in lies]
        made = [pointer(place_of(around.plan, op)) for op in kernel.results]
        results = dict(zip(self.work.numbers, made, strict=True))
        self.alignment = plan.schedule.target.alignment
        known: dict[Place, int] = {}
        apart = anywhere(lies, leaves, kernel, self.work.numbers, a.carries, around)
        self.carries: list[Carry] = []
        self.stacks: list[Stack] = []
        self.before: list[MemoryCopy] = []
        for k, number in enumerate(given):
            place: Place = ("leaf", Same(leaves[k]))
            known[place] = number if k >= a.before_captures else next(virtual)
            if a.carries <= k < a.before_captures:
                self.stack(place, known, apart, number, bytes_of(leaves[k]))
        for k, op in enumerate(outputs):
            place = ("result", k)
            known[place] = next(virtual)
            if k >= a.carries:
                self.stack(place, known, apart, results[k], bytes_of(op), True)
                continue
            ways = [results[k]] if k in results else []
            ways += [pointer(("arena", each)) for each in inside.spare[k]]
            last = ways[0]
            reads = known["leaf", Same(leaves[k])]
            size, stays = bytes_of(op), k in results
            if (
                stays and k not in self.work.held and around.chosen and not a.counted
            ):  # with zero iterations the result must equal the initial value
                self.before.append(
                    MemoryCopy(("number", (0, last)), ("number", (0, given[k])), size)
                )
            if k in self.work.held:  # the carry is updated in place in the result's memory
                self.before.append(
                    MemoryCopy(("number", (0, last)), ("number", (0, given[k])), size)
                )
                self.carries.append(Carry(reads, known[place], last, last, last, size, False))
                continue
            both = given[k], last, ways[-1]
            self.carries.append(
                Carry(reads, known[place], *both, size, stays and (a.counted or not around.chosen))
            )
        first_buffer = around.first_buffer + inside.first[0]
        first_step = around.first_step + inside.steps[0]
        self.given = given[-1] if a.counted else None
        # A counted loop tests its branch itself, so its kernels need not test it.
        self.chosen = pairs_of(around) if a.counted else ()
        inner = () if a.counted else around.chosen
        self.scope = LaunchScope(plan, known, first_buffer, first_step, apart, inner, True)

    def stack(
        self,
        place: Place,
        known: Mapping[Place, int],
        apart: set[Place],
        pointer: int,
        stride: Size,
        written: bool = False,
    ) -> None:
        """Record that a place is a slice of a stacked value; ``stride`` is in bytes."""
        self.stacks.append(Stack(known[place], pointer, stride, written))
        aligned = self.alignment
        if not isinstance(stride, int) or stride % aligned:
            apart.add(place)

    def turns(self, steps: tuple[Step, ...], origins: tuple[int, ...]) -> Turns:
        """Return the scan's loop step, whose iterations run ``steps``."""
        a = self.a
        return Turns(
            a.axis.expression, a.reverse, tuple(self.stacks), tuple(self.carries), steps, origins,
            self.given, self.chosen,
        )  # fmt: skip


def anywhere(
    lies: Sequence[Op],
    leaves: Sequence[Op],
    kernel: Kernel,
    numbers: Sequence[int],
    carries: int,
    around: LaunchScope,
) -> set[Place]:
    """Return the places of a body that may have any element alignment, being slices of stacks.

    ``numbers`` are the body's indices of the kernel's results. The first ``carries`` results are
    carries: the next iteration reads them where they were written.
    """
    found: set[Place] = set()
    for leaf, arg in zip(leaves, lies, strict=False):
        if place_of(around.plan, arg) in around.apart:
            found.add(("leaf", Same(leaf)))
    for number, op in zip(numbers, kernel.results, strict=False):
        if place_of(around.plan, op) in around.apart:
            found.add(("result", number))
            if number < carries:
                found.add(("leaf", Same(leaves[number])))
    return found


def pairs_of(around: LaunchScope) -> tuple[tuple[int, int], ...]:
    """Return (pointer index of the case's index, branch) for each branch that encloses a scope."""
    return tuple([(each.number, each.branch) for each in around.chosen])


class Repeating:
    """Pointers of a while loop: carries, stacked results and scopes; see ``Turning``."""

    def __init__(
        self,
        kernel: Kernel,
        around: LaunchScope,
        pointer: Callable[[Place], int],
        virtual: Iterator[int],
    ) -> None:
        assert isinstance(kernel.work, Region)
        work, inside = kernel.work, around.plan.inside[kernel.op]
        a = self.a = work.op.attrs
        lies = lying(work.op, around)
        given = [pointer(place_of(around.plan, op)) for op in lies]
        made = [pointer(place_of(around.plan, op)) for op in kernel.results]
        results = dict(zip(work.numbers, made, strict=True))
        assert inside.truth is not None
        self.truth = pointer(("arena", inside.truth))
        carried = [next(virtual) if k < a.carries else number for k, number in enumerate(given)]
        known: list[dict[Place, int]] = [
            {("leaf", Same(leaf)): number
             for leaf, number in zip(body.leaves[:-1], carried, strict=True)}
            for body in work.bodies
        ]  # fmt: skip
        known[0]["result", 0] = self.truth
        # the number of iterations is no output of the body
        numbers = [k - (k > a.carries) for k in work.numbers]
        apart: set[Place] = set()
        for body in work.bodies:
            apart |= anywhere(lies, body.leaves, kernel, numbers, a.carries, around)
        self.carries: list[Carry] = []
        self.stacks: list[Stack] = []
        self.before: list[MemoryCopy] = []
        plan = inside.plans[1]
        for k, op in enumerate(plan.schedule.program.outputs):
            place: Place = ("result", k)
            written = known[1][place] = next(virtual)
            size = bytes_of(op)
            if k >= a.carries:
                self.stacks.append(Stack(written, results[k + 1], size, True))
                if not isinstance(size, int) or size % plan.schedule.target.alignment:
                    apart.add(place)
                continue
            ways = [results[k]] if k in results else []
            ways += [pointer(("arena", each)) for each in inside.spare[k]]
            first, stays = given[k], k in results
            if k in work.held:  # the carry is updated in place in the result's memory
                self.before.append(
                    MemoryCopy(("number", (0, ways[0])), ("number", (0, first)), size)
                )
                first, stays = ways[0], False
            self.carries.append(Carry(carried[k], written, first, ways[0], ways[-1], size, stays))
        self.chosen = pairs_of(around)
        self.scopes = [
            LaunchScope(
                inside.plans[k],
                known[k],
                around.first_buffer + inside.first[k],
                around.first_step + inside.steps[k],
                apart,
                looped=True,
            )
            for k in (0, 1)
        ]

    def until(
        self, test: tuple[list[Step], list[int]], step: tuple[list[Step], list[int]]
    ) -> Until:
        """Return the loop step, given steps and origins of the condition and of the body."""
        (tests, test_origins), (steps, origins) = test, step
        return Until(
            self.a.limit, tuple(self.stacks), tuple(self.carries), self.truth,
            tuple(tests), tuple(test_origins), tuple(steps), tuple(origins), self.chosen,
        )  # fmt: skip


def branches(
    kernel: Kernel, around: LaunchScope, pointer: Callable[[Place], int]
) -> list[LaunchScope]:
    """Return the scopes of the branches of a case; kernels of other branches do nothing."""
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
        found.append(
            LaunchScope(inside.plans[k], known, buffer, step, apart, chosen, around.looped)
        )
    return found
