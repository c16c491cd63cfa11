"""Flatten structures of ops: any nesting as a flat list, and a layout to rebuild it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ...errors import ArgumentError, DTypeError
from ...op_graph.building.constants import as_tensor
from ...op_graph.op_graph import Op
from ..runtime.result_structure import Fields, Items, ResultLayout, Table


def flatten_results(results: Any) -> tuple[list[Op], bool, ResultLayout | None]:
    """Return the ops of a structure in order, True if it is a single one, and its layout.

    Lists and tuples are tuples in what a call returns. The layout is None for one flat tuple and
    for a single op. Raises ``ArgumentError`` for a structure that contains itself, and
    ``DTypeError`` for a leaf that is no op, number or array, with its position.
    """
    ops: list[Op] = []
    layout = _arranged(results, "results", ops, ())
    plain = isinstance(layout, Items) and layout.make is tuple and not any(layout.parts)
    return ops, layout is None, None if plain else layout


def _arranged(
    value: Any, where: str, ops: list[Op], inside: tuple[int, ...]
) -> ResultLayout | None:
    """Append the ops of a value to ``ops`` and return its layout; None for a single one."""
    if isinstance(value, Op):
        ops.append(value)
        return None
    if id(value) in inside:
        raise ArgumentError(f"{where} contains itself; give a structure that ends")
    inside = (*inside, id(value))

    def parts(named: Iterable[tuple[str, Any]]) -> list[ResultLayout | None]:
        return [_arranged(part, where + step, ops, inside) for step, part in named]

    if isinstance(value, dict):
        return Table(list(value), parts((f"[{key!r}]", part) for key, part in value.items()))
    if isinstance(value, (list, tuple)):
        found = parts((f"[{k}]", part) for k, part in enumerate(value))
        make = getattr(value, "_make", None)
        return Items(found) if make is None else Items(found, make, type(value)._fields)  # type: ignore[union-attr]  # a named tuple
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        found = parts((f".{name}", getattr(value, name)) for name in names)
        return Fields(names, found, value)
    try:
        ops.append(as_tensor(value))
    except DTypeError as error:
        raise DTypeError(f"{where}: {error}") from None
    return None
