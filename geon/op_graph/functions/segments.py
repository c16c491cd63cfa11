"""Segment reductions, counts and histograms: elements with the same segment number are combined.

They are scatters into the identity
of the reduction, so the elements may come in any order, and halves are added in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes, Axis, new_axis
from ..building.constants import as_tensor, number, scalar_value
from ..building.resolve_axes import own_axis, refuse_present
from ..building.weak import exact, in_dtype, like
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows import reductions
from ..rows.accumulation import floating, widen
from ..rows.elementwise import (
    add,
    cast,
    divide,
    floor,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    not_equal,
    subtract,
    where,
)
from ..rows.indexing import scatter
from ..rows.leaves import length_value
from ..rows.logic import logical_and
from ..rows.movement import broadcast
from ..rows.reducers import highest, lowest
from ..rows.reductions import reduced_names
from ..values.dtypes import FLOAT64, INT64, DType, kind, sum_dtype
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, Named, TensorLike


def _segments(what: str, x: Tensor, segments: Any, segment_axis: Any, axis: Any) -> tuple[Any, ...]:
    """Return the tensor of numbers, the axis of ``x`` that is divided, and the axes of the result.

    Raises ``AxisError`` if the axis is left out and the numbers have not exactly one.
    """
    given, into = as_tensor(segments), new_axis(segment_axis, what)
    if kind(given.dtype) != "i":
        raise DTypeError(
            f"{user_call(what)}: the numbers {given} (made at {given.line_info}) of segments are "
            f"{given.dtype.name}, not an integer dtype; geon.cast them"
        )
    if axis is None and len(given.axes) != 1:
        raise AxisError(
            f"{user_call(what)}: the numbers {given} (made at {given.line_info}) of segments have "
            f"{len(given.axes)} axes; say along which of them {x} is divided, with axis="
        )
    for each in given.axes:
        own_axis(x, each, what)
    along = own_axis(given, own_axis(x, given.axes[0] if axis is None else axis, what), what)
    if into.name != along.name:
        refuse_present(x, into, what, "give the segments another axis")
    axes = [into if each.name == along.name else each for each in x.axes]
    return given, along, Axes(*axes)


def _combined(
    what: str,
    x: Tensor,
    arguments: tuple[Any, ...],
    mode: str,
    identity: Callable[[DType], Any],
) -> Tensor:
    given, _, axes = _segments(what, x, *arguments)
    start = broadcast(number(identity(x.dtype), x.dtype, x.weak), axes)
    return scatter(start, given, x, arguments[1], mode=mode)


@composite
def segment_sum(
    x: TensorLike,
    segments: TensorLike,
    segment_axis: Axis,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the sums of the elements of ``x`` that have the same number in ``segments``.

    ``segments`` holds integers over ``axis``, and over further axes of ``x`` if their segments
    differ. In the result ``segment_axis``, a new axis whose length is the number of segments, is in
    the place of ``axis``. The axis may be left out if ``segments`` has one axis. An empty segment
    gives 0. bool and small integers give int64. Negative numbers count from the last segment; one
    out of range raises ``IndexRangeError`` when it is computed.
    """
    x = as_tensor(x)
    x = in_dtype(x, sum_dtype(x.dtype))
    return _combined("segment_sum", x, (segments, segment_axis, axis), "add", lambda dtype: 0)


