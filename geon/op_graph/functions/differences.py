"""Differences, integrals of samples, covariances and distances along named axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axis
from ..building.constants import as_tensor
from ..building.resolve_axes import own_axis
from ..building.weak import in_dtype
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows import reductions
from ..rows.accumulation import floating, widen
from ..rows.contraction import contract
from ..rows.elementwise import (
    absolute,
    cast,
    equal,
    maximum,
    multiply,
    not_equal,
    power,
    subtract,
    where,
)
from ..rows.leaves import length_value
from ..rows.movement import rename
from ..rows.sort_and_cumulative import cumsum
from ..values.attribute_types import as_int
from .composites import L2_norm, composite, mean
from .resizing import diagonal

if TYPE_CHECKING:
    from ..building.typing import AxisLike, Named, TensorLike


def _neighbours(x: Tensor, axis: Axis) -> tuple[Tensor, Tensor]:
    """Return all but the last element along an axis, and all but the first."""
    result: tuple[Tensor, Tensor] = x[{axis: slice(None, -1)}], x[{axis: slice(1, None)}]
    return result


@composite
def diff(x: TensorLike, axis: AxisLike, n: int = 1, **notes: Unpack[Named]) -> Tensor:
    """Return the differences of neighbours along ``axis``, ``n`` times; it gets ``n`` shorter.

    Raises ``ArgumentError`` for an ``n`` below 0.
    """
    result, n = as_tensor(x), as_int(n)
    if type(n) is not int or n < 0:
        raise ArgumentError(
            f"{user_call('diff')}: the number of differences must be an integer of at least 0, "
            f"not {n!r}"
        )
    own_axis(result, axis, "diff")
    for _ in range(n):
        before, after = _neighbours(result, own_axis(result, axis, "diff"))
        compare = result.dtype.kind == "b"
        result = not_equal.apply(after, before) if compare else subtract.apply(after, before)
    return result


def _areas(y: Any, axis: Any, x: Any, dx: Any, what: str) -> tuple[Tensor, Tensor, Axis]:
    """Return the areas between neighbours in the accumulator's dtype, and ``y`` as a float."""
    y = floating(as_tensor(y))
    along = own_axis(y, axis, what)
    before, after = _neighbours(widen(y), along)
    step: Any = dx
    if x is not None:
        x = floating(as_tensor(x, near=y))
        low, high = _neighbours(widen(x), own_axis(x, axis, what))
        step = high - low
    return multiply(before + after, step) * 0.5, y, along


@composite
def trapezoid(
    y: TensorLike,
    axis: AxisLike,
    x: TensorLike | None = None,
    dx: TensorLike = 1.0,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the integral of samples ``y`` along ``axis`` by the trapezoidal rule.

    ``x`` are their coordinates, over ``axis`` at least; otherwise they are ``dx`` apart. Integers
    and bool give float32.
    """
    areas, y, along = _areas(y, axis, x, dx, "trapezoid")
    return in_dtype(reductions.sum(areas, along.name), y.dtype)


@composite
def cumulative_trapezoid(
    y: TensorLike,
    axis: AxisLike,
    x: TensorLike | None = None,
    dx: TensorLike = 1.0,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the integrals up to each sample but the first; arguments as for ``trapezoid``."""
    areas, y, along = _areas(y, axis, x, dx, "cumulative_trapezoid")
    return in_dtype(cumsum(areas, along.name), y.dtype)


# Statistics of pairs -----------------------------------------------------------------------------


@composite
def cov(
    x: TensorLike,
    variables: AxisLike,
    observations: AxisLike,
    *,
    correction: int = 1,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the covariances of the variables along one axis, over observations along another.

    The result has the axes of ``x`` without ``observations``, and the prime of ``variables`` last.
    Sums of products of differences from the mean are divided by the number of observations less
    ``correction``. Integers and bool give float32.
    """
    x = floating(as_tensor(x))
    own, over = own_axis(x, variables, "cov"), own_axis(x, observations, "cov")
    if own.name == over.name:
        raise AxisError(
            f"{user_call('cov')}: variables and observations of {x} (made at {x.line_info}) are "
            f"both along {own.name!r}; give two axes"
        )
    wide = widen(x)
    distance = subtract.apply(wide, mean(wide, over.name))
    other = rename(distance, {own: own.prime})
    kept = [axis for axis in distance.axes if axis.name != over.name]
    total = contract([distance, other], [*kept, own.prime])
    count = maximum.apply(length_value(over.expression) - as_int(correction), 0)
    return in_dtype(total / count, x.dtype)


@composite
def corrcoef(
    x: TensorLike, variables: AxisLike, observations: AxisLike, **notes: Unpack[Named]
) -> Tensor:
    """Return the correlation coefficients of variables; arguments and axes as for ``cov``.

    They are clamped to -1 and 1. A variable that is constant gives NaN.
    """
    result = cov(x, variables, observations)
    own = own_axis(result, variables, "corrcoef")
    deviation = power(diagonal(result, [own, own.prime]), 0.5)
    result = result / deviation / rename(deviation, {own: own.prime})
    return where(result > 1, 1.0, where(result < -1, -1.0, result))


@composite
def cdist(
    x: TensorLike, y: TensorLike, axis: AxisLike, p: float = 2.0, **notes: Unpack[Named]
) -> Tensor:
    """Return the distances of all points of ``x`` from those of ``y``, of coordinates on ``axis``.

    The result has the other axes of both; those that both have are matched. ``p`` is the exponent
    of the norm of the difference: 0 counts coordinates that differ, infinity takes the largest.
    For 0 < p, a derivative at distance 0 is 0. Raises ``ArgumentError`` for a negative ``p``.
    """
    x, y = floating(as_tensor(x)), floating(as_tensor(y))
    own_axis(y, axis, "cdist")
    name = own_axis(x, axis, "cdist").name
    between = subtract(x, y)
    if not p >= 0:
        raise ArgumentError(
            f"{user_call('cdist')}: the exponent of a norm is at least 0, not {p!r}"
        )
    if p == 2:
        return L2_norm(between, name)
    size = absolute(between)
    if p == 0:
        return in_dtype(reductions.sum(cast(not_equal(size, 0), size.dtype), name), size.dtype)
    if math.isinf(p):
        return reductions.max(size, name)
    total = reductions.sum(power(widen(size), p), name)
    if p == 1:
        return in_dtype(reductions.sum(widen(size), name), size.dtype)
    zero = equal(total, 0)
    return in_dtype(where(zero, 0, power(where(zero, 1, total), 1 / p)), size.dtype)
