"""Quantiles by all of NumPy's methods, medians, order statistics and the most frequent element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axis
from ..building.constants import as_tensor, number, scalar_value
from ..building.resolve_axes import axis_of, named_axes, own_axis
from ..building.weak import exact, like
from ..core.argument_hints import check_choice, public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows import reductions
from ..rows.accumulation import floating, widen
from ..rows.elementwise import (
    add,
    cast,
    equal,
    floor,
    greater_equal,
    isnan,
    less_equal,
    maximum,
    minimum,
    mod,
    not_equal,
    subtract,
    where,
)
from ..rows.indexing import gather
from ..rows.leaves import iota, length_value
from ..rows.logic import logical_and, logical_not, logical_or
from ..rows.movement import broadcast, flatten, reorder
from ..rows.reductions import reduced_names
from ..rows.sort_and_cumulative import argsort, cummax, sort, top_k
from ..values.dtypes import FLOAT64, INT64
from .composites import composite, interpolation

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, Named, TensorLike


class Method(NamedTuple):
    """A definition of quantiles: a position among the sorted elements, and the weight of the next.

    ``position(n, q)`` is that of the quantile ``q`` of ``n`` elements, with a fraction. ``weight``
    gives the share of the element above the position from the fraction and the whole part.
    """

    position: Callable[[Tensor, Tensor], Tensor]
    weight: Callable[[Tensor, Tensor], Tensor]


def _between(first: float, last: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the positions of Hyndman and Fan's continuous definitions, by their two parameters."""
    return lambda n, q: n * q + (first - 1) + q * (1 - first - last)


def _fraction(fraction: Tensor, whole: Tensor) -> Tensor:
    return fraction


