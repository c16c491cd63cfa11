"""Axes of the inputs of a program: names from the user, from its dynamic dimensions, or made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from ..positional.values import Size, fresh


def input_axes(name: str, stated: Any, given: Sequence[Any] | None) -> list[geon.Axis]:
    """Return the axes of an input, whose tensor in the program is ``stated``."""
    if given is not None and len(given) != stated.dim():
        raise ArgumentError(
            f"axes of {name!r}: {len(given)} names for {stated.dim()} dimensions; name each"
        )
    axes: list[geon.Axis] = []
    for k, size in enumerate(stated.shape):
        length = length_of(size)
        own = None if given is None else given[k]
        base = own.name if isinstance(own, geon.Axis) else own
        if base is None:
            base = f"{name}_{k}"
            if isinstance(length, Length):
                base = geon.Axis("d", length).open_name or base
        axes.append(geon.Axis(fresh(base, [axis.name for axis in axes]), length))
    return axes


def length_of(size: Any) -> Size:
    """Return a length of a program: an integer, or an expression over names of dimensions."""
    if isinstance(size, int):
        return size
    return _converted(size.node.expr, size.node.shape_env)


def _converted(expression: Any, environment: Any) -> Size:
    """Return a length expression for one of SymPy with the functions of ``torch.export``."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return Length.of(_dimension_name(expression, environment))
    parts = [_converted(each, environment) for each in expression.args]
    kind = type(expression).__name__
    found = parts[0] if parts else 0
    if kind == "Pow" and isinstance(parts[1], int) and parts[1] >= 1:
        for _ in range(parts[1] - 1):
            found = found * parts[0]
        return found
    if kind not in _FUNCTIONS:
        raise ArgumentError(f"a length of the program is {expression}, which geon cannot express")
    for part in parts[1:]:
        found = _FUNCTIONS[kind](found, part)
    return found


_FUNCTIONS = {
    "Add": lambda x, y: x + y,
    "Mul": lambda x, y: x * y,
    "FloorDiv": lambda x, y: x // y,
    "CleanDiv": lambda x, y: x // y,
    "Mod": lambda x, y: x % y,
    "PythonMod": lambda x, y: x % y,
}


def _dimension_name(symbol: Any, environment: Any) -> str:
    """Return the name of the ``torch.export.Dim`` of a symbol, or the symbol's own."""
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        found = names.get(source.name if isinstance(source.name, str) else source.name())
        if found:
            return str(found)
    return str(symbol)
