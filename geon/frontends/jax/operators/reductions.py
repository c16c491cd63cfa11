"""Reductions, running combinations, sorting and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ...positional.functions import (
    argument,
    bounds_of,
    extreme,
    order_along,
    running,
    take_along,
    top_k,
)
from ...positional.programs import backward, cast
from ...positional.reductions import reduce
from ...positional.sliding import Slide, elements_at, extreme_places, folded_windows, spread
from ...positional.values import Value


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a reduction in the dtype of the operand."""

    def build(x: Value, *, axes: Sequence[int]) -> Value:
        return cast(reduce(f, x, list(axes), keep=False), x.dtype)

    return build


def extreme_over(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the largest or the smallest elements."""
    return lambda x, *, axes: extreme(f, x, list(axes), False)


def argument_along(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the first index of an extreme."""
    return lambda x, *, axes, index_dtype: cast(argument(f, x, axes[0], False), index_dtype)


def parity(x: Value, *, axes: Sequence[int]) -> Value:
    """Return the exclusive or of truth values."""
    return reduce(
        lambda t, a: geon.equal(geon.mod(geon.sum(geon.cast(t, "int64"), a), 2), 1),
        x, list(axes), keep=False,
    )  # fmt: skip


def cumulative(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of combinations of all elements up to each one."""
    return lambda x, *, axis, reverse: cast(running(f, x, axis, reverse=reverse), x.dtype)


def sort(*operands: Value, dimension: int, num_keys: int) -> tuple[Value, ...]:
    """Return operands in the order of the first ``num_keys`` of them; stable."""
    order: Value | None = None
    for key in reversed(operands[:num_keys]):
        found = order_along(key if order is None else take_along(key, order, dimension), dimension)
        order = found if order is None else take_along(order, found, dimension)
    assert order is not None
    return tuple([take_along(each, order, dimension) for each in operands])


def _slides(
    dimensions: Sequence[int], strides: Sequence[int], padding: Any, dilation: Any
) -> dict[int, Slide]:
    rows = enumerate(zip(dimensions, strides, padding, dilation, strict=True))
    return {
        k: Slide(n, s, d, (int(p[0]), int(p[1])))
        for k, (n, s, p, d) in rows
        if (n, s, tuple(p)) != (1, 1, (0, 0))
    }


def windowed(f: Callable[..., Any], fill: Callable[[np.dtype[Any]], Any]) -> Callable[..., Value]:
    """Return the builder of a reduction of windows; outside elements are its neutral one."""

    def build(
        x: Value,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Any,
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
    ) -> Value:
        neutral = geon.constant(fill(x.dtype), dtype=x.dtype)
        for k, step in enumerate(base_dilation):
            x = spread(x, k, step, neutral)
        slides = _slides(window_dimensions, window_strides, padding, window_dilation)
        return cast(folded_windows(f, x, slides, neutral), x.dtype) if slides else x

    return build


def select_and_scatter_add(
    source: Value,
    x: Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> Value:
    """Return ``source`` added at the first extreme of each window: the derivative of a pool."""
    is_max = str(select_prim) == "ge"
    slides = _slides(window_dimensions, window_strides, padding, [1] * len(window_dimensions))
    fill = geon.constant(bounds_of(x.dtype)[0 if is_max else 1], dtype=x.dtype)

    places = extreme_places(geon.argmax if is_max else geon.argmin, x, slides, fill)
    return backward(lambda t: elements_at(t, places, slides, fill), [x], source)[0]


EXTREMES = {"reduce_max": geon.max, "reduce_min": geon.min, "reduce_and": geon.min,
            "reduce_or": geon.max}  # fmt: skip
CUMULATIVE: dict[str, Callable[..., Any]] = {
    "cumsum": geon.cumsum, "cumprod": geon.cumprod, "cummax": geon.cummax,
    "cummin": geon.cummin, "cumlogsumexp": geon.logcumsumexp,
}  # fmt: skip
ROWS: dict[str, Callable[..., Any]] = {
    "reduce_sum": reduction(geon.sum),
    "reduce_prod": reduction(geon.prod),
    **{name: extreme_over(f) for name, f in EXTREMES.items()},
    "reduce_xor": parity,
    "argmax": argument_along(geon.argmax),
    "argmin": argument_along(geon.argmin),
    **{name: cumulative(f) for name, f in CUMULATIVE.items()},
    "sort": sort,
    "top_k": lambda x, *, k, axis: top_k(x, k, axis % len(x.shape)),
    "reduce_window_sum": windowed(geon.sum, lambda dtype: 0),
    "reduce_window_max": windowed(geon.max, lambda dtype: bounds_of(dtype)[0]),
    "reduce_window_min": windowed(geon.min, lambda dtype: bounds_of(dtype)[1]),
    "select_and_scatter_add": select_and_scatter_add,
}  # fmt: skip
