"""Axes, leaves, guards and results as the plain values that the runtime takes: it knows no ops."""

from __future__ import annotations

from typing import Any

from ...op_graph.axes.axes import Axes
from ...op_graph.axes.lengths import Length
from ...op_graph.op_graph import Guard, Leaf, Op, Tensor
from ..runtime.dims import Dim
from ..runtime.out_arrays import Result


def dims_of(axes: Axes) -> tuple[Any, ...]:
    """Lengths as the runtime takes them: integers, or ``Dim`` for expressions over open names."""
    return tuple(dim_of(axis.expression) for axis in axes)


def dim_of(length: int | Length) -> Any:
    """One length as the runtime takes it."""
    if isinstance(length, int):
        return length
    return Dim(str(length), sorted(length.names()), length.evaluate)


def input_label(leaf: Leaf) -> str:
    """What messages call a placeholder."""
    return f"placeholder {leaf} (made at {leaf.line_info})"


def input_of(leaf: Leaf) -> tuple[str, Any, tuple[str, ...], tuple[Any, ...]]:
    """A placeholder: its label, dtype, the names of its axes, their lengths."""
    return input_label(leaf), leaf.dtype, leaf.axes.names, dims_of(leaf.axes)


def guard_of(guard: Guard) -> tuple[str, Any, Any, str]:
    """A guard: its relation, both lengths, and what to say where it does not hold."""
    return guard.relation, dim_of(guard.left), dim_of(guard.right), guard.meaning


def result_of(op: Op) -> Result:
    """A result of a computation, which is a value or an effect."""
    if not isinstance(op, Tensor):
        return Result(str(op), op.file_info)
    return Result(str(op), op.file_info, op.dtype, op.axes.names, dims_of(op.axes))
