"""Lengths of a program of ``torch.export`` as expressions over the names of its dimensions."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ..positional.naming import parsed_length
from ..positional.values import Size


def length_of(size: Any) -> Size:
    """Return a length of a program: an integer, or an expression over names of dimensions."""
    if isinstance(size, int):
        return size
    expression, environment = size.node.expr, size.node.shape_env
    names = {str(each): _dimension_name(each, environment) for each in expression.free_symbols}
    found = parsed_length(str(expression), names)
    if found is None:
        raise ArgumentError(f"a length of the program is {expression}, which geon cannot express")
    return found


def _dimension_name(symbol: Any, environment: Any) -> str:
    """Return the name of the ``torch.export.Dim`` of a symbol, or the symbol's own."""
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        found = names.get(source.name if isinstance(source.name, str) else source.name())
        if found:
            return str(found)
    return str(symbol)
