"""Accumulators of sums and counts that geon inserts: wide dtypes, rounded once at the end.

``dtypes.accumulator`` defines the dtype. Every rule and composite that adds up values uses these
functions.
"""

from __future__ import annotations

from ..building.weak import in_dtype
from ..core.primitive import refuse_float8
from ..op_graph import Op, Tensor
from ..values.dtypes import FLOAT32, DType, accumulator, is_continuous
from .elementwise import add, cast
from .leaves import placeholder


def floating(x: Tensor) -> Tensor:
    """Return ``x``, cast to float32 if it has an integer dtype or bool; float8 raises."""
    refuse_float8((x,), "call")
    return x if is_continuous(x.dtype) else in_dtype(x, FLOAT32)


def widen(x: Tensor) -> Tensor:
    """Return ``x`` in the accumulator dtype of sums of its elements."""
    return in_dtype(x, accumulator(x.dtype))


def accumulate(total: Tensor | None, part: Tensor) -> Tensor:
    """Return ``total + part`` in their accumulator dtype; ``part`` itself if there is no total."""
    if total is None:
        return part
    return add.apply(widen(total), widen(part))


def round_total(total: Tensor, dtype: DType) -> Tensor:
    """Return a total of values of ``dtype`` in that dtype."""
    return cast(total, dtype) if total.dtype is accumulator(dtype) is not dtype else total


def total_of(op: Op) -> Tensor:
    """Return a placeholder for a total of values like ``op``: its axes, the accumulator dtype."""
    return placeholder(op.axes, accumulator(op.dtype))
