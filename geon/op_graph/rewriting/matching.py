"""Predicates on ops that rewrite rules share, and helpers for their results."""

from __future__ import annotations

from typing import Any

from ..core.primitive import PRIMITIVES
from ..op_graph import Op, Tensor
from ..rows.movement import broadcast
from ..values.dtypes import HALVES, kind, name_of


def is_of(op: Op, name: str) -> bool:
    """Return True if the primitive of ``op`` has this name."""
    return op.primitive is PRIMITIVES[name]


def tensor(x: Op) -> Tensor:
    """Return ``x``; assert that it is a tensor."""
    assert isinstance(x, Tensor)
    return x


def strip_repeats(op: Op) -> Op:
    """Return the operand of ``op`` if it is a broadcast, otherwise ``op``."""
    return op.args[0] if is_of(op, "broadcast") else op


def strip_rounding(op: Op) -> Op:
    """Return the operand below casts of ``op`` to and from half precision."""
    while is_of(op, "cast") and kind(op.args[0].dtype) == "f":
        if not {name_of(op.dtype), name_of(op.args[0].dtype)}.intersection(HALVES):
            break
        op = op.args[0]
    return op


def over_axes(x: Any, op: Op) -> Tensor:
    """Broadcast ``x`` to the axes of the op that it replaces."""
    return broadcast(x, op.axes)
