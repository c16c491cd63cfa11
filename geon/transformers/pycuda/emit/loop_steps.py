"""Steps of scans, while loops and cases whose body kernels are launched once per iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Same
from ...kernels.ir.nest import Region
from ...lowering.facts.value_sizes import bytes_of
from ...lowering.planning.buffer_slots import MemoryScope, place_of
from ...lowering.planning.schedule import Kernel
from ...printing.nests.parameters import Place
from ..launches.launch_ir import Carry, Condition, Copy, DeviceLoop, Stack, Step
from ..launches.naming import Chosen, Part, copied


@dataclass(frozen=True, eq=False, slots=True)
class LaunchScope(MemoryScope[int]):
    """A plan whose kernels are launched, and how its places map to pointer indices of the program.

    Values at places ``apart`` may have any element alignment. The plan runs only if all branches in
    ``chosen`` are taken.
    """

    apart: Set[Place] = frozenset()
    chosen: tuple[Chosen, ...] = ()


class LoopPointers:
    """Pointers of a scan or a while loop: carries, stacked values, and the scopes of its bodies.

    ``pointer`` returns the index of a place of the plan ``around``. ``virtual`` yields indices for
    pointers that change in each iteration. ``scopes`` are those of the condition, if there is one,
    and of an iteration. The copies ``before`` run before the loop.
    """

    def __init__(
        self,
        kernel: Kernel,
        around: LaunchScope,
        pointer: Callable[[Place], int],
        virtual: Iterator[int],
    ) -> None:
        assert isinstance(kernel.work, Region)
        work, inside = kernel.work, around.plan.inside[kernel.op]
        attrs, is_scan = work.op.attrs, work.op.primitive.name == "scan"
        counted = is_scan and attrs.counted
        # A loop whose end the device finds tests its branch itself, so its kernels need not.
        tests = counted or not is_scan
        lies = around.owners(work.op)
        given = [pointer(place_of(around.plan, op)) for op in lies]
        made = [pointer(place_of(around.plan, op)) for op in kernel.results]
        results = dict(zip(work.numbers, made, strict=True))
        # Behind its carries a while loop has the number of iterations, which is no output of the
        # body; a scan has captured values behind its stacked operands.
        further = 0 if is_scan else 1
        captures = attrs.before_captures if is_scan else attrs.carries
        plan, leaves = inside.plans[-1], work.bodies[-1].leaves
        self.truth = None if inside.truth is None else pointer(("arena", inside.truth))
        self.most = attrs.axis.expression if is_scan else attrs.limit
        self.reverse = is_scan and attrs.reverse
        self.given = given[-1] if counted else None
        self.chosen = pairs_of(around) if tests else ()
        self.carries: list[Carry] = []
        self.stacks: list[Stack] = []
        self.before: list[Part] = []
        read = [next(virtual) if k < captures else number for k, number in enumerate(given)]
        known: list[dict[Place, int]] = [
            {("leaf", Same(leaf)): number for leaf, number in zip(body.leaves, read, strict=False)}
            for body in work.bodies
        ]
        if self.truth is not None:
            known[0]["result", 0] = self.truth
        for k in range(attrs.carries, captures):
            self.stacks.append(Stack(read[k], given[k], bytes_of(leaves[k]), False))
        for k, op in enumerate(plan.schedule.program.outputs):
            writes = known[-1]["result", k] = next(virtual)
            size = bytes_of(op)
            if k >= attrs.carries:
                self.stacks.append(Stack(writes, results[k + further], size, True))
                continue
            ways = [results[k]] if k in results else []
            ways += [pointer(("arena", each)) for each in inside.spare[k]]
            first, last, other, stays = given[k], ways[0], ways[-1], k in results
            # A carry that is held is updated in place in the result's memory. If the loop does not
            # test its branch, a result without iterations must equal the initial value.
            if k in work.held or (stays and around.chosen and not tests):
                copy: Copy[Place] = Copy(("number", (0, last)), ("number", (0, first)), size)
                self.before.append(copied(copy, around.chosen))
                stays = False
            if k in work.held:
                first = other = last
            self.carries.append(Carry(read[k], writes, first, last, other, size, stays))
        chosen = () if tests else around.chosen
        self.scopes = [
            around.body(kernel.op, k, names, apart=inside.unaligned[k], chosen=chosen, looped=True)
            for k, names in enumerate(known)
        ]

    def loop(self, bodies: Sequence[Sequence[Step]]) -> DeviceLoop:
        """Return the loop step, given the steps of the bodies in the order of scopes."""
        condition = None if self.truth is None else Condition(self.truth, tuple(bodies[0]))
        return DeviceLoop(
            self.most, self.reverse, tuple(self.stacks), tuple(self.carries), tuple(bodies[-1]),
            self.given, condition, self.chosen,
        )  # fmt: skip


def pairs_of(around: LaunchScope) -> tuple[tuple[int, int], ...]:
    """Return (pointer index of the case's index, branch) for each branch that encloses a scope."""
    return tuple([(each.number, each.branch) for each in around.chosen])


def branches(
    kernel: Kernel, around: LaunchScope, pointer: Callable[[Place], int]
) -> list[LaunchScope]:
    """Return the scopes of the branches of a case; kernels of other branches do nothing."""
    assert isinstance(kernel.work, Region)
    work = kernel.work
    lies = around.owners(work.op)
    given = [pointer(place_of(around.plan, op)) for op in lies]
    results = [pointer(place_of(around.plan, op)) for op in kernel.results]
    found = []
    for k, body in enumerate(work.bodies):
        known: dict[Place, int] = {("result", n): number for n, number in enumerate(results)}
        for leaf, number in zip(body.leaves, given, strict=True):
            known["leaf", Same(leaf)] = number
        chosen = (*around.chosen, Chosen(given[0], k))
        places = around.plan.inside[kernel.op].unaligned[k]
        found.append(around.body(kernel.op, k, known, apart=places, chosen=chosen))
    return found
