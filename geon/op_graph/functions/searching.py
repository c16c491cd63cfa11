"""Binary search in sorted elements, linear interpolation between them, and membership."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError
from ..axes.axes import Axis
from ..building.constants import as_tensor, number
from ..building.resolve_axes import axis_of, own_axis
from ..building.weak import exact, meet_together
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..regions.while_loop import while_loop
from ..rows import reductions
from ..rows.accumulation import floating
from ..rows.elementwise import (
    add,
    cast,
    divide,
    equal,
    floordivide,
    greater,
    isnan,
    less,
    less_equal,
    log,
    maximum,
    minimum,
    stop_gradient,
    subtract,
    where,
)
from ..rows.indexing import gather
from ..rows.leaves import length_value
from ..rows.logic import left_shift, logical_and, logical_not, logical_or
from ..rows.movement import broadcast, flatten, rename
from ..rows.sort_and_cumulative import sort
from ..values.dtypes import FLOAT64, INT64, kind
from .composites import composite, interpolation

if TYPE_CHECKING:
    from ..building.typing import AxisLike, Named, TensorLike

SIDES = ("left", "right")
# Values that are compared with each element in one pass, about a nanosecond an element; the
# search among more of them takes a pass for each bit of their number, after a sort.
MAX_COMPARED_VALUES = 32


@composite
def searchsorted(
    values: TensorLike,
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    side: str = "left",
    **notes: Unpack[Named],
) -> Tensor:
    """Return where each element of ``x`` would be inserted into the ascending ``values``, as int64.

    ``values`` are sorted along ``axis``, their only axis by default; other axes of theirs are
    matched with those of ``x``. With ``side="left"`` it is the number of smaller values, so the
    first index that keeps the order; with ``"right"`` the number of those that are not larger. NaN
    counts as larger than all numbers, as in ``sort``. Whether the values are sorted is not checked.
    It is a binary search, of log2(n) passes over ``x``, and has no derivative.
    """
    given, x = [
        exact(each) for each in meet_together("searchsorted", [as_tensor(values), as_tensor(x)])
    ]
    if side not in SIDES:
        raise ArgumentError(
            f"{user_call('searchsorted')}: side={side!r} is neither 'left' nor 'right'; give one "
            "of them"
        )
    return _searched(given, x, axis_of(given, axis, "searchsorted"), side)


def _searched(values: Tensor, x: Tensor, axis: Axis, side: str) -> Tensor:
    values, x = stop_gradient(values), stop_gradient(x)
    length = cast(length_value(axis.expression), INT64)
    # Those of x, then the further ones of the values.
    own = [each for each in values.axes if each.name != axis.name and each not in x.axes]
    start = broadcast(number(0, INT64), [*x.axes, *own])

    def longer(rank: Tensor, step: Any) -> Tensor:
        """Return the count after a test of ``step`` further values."""
        end = add.apply(rank, step)
        last = maximum.apply(subtract.apply(minimum.apply(end, length), 1), 0)
        comes = _comes_before(gather(values, last, axis), x, side)
        return where.apply(logical_and.apply(less_equal.apply(end, length), comes), end, rank)

    if isinstance(axis.expression, int):
        rank = start
        for bit in reversed(range(axis.expression.bit_length())):
            rank = longer(rank, number(1 << bit, INT64))
        return rank
    # A power of two above half of the length; the logarithm may be rounded down by one.
    bits = cast(log.apply(cast(maximum.apply(length, 1), FLOAT64)) / math.log(2), INT64)
    step = left_shift.apply(number(1, INT64), add.apply(bits, 1))
    step = where.apply(greater.apply(length, 0), step, 0)
    _, counted = while_loop(
        lambda c: greater.apply(c[0], 0),
        lambda c: (floordivide.apply(c[0], 2), longer(c[1], c[0])),
        (step, start),
    )
    result: Tensor = counted
    return result


def _comes_before(value: Tensor, x: Tensor, side: str) -> Tensor:
    compare = less if side == "left" else less_equal
    result = compare.apply(value, x)
    if kind(x.dtype) != "f" and kind(value.dtype) != "f":
        return result
    if side == "right":  # everything is at most NaN
        return logical_or.apply(result, isnan.apply(x))
    is_less = logical_and.apply(isnan.apply(x), logical_not.apply(isnan.apply(value)))
    return logical_or.apply(result, is_less)


@public
def bucketize(
    x: TensorLike, boundaries: TensorLike, *, side: str = "left", **notes: Unpack[Named]
) -> Tensor:
    """Return the number of the interval between ``boundaries`` that each element of ``x`` is in.

    It is ``searchsorted(boundaries, x, side=side)`` for ascending boundaries over one axis: number
    i is between the boundaries i - 1 and i. An element that equals a boundary belongs to the
    interval below it with ``side="left"``, and to the one above it with ``"right"``.
    """
    return searchsorted(boundaries, x, side=side)


@composite
def interp(
    x: TensorLike,
    points: TensorLike,
    values: TensorLike,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the piecewise linear function that has ``values`` at ascending ``points``, at ``x``.

    ``points`` and ``values`` are over ``axis``, the only axis of ``points`` by default. ``values``
    may have further axes, and the result has the axes of ``x``, then these. Outside of the points
    it is the first or the last value. The derivative with respect to ``x`` is the slope of the
    part, at a point that of the part above it. Whether the points are sorted is not checked.
    Integers and bool give float32.
    """
    given, places, known = [floating(as_tensor(each)) for each in (x, points, values)]
    given, places, known = meet_together("interp", [given, places, known])
    along = own_axis(known, axis_of(places, axis, "interp"), "interp")
    last = subtract.apply(length_value(along.expression), 1)
    above = _searched(exact(places), exact(given), places.axes[along.name], "right")
    begin = maximum.apply(minimum.apply(subtract.apply(above, 1), subtract.apply(last, 1)), 0)
    ends = [cast(begin, INT64), cast(minimum.apply(add.apply(begin, 1), last), INT64)]
    low, high = (gather(places, at, along.name) for at in ends)
    width = subtract.apply(high, low)
    is_flat = equal.apply(width, 0)
    share = divide.apply(subtract.apply(given, low), where.apply(is_flat, 1, width))
    share = where.apply(less.apply(given, low), 0, share)
    share = where.apply(greater.apply(given, high), 1, share)
    first, second = (gather(known, at, along.name) for at in ends)
    return interpolation(first, second, share)


@composite
def isin(x: TensorLike, values: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return true where an element of ``x`` is among all elements of ``values``.

    The result has the axes of ``x``; axes of the same name are not matched. NaN is not in anything.
    """
    x, given = [exact(each) for each in meet_together("isin", [as_tensor(x), as_tensor(values)])]
    line = Axis("values", given.axes.size)
    while line in x.axes:
        line = line.prime
    flat = _flattened(given, line)
    if isinstance(line.expression, int) and line.expression <= MAX_COMPARED_VALUES:
        return reductions.any(equal.apply(x, flat), line)
    ordered = sort(flat, line)
    at = _searched(ordered, x, line, "left")
    last = subtract.apply(length_value(line.expression), 1)
    nearest = gather(ordered, cast(maximum.apply(minimum.apply(at, last), 0), INT64), line)
    return equal.apply(nearest, x)


def _flattened(x: Tensor, line: Axis) -> Tensor:
    """Return all elements of ``x`` along the axis ``line``."""
    if len(x.axes) == 1:
        return rename(x, {x.axes[0]: line})
    if not len(x.axes):
        return broadcast(x, [line])
    return flatten(x, x.axes, line)
