"""Memory slots of a plan's values, and the open lengths that its program takes."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.axes.lengths import names_of
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, Same, deep_order
from ....op_graph.values.attribute_types import Frozen
from .plan import Plan

Place = tuple[str, object]  # kind of memory, and its number or the value that owns it


def place_of(plan: Plan, op: Op) -> Place:
    """Return the memory slot of ``op``; ops in one slot share memory."""
    if isinstance(op, Leaf):
        return "leaf", Same(op)
    if is_bound(op):
        return "constant", Same(op)
    home = plan.homes[op]
    return ("leaf", Same(home.leaf)) if home.leaf is not None else (home.kind, home.number)


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
