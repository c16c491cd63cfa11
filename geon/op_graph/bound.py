"""Which ops have a value before a call runs."""

from __future__ import annotations

from .op_graph import Op


def is_bound(op: Op) -> bool:
    """Whether ``op`` is known before a call runs: storage, a constant, a length or its cast."""
    row = op.primitive
    return row.known or (row.name == "cast" and op.args[0].primitive.name == "length")
