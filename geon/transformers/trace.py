"""``trace``: every op's value for given inputs, from the naive interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..op_graph.arrays import array_of
from ..op_graph.functional import Functional
from ..op_graph.interpret import interpret
from ..op_graph.labelled import by_name
from ..op_graph.op_graph import Op, RegionOp, post_order

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


def trace(
    pure: Functional,
    known: Mapping[Any, Array],
    lengths: Mapping[str, int],
    given: Mapping[Op, Any],
) -> list[TraceEntry]:
    """The value of every op of a graph, arguments before users; changes no variable.

    ``known`` has the values of its leaves, ``given`` those that override what is computed. Effects
    are traced as the values they would put into variables.
    """
    overridden = {
        op: array_of(
            by_name(value, op.axes.names, f"the override of {op}"), f"the override of {op}"
        )
        for op, value in given.items()
    }
    computed = interpret(pure.roots, {**known, **overridden}, lengths)
    ops = [op for op in post_order(pure.roots) if not isinstance(op, RegionOp)]
    return [TraceEntry(op, computed[op]) for op in ops]
