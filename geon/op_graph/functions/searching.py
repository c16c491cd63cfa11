"""Binary search in sorted elements, and membership."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError
from ..axes.axes import Axis
from ..building.constants import as_tensor, number
from ..building.resolve_axes import axis_of
from ..building.weak import exact
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..regions.while_loop import while_loop
from ..rows import reductions
from ..rows.elementwise import (
    add,
    cast,
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
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxisLike, Named, TensorLike

SIDES = ("left", "right")
# Above, a search of log2(n) passes is faster than comparing with all values in one pass.
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
    given, x = exact(as_tensor(values)), exact(as_tensor(x))
    if side not in SIDES:
        raise ArgumentError(
            f"{user_call('searchsorted')}: side={side!r} is neither 'left' nor 'right'; give one "
            "of them"
        )
    return _searched(given, x, axis_of(given, axis, "searchsorted"), side)


def _searched(values: Tensor, x: Tensor, axis: Axis, side: str) -> Tensor:
    values, x = stop_gradient(values), stop_gradient(x)
    length = cast(length_value(axis.expression), INT64)
    axes = gather_axes(values, x, axis)
    start = broadcast(number(0, INT64), axes)

    def longer(found: Tensor, step: Any) -> Tensor:
        """Return the count after a test of ``step`` further values."""
        end = add.apply(found, step)
        last = maximum.apply(subtract.apply(minimum.apply(end, length), 1), 0)
        comes = _comes_before(gather(values, last, axis), x, side)
        return where.apply(logical_and.apply(less_equal.apply(end, length), comes), end, found)

    if isinstance(axis.expression, int):
        found = start
        for bit in reversed(range(axis.expression.bit_length())):
            found = longer(found, number(1 << bit, INT64))
        return found
    # A power of two above half of the length; the logarithm may be rounded down by one.
    bits = cast(log.apply(cast(maximum.apply(length, 1), FLOAT64)) / math.log(2), INT64)
    step = left_shift.apply(number(1, INT64), add.apply(bits, 1))
    _, counted = while_loop(
        lambda c: greater.apply(c[0], 0),
        lambda c: (floordivide.apply(c[0], 2), longer(c[1], c[0])),
        (step, start),
    )
    made: Tensor = counted
    return made


def gather_axes(values: Tensor, x: Tensor, axis: Axis) -> Any:
    """Return the axes of a search: those of ``x``, then the further ones of ``values``."""
    further = [each for each in values.axes if each.name != axis.name and each not in x.axes]
    return [*x.axes, *further]


def _comes_before(value: Tensor, x: Tensor, side: str) -> Tensor:
    compare = less if side == "left" else less_equal
    found = compare.apply(value, x)
    if kind(x.dtype) != "f" and kind(value.dtype) != "f":
        return found
    if side == "right":  # everything is at most NaN
        return logical_or.apply(found, isnan.apply(x))
    is_less = logical_and.apply(isnan.apply(x), logical_not.apply(isnan.apply(value)))
    return logical_or.apply(found, is_less)


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
def isin(x: TensorLike, values: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return true where an element of ``x`` is among all elements of ``values``.

    The result has the axes of ``x``; axes of the same name are not matched. NaN is not in anything.
    """
    x, given = exact(as_tensor(x)), exact(as_tensor(values))
    line = Axis("values", given.axes.size)
    while line in x.axes:
        line = line.prime
    flat = _flattened(given, line)
    if isinstance(line.expression, int) and line.expression <= MAX_COMPARED_VALUES:
        return reductions.any(equal.apply(x, flat), line)
    ordered = sort(flat, line)
    at = _searched(ordered, x, line, "left")
    last = subtract.apply(length_value(line.expression), 1)
    found = gather(ordered, cast(maximum.apply(minimum.apply(at, last), 0), INT64), line)
    return equal.apply(found, x)


def _flattened(x: Tensor, line: Axis) -> Tensor:
    """Return all elements of ``x`` along the axis ``line``."""
    if len(x.axes) == 1:
        return rename(x, {x.axes[0]: line})
    if not len(x.axes):
        return broadcast(x, [line])
    return flatten(x, x.axes, line)
