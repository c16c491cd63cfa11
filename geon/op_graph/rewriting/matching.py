"""Predicates on ops that rewrite rules share, and conversion of what they return."""

from __future__ import annotations

from typing import Any

from ..core.primitive import PRIMITIVES
from ..op_graph import Op, Tensor
from ..rows.movement import broadcast
from ..values.dtypes import HALVES, kind, name_of


def is_of(op: Op, name: str) -> bool:
    """Whether ``op`` is of the primitive of this name."""
    return op.primitive is PRIMITIVES[name]


def tensor(x: Op) -> Tensor:
    """``x``, which is a tensor."""
    assert isinstance(x, Tensor)
    return x


def repeated(op: Op) -> Op:
    """What ``op`` is, or repeats along other axes."""
    return op.args[0] if is_of(op, "broadcast") else op


def unrounded(op: Op) -> Op:
    """What ``op`` is before it is rounded to a half, and widened again if it is."""
    while is_of(op, "cast") and kind(op.args[0].dtype) == "f":
        if not {name_of(op.dtype), name_of(op.args[0].dtype)}.intersection(HALVES):
            break
        op = op.args[0]
    return op


def over_axes(x: Any, op: Op) -> Tensor:
    """``x`` over the axes of the op it replaces."""
    return broadcast(x, op.axes)
