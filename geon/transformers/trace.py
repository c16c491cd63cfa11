"""``trace``: every op's value for given inputs, from the naive interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..op_graph.axes import default_lengths
from ..op_graph.interpret import interpret
from ..op_graph.lengths import Length
from ..op_graph.op_graph import Leaf, Op, post_order

if TYPE_CHECKING:
    from .computation import Computation


@dataclass(frozen=True, eq=False)
class TraceEntry:
    """One op with its value: axes, the user's place, and the array."""

    op: Op
    value: np.ndarray[Any, Any]

    def __str__(self) -> str:
        op = self.op
        return f"{op.primitive.name} {op} {op.dtype.name} at {op.file_info}\n{self.value}"


def trace(f: Computation, args: Sequence[Any], keywords: dict[str, Any]) -> list[TraceEntry]:
    """The value of every op of a computation, arguments before users; changes no variable."""
    from .numpy.calls import arrange

    values = arrange(f.names, len(f.placeholders), tuple(args), keywords)
    leaves: dict[Leaf, Any] = {}
    for leaf, value in zip(f.placeholders, values, strict=True):
        leaves[leaf] = np.asarray(value).astype(leaf.dtype)
    lengths = bound_lengths(f, leaves)
    linking = f.linking
    f.transformer.ensure(list(linking.variables), list(linking.read), lengths)
    for leaf in linking.read:
        leaves[leaf] = f.transformer.get(leaf)
    lengths = {**lengths, **bound_lengths(f, leaves)}
    computed = interpret(f.pure.roots, leaves, lengths)
    return [TraceEntry(op, computed[op]) for op in post_order(f.pure.roots)]


def bound_lengths(f: Computation, leaves: dict[Leaf, Any]) -> dict[str, int]:
    """The integer of each open name: from the data, else what was asked for, else defaults."""
    found = dict(f.lengths)
    for leaf, array in leaves.items():
        for axis, size in zip(leaf.axes, array.shape, strict=True):
            if isinstance(axis.expression, Length) and axis.open_name is not None:
                found.setdefault(axis.open_name, size)
    return {**default_lengths(), **found}
