"""Names and axes of the inputs of a jaxpr, and its symbolic dimensions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from ..positional.values import Size, fresh

_FUNCTIONS = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
}


def length_of(dimension: Any) -> Size:
    """Return a dimension as an integer, or as a length expression if it is symbolic."""
    if isinstance(dimension, (int, np.integer)):
        return int(dimension)
    return _converted(ast.parse(str(dimension), mode="eval").body, str(dimension))


def _converted(node: ast.AST, text: str) -> Size:
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]  # dimensions have integers alone
    if isinstance(node, ast.Name):
        return Length.of(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_converted(node.operand, text)
    key: Any = None
    parts: list[ast.AST] = []
    if isinstance(node, ast.BinOp):
        key, parts = type(node.op), [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        key, parts = node.func.id, list(node.args)
    if key is ast.Pow:
        base, exponent = parts[0], _converted(parts[1], text)
        found: Size = 1
        for _ in range(int(exponent)):
            found = found * _converted(base, text)
        return found
    if key not in _FUNCTIONS:
        raise ArgumentError(f"the dimension {text} of the jaxpr; geon's lengths cannot express it")
    return _FUNCTIONS[key](*[_converted(part, text) for part in parts])


def with_lengths(value: Any) -> Any:
    """Return a parameter of an equation with its symbolic dimensions as length expressions."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([with_lengths(each) for each in value])
    return length_of(value) if jax.export.is_symbolic_dim(value) else value


def path_name(path: Sequence[Any]) -> str:
    """Return the place of a leaf in a structure, such as ``layers.0.w``."""
    parts = []
    for entry in path:
        found = next(
            (getattr(entry, n) for n in ("key", "idx", "name") if hasattr(entry, n)), entry
        )
        parts.append(str(found))
    return ".".join(parts)


def input_axes(name: str, shape: Sequence[Any], given: Sequence[Any] | None) -> list[geon.Axis]:
    """Return the axes of an input, with the user's names or made up ones."""
    if given is not None and len(given) != len(shape):
        raise ArgumentError(
            f"axes of {name!r}: {len(given)} names for {len(shape)} dimensions; name each"
        )
    axes: list[geon.Axis] = []
    for k, dimension in enumerate(shape):
        length = length_of(dimension)
        own = None if given is None else given[k]
        base = own.name if isinstance(own, geon.Axis) else own
        axis = geon.Axis("d", length)
        base = base or axis.open_name or f"{name}_{k}"
        axes.append(axis.named(fresh(base, [each.name for each in axes])))
    return axes
