"""``trace``: every op's value for given inputs, from the naive interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..op_graph.interpret import interpret
from ..op_graph.labelled import by_name
from ..op_graph.op_graph import Leaf, Op, post_order

if TYPE_CHECKING:
    from .computation import Computation

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TraceEntry:
    """One op with its value: ``str`` shows its axes, dtype, the user's line, and the array."""

    op: Op
    value: Array

    def __str__(self) -> str:
        return f"{titled(self.op)}\n{self.value}"


def titled(op: Op) -> str:
    """An op for a person: primitive, name, axes, dtype, and the user's line that made it."""
    label = f"{op.primitive.name} {op}" if op.name else str(op)
    return f"{label} {op.dtype.name}, made at {op.file_info}"


def trace(f: Computation, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[TraceEntry]:
    """The value of every op of a computation, arguments before users; changes no variable.

    Effects are traced as the values they would put into variables. Raises what a call with these
    inputs raises before it computes.
    """
    known, lengths = at_entry(f, args, keywords)
    overridden = {
        op: np.asarray(by_name(value, op.axes.names, f"the override of {op}"))
        for op, value in f.given.items()
    }
    computed = interpret(f.pure.roots, {**known, **overridden}, lengths)
    return [TraceEntry(op, computed[op]) for op in post_order(f.pure.roots)]


def at_entry(
    f: Computation, args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[Leaf, Array], dict[str, int]]:
    """Copies of what a call with these inputs reads, by leaf, and the integer of each open name.

    Feeds, lengths and guards are checked as for a call, and variables get their initial values.
    """
    linking, memory = f.linking, f.transformer.memory

    def sizes(lengths: dict[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        return [], [], 0

    def bind(arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
        stored = dict(zip(linking.variables, variables, strict=True))
        return {leaf: stored[leaf] for leaf in linking.read}, lengths

    def run(bound: Any, *inputs: Array) -> tuple[dict[Leaf, Array], dict[str, int]]:
        stored, lengths = bound
        found = {leaf: np.array(a) for leaf, a in zip(linking.inputs, inputs, strict=True)}
        found.update((leaf, memory.copy_out(value)) for leaf, value in stored.items())
        memory.synchronise()
        return found, lengths

    call = f.transformer.link((bind, run, sizes), f, linking, writes=False)
    values = f.arranged(args, keywords)
    found: tuple[dict[Leaf, Array], dict[str, int]] = call(*values)
    return found