@composite
def segment_prod(
    x: TensorLike,
    segments: TensorLike,
    segment_axis: Axis,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the products of the elements of each segment, as ``segment_sum``; 1 if it is empty."""
    x = as_tensor(x)
    x = in_dtype(x, sum_dtype(x.dtype))
    return _combined("segment_prod", x, (segments, segment_axis, axis), "multiply", lambda dtype: 1)


@composite
def segment_max(
    x: TensorLike,
    segments: TensorLike,
    segment_axis: Axis,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the largest element of each segment, as ``segment_sum``.

    An empty segment gives the smallest number of the dtype, -inf for floats. Tied elements share
    the derivative equally.
    """
    x = _real("segment_max", as_tensor(x))
    return _combined("segment_max", x, (segments, segment_axis, axis), "max", lowest)


@composite
def segment_min(
    x: TensorLike,
    segments: TensorLike,
    segment_axis: Axis,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the smallest element of each segment, as ``segment_max``; inf if it is empty."""
    x = _real("segment_min", as_tensor(x))
    return _combined("segment_min", x, (segments, segment_axis, axis), "min", highest)


def _real(what: str, x: Tensor) -> Tensor:
    """Return ``x``; raise ``DTypeError`` if it is complex, since complex numbers have no order."""
    if kind(x.dtype) == "c":
        raise DTypeError(
            f"{user_call(what)}: {x} (made at {x.line_info}) is {x.dtype.name}, and complex "
            "numbers have no order; take its geon.real, geon.imag or geon.absolute"
        )
    return x


@composite
def segment_mean(
    x: TensorLike,
    segments: TensorLike,
    segment_axis: Axis,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the mean of each segment, as ``segment_sum``; NaN if it is empty.

    Integers and bool give float32.
    """
    x = floating(as_tensor(x))
    wide = widen(exact(x))
    given, along, _ = _segments("segment_mean", x, segments, segment_axis, axis)
    total = segment_sum(wide, given, segment_axis, along)
    one = broadcast(number(1, INT64), given.axes)
    count = segment_sum(one, given, segment_axis, along)
    return like(total / cast(count, total.dtype), x)


# Counts -------------------------------------------------------------------------------------------


@composite
def bincount(
    x: TensorLike,
    bins: Axis,
    reduction_axes: AxesLike | None = None,
    *,
    weights: TensorLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return how often each number 0, 1, ... occurs among the integers ``x``, along ``bins``.

    All elements over ``reduction_axes`` are counted, over all axes by default; the result has the
    remaining axes, then ``bins``, and is int64. With ``weights``, over axes of ``x``, it is the sum
    of the weights of the elements with that number. A number outside of ``bins`` raises
    ``IndexRangeError`` when it is computed; a negative one counts from the end.
    """
    x, into = as_tensor(x), new_axis(bins, "bincount")
    kept = _kept_axes(x, "bincount", reduction_axes, into)
    return _counted("bincount", x, into, kept, weights, None)


@composite
def histogram(
    x: TensorLike,
    bins: Axis,
    low: TensorLike,
    high: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    weights: TensorLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the number of elements of ``x`` in each of the equal parts of ``low`` to ``high``.

    The parts are the elements of the new axis ``bins``; a part has its lower edge, and the last one
    its upper edge too. What is outside, or NaN, is not counted; nothing is where ``low`` is not
    below ``high``, which raises ``ArgumentError`` for numbers. ``reduction_axes``, ``weights`` and
    the result are as in ``bincount``. For parts of unequal width use
    ``bincount(bucketize(x, edges), bins)``.
    """
    x, into = floating(as_tensor(x)), new_axis(bins, "histogram")
    bounds = [as_tensor(each) for each in (low, high)]
    known = [scalar_value(each) for each in bounds]
    if None not in known and not known[0] < known[1]:  # type: ignore[operator]  # numbers
        raise ArgumentError(
            f"{user_call('histogram')}: there is nothing between low = {low} and high = {high}; "
            "give a low that is less than high"
        )
    kept = _kept_axes(x, "histogram", reduction_axes, into)
    values = cast(x, FLOAT64)
    first, last = (cast(each, FLOAT64) for each in bounds)
    count = cast(length_value(into.expression), FLOAT64)
    step = divide.apply(subtract.apply(last, first), count)
    is_inside = logical_and.apply(
        greater_equal.apply(values, first), less_equal.apply(values, last)
    )
    is_counted = logical_and.apply(is_inside, less.apply(first, last))
    safe = where.apply(is_counted, values, first)
    at = floor.apply(divide.apply(subtract.apply(safe, first), where.apply(step > 0, step, 1)))

    def edge(k: Tensor) -> Tensor:
        return add.apply(multiply.apply(k, step), first)

    # A quotient may be rounded over an edge.
    at = where.apply(less.apply(safe, edge(at)), at - 1, at)
    at = where.apply(greater_equal.apply(safe, edge(at + 1)), at + 1, at)
    at = maximum.apply(minimum.apply(at, count - 1), 0)
    return _counted("histogram", cast(at, INT64), into, kept, weights, is_counted)


def _kept_axes(x: Tensor, what: str, reduction_axes: Any, bins: Axis) -> Axes:
    kept = x.axes.without(reduced_names(x, what, reduction_axes, None))
    refuse_present(x, bins, what, "give the bins another axis")
    return kept


def _counted(
    what: str, index: Tensor, bins: Axis, kept: Axes, weights: Any, counts: Tensor | None
) -> Tensor:
    """Return the sums of ``weights`` by index; elements where ``counts`` is false are left out."""
    if weights is None:
        given = number(1, INT64)
    else:
        given = as_tensor(weights)
        given = in_dtype(given, sum_dtype(given.dtype))
        missing = [name for name in given.axes.names if name not in index.axes]
        if missing:
            raise ArgumentError(
                f"{user_call(what)}: the weights {given} (made at {given.line_info}) have the axis "
                f"{missing[0]!r}, and what is counted has {index.axes}; give a weight for each "
                "element"
            )
    if counts is not None:
        given = where.apply(counts, given, number(0, given.dtype, given.weak))
    start = broadcast(number(0, given.dtype, given.weak), Axes(*kept, bins))
    return scatter(start, index, given, bins, mode="add")


@public
def count_nonzero(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the int64 number of elements that are not 0 over ``reduction_axes``; NaN is not 0."""
    is_counted = cast(not_equal(as_tensor(x), 0), INT64)
    return reductions.sum(is_counted, reduction_axes, out_axes=out_axes)
