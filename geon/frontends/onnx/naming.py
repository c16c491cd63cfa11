"""Axes of the inputs of a model: names from the user, from the file, or made up."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import onnx

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from ..positional.values import Size, fresh
from .errors import ModelError


def input_axes(info: onnx.ValueInfoProto, given: Sequence[Any] | None) -> list[geon.Axis]:
    """Return the axes of an input: with the user's names, else those of the file.

    A dimension without a name is called after the input and its position.
    """
    kind = info.type.tensor_type
    if not kind.HasField("shape") and given is None:
        raise ModelError(
            f"the input {info.name!r} has no shape in the file; name its axes with "
            f"axes={{{info.name!r}: [...]}}"
        )
    dims = list(kind.shape.dim)
    if given is not None and kind.HasField("shape") and len(given) != len(dims):
        raise ArgumentError(
            f"axes of {info.name!r}: {len(given)} names for {len(dims)} dimensions; name each"
        )
    count = len(dims) if given is None else len(given)
    axes: list[geon.Axis] = []
    for position in range(count):
        dim = dims[position] if dims else onnx.TensorShapeProto.Dimension()
        own = None if given is None else given[position]
        axes.append(_axis(dim, own, f"{info.name}_{position}", [axis.name for axis in axes]))
    return axes


def _axis(
    dim: onnx.TensorShapeProto.Dimension, given: Any, base: str, taken: list[str]
) -> geon.Axis:
    parameter = dim.dim_param if dim.HasField("dim_param") else ""
    size: Size | None = None
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            raise ModelError(f"dimension {base!r} has the length {dim.dim_value}")
        size = dim.dim_value
    elif parameter:
        size = parsed_length(parameter)
    if isinstance(given, geon.Axis):
        if size is None or not isinstance(size, int):
            return given
        return geon.Axis(given.name, size)
    name = given or parameter or base
    if size is None or (given and not isinstance(size, int)):
        size = Length.of(name)
    return geon.Axis(fresh(name, taken), size)


_OPERATORS = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.FloorDiv: lambda x, y: x // y,
    ast.Mod: lambda x, y: x % y,
}
MAX_EXPRESSION_CHARACTERS = 200  # of a ``dim_param`` that is read as an expression


def parsed_length(text: str) -> Size:
    """Return the length of a ``dim_param``: an expression such as ``past + 1``, or a name."""
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= MAX_EXPRESSION_CHARACTERS else None
        found = None if tree is None else _evaluated(tree.body)
    except (SyntaxError, ValueError, ZeroDivisionError, MemoryError, RecursionError):
        found = None
    return Length.of(text) if found is None else found


def _evaluated(node: ast.AST) -> Any:
    if isinstance(node, ast.Name):
        return Length.of(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluated(node.left), _evaluated(node.right)
        return None if left is None or right is None else _OPERATORS[type(node.op)](left, right)
    return None
