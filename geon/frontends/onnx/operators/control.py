"""Branches."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError
from ...positional.values import PositionalArray, array, as_array, full_tensor, known
from ..builder import Subgraph
from ..table import row


def branch(condition: Any, /, *, then_branch: Subgraph, else_branch: Subgraph) -> tuple[Any, ...]:
    """Return the outputs of one of two graphs; a known condition chooses when it is built."""
    if not isinstance(condition, PositionalArray):
        chosen = then_branch if bool(known(condition).reshape(())[()]) else else_branch
        return tuple(chosen())
    then_branch.prepare()
    else_branch.prepare()
    shapes: list[tuple[geon.Axis, ...]] = []

    def build(graph: Subgraph) -> list[geon.Tensor]:
        results = []
        for number, value in enumerate(graph()):
            if isinstance(value, (list, tuple)) or value is None:
                raise ArgumentError("a branch returns a sequence or an optional, chosen in a call")
            tensor = full_tensor(as_array(value))
            if len(shapes) <= number:
                shapes.append(tuple(tensor.axes))
            if len(shapes[number]) != len(tensor.axes):
                raise ArgumentError(
                    f"output {number} has {len(shapes[number])} dimensions in one branch and "
                    f"{len(tensor.axes)} in the other"
                )
            results.append(geon.cast_axes(tensor, shapes[number]))
        return results

    found = geon.cond(condition.tensor, lambda: build(then_branch), lambda: build(else_branch))
    return tuple([array(tensor, tensor.axes) for tensor in found])


ROWS = [
    row("If", branch),
]
