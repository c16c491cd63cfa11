"""Reductions, running combinations, sorting and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ...positional.movement import with_axis
from ...positional.picking import gather_at
from ...positional.programs import backward, cast
from ...positional.reductions import reduce
from ...positional.sliding import Slide, folded_windows, spread
from ...positional.values import Value, array, as_array


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a reduction in the dtype of the operand."""

    def build(x: Value, *, axes: Sequence[int]) -> Value:
        return cast(reduce(f, x, list(axes), keep=False), x.dtype)

    return build


def extreme(f: Callable[..., Any], of_bool: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the largest or the smallest element."""

    def build(x: Value, *, axes: Sequence[int]) -> Value:
        return reduce(of_bool if x.dtype.kind == "b" else f, x, list(axes), keep=False)

    return build


def parity(x: Value, *, axes: Sequence[int]) -> Value:
    """Return the exclusive or of truth values."""
    return reduce(
        lambda t, a: geon.equal(geon.mod(geon.sum(geon.cast(t, "int64"), a), 2), 1),
        x, list(axes), keep=False,
    )  # fmt: skip


def argument(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the first index of an extreme."""

    def build(x: Value, *, axes: Sequence[int], index_dtype: Any) -> Value:
        given = with_axis(as_array(cast(x, "uint8") if x.dtype.kind == "b" else x), axes[0])
        return cast(reduce(f, given, list(axes), keep=False), index_dtype)

    return build


def running(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of running sums or products: ``f(tensor, axis, reverse=)``."""

    def build(x: Value, *, axis: int, reverse: bool) -> Value:
        given = with_axis(as_array(x), axis)
        return cast(array(f(given.tensor, given.dims[axis], reverse), given.dims), x.dtype)

    return build


def by_scan(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that combines all elements up to each one."""

    def build(tensor: geon.Tensor, axis: geon.Axis, reverse: bool) -> geon.Tensor:
        return geon.associative_scan(f, tensor, over=axis, reverse=reverse)  # type: ignore[no-any-return]  # a tensor

    return build


def log_add(x: geon.Tensor, y: geon.Tensor) -> geon.Tensor:
    """Return ``log(exp(x) + exp(y))``."""
    top = geon.maximum(x, y)
    gap = geon.minimum(x, y) - top
    return geon.where(geon.isinf(top), top, top + geon.log1p(geon.exp(gap)))


def reversible(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a running function that goes from the end on request."""

    def build(tensor: geon.Tensor, axis: geon.Axis, reverse: bool) -> geon.Tensor:
        return f(tensor, axis, reverse=reverse)  # type: ignore[no-any-return]  # a tensor

    return build


def sort(*operands: Value, dimension: int, num_keys: int) -> tuple[Value, ...]:
    """Return operands in the order of the first ``num_keys`` of them; stable."""
    order: Value | None = None
    batch = {k: k for k in range(len(operands[0].shape)) if k != dimension}
    for key in reversed(operands[:num_keys]):
        current = key if order is None else gather_at(key, {dimension: order}, batch)
        given = with_axis(as_array(cast(current, "uint8") if key.dtype.kind == "b" else current),
                          dimension)  # fmt: skip
        found: Value = array(geon.argsort(given.tensor, given.dims[dimension]), given.dims)
        order = found if order is None else gather_at(order, {dimension: found}, batch)
    assert order is not None
    return tuple([gather_at(each, {dimension: order}, batch) for each in operands])


def top_k(x: Value, *, k: int, axis: int) -> tuple[Value, Value]:
    """Return the ``k`` largest elements along a position, and their indices."""
    at = axis % len(x.shape)
    given = with_axis(as_array(x), at)
    values, index = geon.top_k(given.tensor, k, given.dims[at])
    return array(values, given.dims), cast(array(index, given.dims), "int32")


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


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the smallest number of a dtype."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def highest(dtype: np.dtype[Any]) -> Any:
    """Return the largest number of a dtype."""
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


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
    fill = geon.constant(lowest(x.dtype) if is_max else highest(x.dtype), dtype=x.dtype)

    def place(windows: geon.Tensor, inside: Any) -> geon.Tensor:
        flat = geon.flatten(windows, inside, geon.Axis("place", _size(slides)))
        return (geon.argmax if is_max else geon.argmin)(flat, "place")

    chosen = as_array(folded_windows(place, x, slides, fill))

    def value(windows: geon.Tensor, inside: Any) -> geon.Tensor:
        flat = geon.flatten(windows, inside, geon.Axis("place", _size(slides)))
        return geon.take_along(flat, chosen.tensor, "place")

    return backward(lambda t: folded_windows(value, t, slides, fill), [x], source)[0]


def _size(slides: dict[int, Slide]) -> int:
    return int(np.prod([slide.length for slide in slides.values()]))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_sum": reduction(geon.sum),
    "reduce_prod": reduction(geon.prod),
    "reduce_max": extreme(geon.max, geon.any),
    "reduce_min": extreme(geon.min, geon.all),
    "reduce_and": extreme(geon.min, geon.all),
    "reduce_or": extreme(geon.max, geon.any),
    "reduce_xor": parity,
    "argmax": argument(geon.argmax),
    "argmin": argument(geon.argmin),
}
ROWS: dict[str, Callable[..., Any]] = {
    **REDUCTIONS,
    "cumsum": running(reversible(geon.cumsum)),
    "cumprod": running(reversible(geon.cumprod)),
    "cummax": running(by_scan(geon.maximum)),
    "cummin": running(by_scan(geon.minimum)),
    "cumlogsumexp": running(by_scan(log_add)),
    "sort": sort,
    "top_k": top_k,
    "reduce_window_sum": windowed(geon.sum, lambda dtype: 0),
    "reduce_window_max": windowed(geon.max, lowest),
    "reduce_window_min": windowed(geon.min, highest),
    "select_and_scatter_add": select_and_scatter_add,
}
