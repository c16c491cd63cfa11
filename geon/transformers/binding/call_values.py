"""Axes, leaves, guards and results as plain values for the runtime, which has no ops."""

from __future__ import annotations

from typing import Any

from ...op_graph.axes.axes import Axes
from ...op_graph.axes.lengths import Length
from ...op_graph.op_graph import Guard, Leaf, Op, Tensor
from ..runtime.dims import Dim
from ..runtime.out_arrays import ResultDescription


def dims_of(axes: Axes) -> tuple[Any, ...]:
    """Return lengths for the runtime: integers, or ``Dim`` for expressions of open names."""
    return tuple(dim_of(axis.expression) for axis in axes)


def dim_of(length: int | Length) -> Any:
    """Return one length for the runtime."""
    if isinstance(length, int):
        return length
    return Dim(str(length), sorted(length.names()), length.evaluate)


def input_label(leaf: Leaf) -> str:
    """Return a placeholder's description in messages."""
    return f"placeholder {leaf} (made at {leaf.line_info})"


def input_of(
    leaf: Leaf, called: Leaf | None = None
) -> tuple[str, Any, tuple[str, ...], tuple[Any, ...]]:
    """Return a placeholder's label, dtype, axes' names and lengths.

    The label is that of ``called``, if given, whose parts ``leaf`` has.
    """
    label = input_label(leaf if called is None else called)
    return label, leaf.dtype, leaf.axes.names, dims_of(leaf.axes)


def guard_of(guard: Guard) -> tuple[str, Any, Any, str]:
    """Return a guard's relation, both lengths, and the message if it does not hold."""
    return guard.relation, dim_of(guard.left), dim_of(guard.right), guard.meaning


def result_of(op: Op) -> ResultDescription:
    """Return the description of a result, which is a value or an effect."""
    if not isinstance(op, Tensor):
        return ResultDescription(str(op), op.file_info)
    return ResultDescription(str(op), op.file_info, op.dtype, op.axes.names, dims_of(op.axes))
