"""Axes of the inputs of programs, and lengths that are written as text."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from .values import Size, fresh

MAX_EXPRESSION_CHARACTERS = 200  # of a text that is read as an expression
MAX_EXPONENT = 16  # of a power in such a text
_FUNCTIONS: dict[Any, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    **dict.fromkeys((ast.FloorDiv, "floordiv", "FloorDiv", "CleanDiv"), operator.floordiv),
    **dict.fromkeys((ast.Mod, "mod", "Mod", "PythonMod"), operator.mod),
}


def parsed_length(text: str, names: Mapping[str, str] | None = None) -> Size | None:
    """Return the length that a text states, such as ``past + 1``; None if it states none.

    ``names`` replaces names of the text.
    """
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= MAX_EXPRESSION_CHARACTERS else None
        return None if tree is None else _evaluated(tree.body, names or {})
    except (SyntaxError, ValueError, ZeroDivisionError, MemoryError, RecursionError):
        return None


def _evaluated(node: ast.AST, names: Mapping[str, str]) -> Any:
    """Return the length of an expression; raise ``ValueError`` if it is of another kind."""
    if isinstance(node, ast.Name):
        return Length.of(names.get(node.id, node.id))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluated(node.operand, names)
    key: Any = None
    parts: list[Any] = []
    if isinstance(node, ast.BinOp):
        key, parts = type(node.op), [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        key, parts = node.func.id, node.args
    if key not in (*_FUNCTIONS, ast.Pow) or len(parts) != 2:
        raise ValueError("no length")
    left, right = (_evaluated(part, names) for part in parts)
    if key is not ast.Pow:
        return _FUNCTIONS[key](left, right)
    if not isinstance(right, int) or not 0 <= right <= MAX_EXPONENT:
        raise ValueError("no length")
    return math.prod([left] * right)


def named_axes(name: str, lengths: Sequence[Size], given: Sequence[Any] | None) -> list[geon.Axis]:
    """Return the axes of the input ``name``: with the names given, or those of open lengths.

    Others are called after the input and their position. Raises ``ArgumentError`` for a wrong
    number of names.
    """
    if given is not None and len(given) != len(lengths):
        raise ArgumentError(
            f"axes of {name!r}: {len(given)} names for {len(lengths)} dimensions; name each"
        )
    axes: list[geon.Axis] = []
    for k, length in enumerate(lengths):
        own = None if given is None else given[k]
        base = own.name if isinstance(own, geon.Axis) else own
        base = base or geon.Axis("d", length).open_name or f"{name}_{k}"
        axes.append(geon.Axis(fresh(base, [axis.name for axis in axes]), length))
    return axes