def _step(at_a_position: float, between: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the weights of definitions that only ask if there is a fraction."""
    return lambda fraction, whole: where.apply(equal(fraction, 0), at_a_position, between)


def _nearest(fraction: Tensor, whole: Tensor) -> Tensor:
    """Return 1 if the position above is nearer; of two equally near ones the even one is taken."""
    is_odd = equal(mod(whole, 2), 1)
    is_up = logical_or(fraction > 0.5, logical_and(equal(fraction, 0.5), is_odd))
    return where.apply(is_up, number(1, FLOAT64), number(0, FLOAT64))


def _closest(fraction: Tensor, whole: Tensor) -> Tensor:
    # Of two equally near elements the one whose number, counted from 1, is even.
    is_even = logical_and(equal(fraction, 0), equal(mod(whole, 2), 1))
    return where.apply(is_even, number(0, FLOAT64), number(1, FLOAT64))


# R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician
# 50 (1996), by NumPy's names; the last four are variants of "linear".
METHODS = {
    "inverted_cdf": Method(lambda n, q: n * q - 1, _step(0, 1)),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, _step(0.5, 1)),
    "closest_observation": Method(lambda n, q: n * q - 1.5, _closest),
    "interpolated_inverted_cdf": Method(_between(0, 1), _fraction),
    "hazen": Method(_between(0.5, 0.5), _fraction),
    "weibull": Method(_between(0, 0), _fraction),
    "linear": Method(lambda n, q: (n - 1) * q, _fraction),
    "median_unbiased": Method(_between(1 / 3, 1 / 3), _fraction),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8), _fraction),
    "lower": Method(lambda n, q: (n - 1) * q, _step(0, 0)),
    "higher": Method(lambda n, q: (n - 1) * q, _step(0, 1)),
    "midpoint": Method(lambda n, q: (n - 1) * q, _step(0, 0.5)),
    "nearest": Method(lambda n, q: (n - 1) * q, _nearest),
}


@composite
def quantile(
    x: TensorLike,
    q: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    method: str = "linear",
    **notes: Unpack[Named],
) -> Tensor:
    """Return the quantiles ``q``, from 0 to 1, of the elements over ``reduction_axes``.

    ``q`` is a number, or a tensor over axes that ``x`` does not have: the result has the remaining
    axes of ``x``, or ``out_axes``, then those of ``q``. ``method`` is one of NumPy's names:
    ``"linear"`` interpolates between the nearest elements. It is NaN if an element is NaN, and for
    a ``q`` outside of 0 to 1, which raises ``ArgumentError`` for a number. Integers and bool give
    float32. The derivative goes to the elements that the result is made of. Raises ``AxisError``
    for axes of length 0.
    """
    return _quantile("quantile", x, q, reduction_axes, out_axes, method, skips=False)


@composite
def nanquantile(
    x: TensorLike,
    q: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    method: str = "linear",
    **notes: Unpack[Named],
) -> Tensor:
    """Return the ``quantile`` of the elements that are not NaN; NaN if all of them are."""
    return _quantile("nanquantile", x, q, reduction_axes, out_axes, method, skips=True)


@composite
def percentile(
    x: TensorLike,
    q: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    method: str = "linear",
    **notes: Unpack[Named],
) -> Tensor:
    """Return the ``quantile`` of ``q / 100``, for ``q`` from 0 to 100."""
    return _quantile("percentile", x, q, reduction_axes, out_axes, method, skips=False, unit=100)


@composite
def median(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the median over ``reduction_axes``: the middle element, or the mean of the middle two.

    NaN if an element is NaN; integers and bool give float32.
    """
    return _quantile("median", x, 0.5, reduction_axes, out_axes, "linear", skips=False)


@composite
def nanmedian(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the ``median`` of the elements that are not NaN; NaN if all of them are."""
    return _quantile("nanmedian", x, 0.5, reduction_axes, out_axes, "linear", skips=True)


def _quantile(
    what: str,
    x: Any,
    q: Any,
    reduction_axes: Any,
    out_axes: Any,
    method: str,
    skips: bool,
    unit: int = 1,
) -> Tensor:
    x, share = floating(as_tensor(x)), _share(what, q, unit)
    check_choice(what, "method", method, METHODS)
    names = reduced_names(x, what, reduction_axes, out_axes)
    rest = x.axes.without(names) if out_axes is None else named_axes(out_axes, what, x)
    for axis in share.axes:
        if axis in x.axes:
            raise AxisError(
                f"{user_call(what)}: q, {share} (made at {share.line_info}), and {x} (made at "
                f"{x.line_info}) both have the axis {axis.name!r}; geon.rename that of q"
            )
    ordered, line = _sorted(widen(exact(x)), names, what)
    is_missing = isnan(ordered)
    count: Tensor = cast(length_value(line.expression), FLOAT64)
    if skips:
        valid = reductions.sum(cast(logical_not(is_missing), INT64), line)
        count = cast(valid, FLOAT64)
    axes = [*rest.names, *share.axes.names]
    grid = [*count.axes, *share.axes]
    count, share = broadcast(count, grid), broadcast(share, grid)
    definition = METHODS[method]
    last = subtract.apply(count, 1)
    at = definition.position(count, share)
    whole = floor.apply(at)
    weight = cast(definition.weight(subtract.apply(at, whole), whole), ordered.dtype)

    def element(position: Tensor) -> Tensor:
        inside = maximum.apply(minimum.apply(position, last), 0)
        return gather(ordered, cast(inside, INT64), line)

    value = interpolation(element(whole), element(add.apply(whole, 1)), weight)
    lacks = equal(count, 0) if skips else reductions.any(is_missing, line)
    is_share = logical_and(greater_equal(share, 0), less_equal(share, 1))
    valid = logical_and.apply(logical_not(lacks), is_share)
    result = where.apply(valid, value, number(np.nan, value.dtype))
    return like(reorder(result, axes), x)


def _share(what: str, q: Any, unit: int) -> Tensor:
    """Return ``q / unit`` in float64; raise ``ArgumentError`` for a number outside of 0 to 1."""
    given = as_tensor(q)
    known = scalar_value(given)
    if known is not None and not 0 <= known <= unit:
        raise ArgumentError(
            f"{user_call(what)}: q = {known} is no share of the elements: it must lie in 0 to "
            f"{unit}; quantile takes 0 to 1, and percentile 0 to 100"
        )
    share = cast(given, FLOAT64)
    return share if unit == 1 else share / unit


def _sorted(x: Tensor, names: tuple[str, ...], what: str) -> tuple[Tensor, Axis]:
    """Return the elements over some axes in order along one axis, and that axis."""
    group = x.axes.only(names)
    if any(axis.expression == 0 for axis in group):
        raise AxisError(
            f"{user_call(what)} over {', '.join(names)} of {x} (made at {x.line_info}) has no "
            "value for 0 elements; give the axis at least one element"
        )
    line = Axis("_".join(names) or "one", group.size)
    while line in x.axes.without(names):
        line = line.prime
    flat = x if len(group) == 1 else flatten(x, group, line)
    return sort(flat, line.name), flat.axes[line.name]


# Order statistics ---------------------------------------------------------------------------------


@public
def kthvalue(x: TensorLike, k: int, axis: AxisLike | None = None) -> tuple[Tensor, Tensor]:
    """Return the ``k``-th smallest element along ``axis``, and its int64 index.

    ``k`` is an integer from 1, the smallest element, to the length of the axis. NaN counts as
    larger than all numbers; of equal elements the first comes first. Raises ``AxisError`` if there
    are fewer than ``k``.
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "kthvalue")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise AxisError(
            f"{user_call('kthvalue')}: axis {along} of {x} (made at {x.line_info}) has no "
            f"element number {k!r}; give a k that is an integer of at least 1, the smallest element"
        )
    values, positions = top_k(x, int(k), along, largest=False)
    last = {along.name: int(k) - 1}
    return values[last], positions[last]


@composite
def lexsort(
    keys: Sequence[TensorLike], axis: AxisLike | None = None, **notes: Unpack[Named]
) -> Tensor:
    """Return the int64 indices that sort by several ``keys`` along ``axis``, all ascending.

    The first key decides, the second one between elements that are equal in the first, and so on;
    ``np.lexsort`` has them in the opposite order. NaN is last; elements that are equal in all keys
    keep their order. All keys have ``axis``; other axes are matched.
    """
    tensors = [as_tensor(key) for key in keys]
    if not tensors:
        raise ArgumentError(f"{user_call('lexsort')}: there are no keys; give at least one")
    along = axis_of(tensors[0], axis, "lexsort").name
    order: Tensor | None = None
    for key in reversed(tensors):
        own_axis(key, along, "lexsort")
        by = argsort(key if order is None else gather(key, order, along), along)
        order = by if order is None else gather(order, by, along)
    assert order is not None
    return order


@public
def mode(x: TensorLike, axis: AxisLike | None = None) -> tuple[Tensor, Tensor]:
    """Return the most frequent element along ``axis``, and how often it occurs, as int64.

    Of equally frequent ones it is the smallest. Each NaN counts as another element.
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "mode")
    ordered = sort(x, along)
    at = iota(ordered.axes[along.name])
    before = gather(ordered, cast(maximum.apply(subtract.apply(at, 1), 0), INT64), along)
    begins = logical_or.apply(not_equal.apply(ordered, before), equal.apply(at, 0))
    begin = cummax(cast(where.apply(begins, at, 0), INT64), along)
    run = subtract.apply(at, begin)  # the number of equal elements before each one
    best = reductions.argmax(run, along)
    count = add.apply(reductions.max(run, along), 1)
    return gather(ordered, best, along), count


@public
def aminmax(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest element over ``reduction_axes``, in one pass."""
    least = reductions.min(x, reduction_axes, out_axes=out_axes)
    return least, reductions.max(x, reduction_axes, out_axes=out_axes)
