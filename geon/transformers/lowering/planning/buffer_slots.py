"""Memory slots of a plan's values, also in bodies of regions, and the open lengths that its program
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Generic, Self, TypeVar

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import names_of
from ....op_graph.op_graph import Leaf, Op, Same, deep_order
from ....op_graph.values.attribute_types import Frozen
from .kernel_forms import Place
from .plan import Plan, place_in

Pointer = TypeVar("Pointer")  # what a target calls memory by


@dataclass(frozen=True, eq=False, slots=True)
class MemoryScope(Generic[Pointer]):
    """A plan whose kernels are called, with the pointers to its memory there.

    ``known`` has those of a region's operands and results. ``first_buffer`` and ``first_step`` are
    the offsets of the plan's arena buffers and steps in the program. ``looped`` is True if a loop
    runs the plan.
    """

    plan: Plan
    known: Mapping[Place, Pointer] = field(default_factory=dict)
    first_buffer: int = 0
    first_step: int = 0
    looped: bool = False

    def step(self, position: int) -> int:
        """Return the program's number of the kernel at ``position``."""
        return self.first_step + self.plan.steps[position][0]

    def owners(self, region: Op) -> list[Op]:
        """Return the values that own the memory of a region's arguments."""
        return [self.plan.schedule.base[arg] for arg in region.args]

    def pointer(self, place: Place, table: Callable[[Place], Pointer]) -> Pointer:
        """Return the pointer to a location; ``table`` gives the program's own pointers."""
        found = self.known.get(place)
        if found is not None:
            return found
        if place[0] == "arena":
            assert isinstance(place[1], int)
            return table(("arena", self.first_buffer + place[1]))
        return table(place)

    def body(self, kernel: Op, number: int, known: Mapping[Place, Pointer], **further: Any) -> Self:
        """Return the scope of a body of the region that ``kernel`` computes."""
        inside = self.plan.inside[kernel]
        return replace(
            self,
            plan=inside.plans[number],
            known=known,
            first_buffer=self.first_buffer + inside.first[number],
            first_step=self.first_step + inside.steps[number],
            **further,
        )


def place_of(plan: Plan, op: Op) -> Place:
    """Return the memory slot of ``op``; ops in one slot share memory."""
    return place_in(plan.homes, op)


def pointer_table(
    plan: Plan, inputs: Iterable[Leaf], variables: Iterable[Leaf], constants: Iterable[Frozen]
) -> list[Place]:
    """Return the memory slots that a program reads and writes, in the order of its arguments."""
    table: list[Place] = [("leaf", Same(leaf)) for leaf in inputs]
    table += [("result", k) for k in range(len(plan.schedule.program.outputs))]
    table += [("leaf", Same(leaf)) for leaf in variables]
    table += [("frozen", value) for value in constants]
    table += [("arena", k) for k in range(len(plan.buffers))]
    return table


def open_lengths(plan: Plan) -> list[str]:
    """Return the names of a plan's open lengths, sorted."""
    found: set[str] = set()
    for op in deep_order(plan.schedule.program.roots):
        for axis in op.axes:
            found |= names_of(axis.expression)
        if op.primitive.name == "scan":
            found |= names_of(op.attrs.axis.expression)
        if op.primitive.name in ("length", "slice", "update", "checked"):
            found |= _named(op.attrs)
    return sorted(found)


def _named(value: object) -> set[str]:
    if isinstance(value, tuple):
        return {name for part in value for name in _named(part)}
    return set() if isinstance(value, (str, bool)) or value is None else set(names_of(value))  # type: ignore[arg-type]
