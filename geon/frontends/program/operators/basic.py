"""Operators that every program needs: sums of gradients, constants and copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...positional.elementwise import expand
from ...positional.programs import cast
from ...positional.values import PositionalArray, Size, host
from ..registry import Attribute, register_operator
from ..values import added


def filled(shape: Sequence[Size], value: float, dtype: object) -> PositionalArray:
    """Return a constant of a shape, which may have open lengths."""
    return expand(host(np.asarray(value, dtype)), shape)  # type: ignore[call-overload]  # a dtype


SHAPE = Attribute("shape", "ints", comment="the shape of the result")
VALUE = Attribute("value", "float", 0.0, "each element of the result")
DTYPE = Attribute("dtype", "string", "float32", "the dtype of the result")

register_operator("sum", added, ["X* the terms"], positional=True, comment="The sum of variables.")
register_operator("assign", lambda X: X, positional=True, comment="The value of X.")
register_operator(
    "fill_constant",
    lambda *, shape, value, dtype: filled(shape, value, dtype),
    [],
    attributes=[SHAPE, VALUE, DTYPE],
    differentiable=False,
    positional=True,
    comment="A variable all of whose elements are equal.",
)
register_operator(
    "fill_any_like",
    lambda X, *, value: filled(X.shape, value, X.dtype),
    attributes=[VALUE],
    differentiable=False,
    positional=True,
    comment="A variable of the shape and dtype of X, all of whose elements are equal.",
)
register_operator(
    "cast",
    lambda X, *, dtype: cast(X, dtype),
    attributes=[DTYPE],
    positional=True,
    comment="X in another dtype.",
)
