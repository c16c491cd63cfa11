"""Functions that several programs name differently: quotients, extremes, order, norms, draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ...op_graph.axes.lengths import Length
from .elementwise import elementwise
from .folding import MAX_FOLDED_ELEMENTS
from .indexing import gather_elements
from .movement import with_axis
from .picking import gather_at, numbers
from .programs import cast, value_of
from .reductions import along_axis, reduce
from .values import Positions, Size, Value, array, as_array, host, new_axis, position


def truncated_divide(x: geon.Tensor, y: geon.Tensor) -> geon.Tensor:
    """Return the quotient, of integers without its fraction."""
    if x.dtype.kind not in "iu":
        return geon.divide(x, y)
    quotient = geon.floordivide(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = geon.not_equal(quotient * y, x)
    rounded = geon.logical_and(inexact, geon.not_equal(geon.less(x, 0), geon.less(y, 0)))
    return geon.where(rounded, quotient + 1, quotient)


def remainder(x: geon.Tensor, y: geon.Tensor) -> geon.Tensor:
    """Return the remainder of the truncated quotient, with the sign of ``x``."""
    if x.dtype.kind == "u":
        return geon.mod(x, y)
    rest = geon.mod(geon.absolute(x), geon.absolute(y))
    return geon.where(geon.less(x, 0), -rest, rest)


def scaled(x: Value, factor: Any) -> Value:
    """Return ``x`` times a factor in the dtype of ``x``."""
    if factor == 1:
        return x
    number = int(factor) if x.dtype.kind in "iu" and factor == int(factor) else factor
    return elementwise(lambda t: geon.cast(t * number, t.dtype), x)


def clip(x: Value, low: Any = None, high: Any = None) -> Value:
    """Return elements from ``low`` to ``high``; ``high`` wins if it is below ``low``."""
    for f, bound in ((geon.maximum, low), (geon.minimum, high)):
        x = x if bound is None else elementwise(f, x, value_of(bound, x.dtype))
    return x


def arange(start: Any, end: Any, step: Any, dtype: Any, folded: bool = False) -> Value:
    """Return the numbers from ``start`` on in steps of ``step`` up to, without, ``end``.

    These are numbers or lengths. If ``folded``, few numbers that are known are a host array.
    """
    if any(isinstance(bound, Length) for bound in (start, end, step)):
        length: Size = -((start - end) // step)
    else:
        length = max(int(np.ceil((end - start) / step)), 0)
        if folded and length <= MAX_FOLDED_ELEMENTS:
            first, each = np.asarray([start, step]).astype(dtype)
            return host(first + each * np.arange(length).astype(dtype), dtype)
    found = cast(numbers(length), dtype)
    found = found if step == 1 else elementwise(geon.multiply, found, host(step, dtype))
    return found if start == 0 else elementwise(geon.add, found, host(start, dtype))


def extreme(f: Callable[..., Any], x: Value, axes: Positions, keep: bool) -> Value:
    """Return ``geon.max`` or ``geon.min``, of truth values too."""
    found = reduce(f, cast(x, "uint8") if x.dtype.kind == "b" else x, axes, keep)
    return cast(found, x.dtype)


def argument(f: Callable[..., Any], x: Value, axis: int, keep: bool) -> Value:
    """Return ``geon.argmax`` or ``geon.argmin`` along a position, of truth values too."""
    given = with_axis(as_array(cast(x, "uint8") if x.dtype.kind == "b" else x), axis)
    return reduce(f, given, [axis], keep)


def order_along(x: Value, axis: int) -> Value:
    """Return the indices that sort along a position; stable."""
    return along_axis(geon.argsort, cast(x, "uint8") if x.dtype.kind == "b" else x, axis)


def top_k(x: Value, k: Size, axis: int = -1, largest: bool = True) -> tuple[Value, Value]:
    """Return the ``k`` largest or smallest elements along a position, in order, and their indices.

    ``k`` may be an open length.
    """
    at = position(axis, len(x.shape))
    given = with_axis(as_array(x), at)
    line = given.dims[at]
    assert line is not None  # with_axis gave it one
    if isinstance(k, int):
        values, indices = geon.top_k(given.tensor, k, line, largest=largest)
        return array(values, given.dims), array(indices, given.dims)
    order = geon.argsort(given.tensor, line, descending=largest)
    numbers = array(order[{line: slice(0, k)}], given.dims)
    return gather_elements(x, numbers, axis), numbers


def take_along(x: Value, index: Value, axis: int) -> Value:
    """Return the elements at ``index``, an array of the same rank, along a position."""
    at = position(axis, len(x.shape))
    return gather_at(x, {at: index}, {k: k for k in range(len(x.shape)) if k != at})


def running(f: Callable[..., Any], x: Value, axis: int, **options: Any) -> Value:
    """Return ``f(tensor, axis)`` along a position, such as ``geon.cumsum``."""
    return along_axis(lambda t, a: f(t, a, **options), x, axis)


def bounds_of(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest number of a dtype, infinite for floats."""
    if dtype.kind not in "iu":
        return -np.inf, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def normalized(x: Value, axes: Positions, eps: float) -> tuple[Value, ...]:
    """Return ``x`` with the mean 0 and the variance 1 over positions, in float32 at least.

    The mean, the reciprocal of the deviation and the variance follow.
    """
    given = cast(x, np.promote_types(x.dtype, np.float32))
    mean = reduce(geon.mean, given, axes)
    centred = elementwise(geon.subtract, given, mean)
    variance = reduce(geon.mean, elementwise(geon.square, centred), axes)
    scale = elementwise(lambda v: geon.rsqrt(v + eps), variance)
    return elementwise(geon.multiply, centred, scale), mean, scale, variance


def drawn(shape: Sequence[Size], dtype: Any, f: Callable[[list[geon.Axis], Any], Any]) -> Value:
    """Return ``f(axes, dtype)``, a draw in a dtype of at least 32 bits, in the dtype given."""
    axes: list[geon.Axis] = []
    for k, length in enumerate(shape):
        axes.append(new_axis(length, f"d_{k}", [axis.name for axis in axes]))
    used = [axis for axis in axes if axis.expression != 1]
    return cast(array(f(used, np.promote_types(dtype, np.float32)), axes), dtype)


def dropout(x: Value, share: float, stream: geon.Random) -> tuple[Value, Value]:
    """Return ``x`` with random elements 0 and the others scaled, and the mask of the others."""
    given = as_array(x)
    kept = stream.bernoulli(given.tensor.axes, p=1 - share, dtype="bool")
    scale = 0.0 if share == 1 else 1 / (1 - share)
    tensor = geon.cast(geon.where(kept, given.tensor * scale, 0), given.dtype)
    return array(tensor, given.dims), array(kept, given.dims)
