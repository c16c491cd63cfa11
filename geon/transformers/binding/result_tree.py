"""Flatten structures of ops: any nesting as a flat list, and a layout to rebuild it."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError
from ...op_graph.building.constants import as_tensor
from ...op_graph.op_graph import Op
from ...op_graph.values.tree import SINGLE, Items, Structure, structure_of


def flatten_results(results: Any) -> tuple[list[Op], bool, Structure | None]:
    """Return the ops of a structure in order, True if it is a single one, and its layout.

    Lists and tuples are tuples in what a call returns. The layout is None for one flat tuple and
    for a single op. Raises ``ArgumentError`` for a structure that contains itself, and
    ``DTypeError`` for a leaf that is no op, number or array, with its position.
    """
    ops: list[Op] = []

    def leaf(value: Any, where: str) -> Structure:
        try:
            ops.append(value if isinstance(value, Op) else as_tensor(value))
        except DTypeError as error:
            raise DTypeError(f"{where}: {error}") from None
        return SINGLE

    layout = structure_of(results, "results", leaf, plain=True)
    plain = isinstance(layout, Items) and layout.like is None and layout.shallow
    return ops, layout is SINGLE, None if plain or layout is SINGLE else layout
