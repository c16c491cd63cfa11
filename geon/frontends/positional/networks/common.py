"""Layouts of images and constants, for functions of networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ..elementwise import elementwise
from ..reductions import reduce
from ..reshaping import reshape, transpose
from ..values import PositionalArray, Value, as_array, host

ew = elementwise
INDEX = "int32"  # the dtype of positions in results


def rows_sum(x: Value, how: str = "sum") -> Value:
    """Return the sum, or the mean, over all dimensions but the first."""
    kinds: dict[str, Callable[..., Any]] = {"sum": geon.sum, "mean": geon.mean}
    if how not in kinds:
        raise ArgumentError(f"reduce={how!r} is neither 'sum' nor 'mean'; give one of them")
    return reduce(kinds[how], x, list(range(1, len(x.shape))), keep=False)


def channels_first(x: Value, format: str) -> Value:
    """Return images of a layout as (N, C, H, W); a single image gets N = 1."""
    if len(x.shape) == 3:
        x = reshape(x, [1, *x.shape] if format != "CHWN" else [*x.shape, 1])
    if len(x.shape) != 4:
        raise ArgumentError(f"{x} is no batch of images: give 3 or 4 dimensions, {format}")
    orders = {"NCHW": [0, 1, 2, 3], "NHWC": [0, 3, 1, 2], "CHWN": [3, 0, 1, 2]}
    return transpose(x, orders[format])


def channels_back(x: Value, format: str, like: Value) -> Value:
    """Return images (N, C, H, W) in a layout, without N if ``like`` has none."""
    orders = {"NCHW": [0, 1, 2, 3], "NHWC": [0, 2, 3, 1], "CHWN": [1, 2, 3, 0]}
    found = transpose(x, orders[format])
    if len(like.shape) == 3:
        return reshape(found, found.shape[1:] if format != "CHWN" else found.shape[:3])
    return found


def channel_position(x: Value, format: str) -> int:
    """Return the position of the channels; the last but for layouts of images."""
    if len(x.shape) < 3:
        return len(x.shape) - 1
    return {"NCHW": len(x.shape) - 3, "CHWN": 0, "NHWC": len(x.shape) - 1}[format]


def constant(number: Any, dtype: Any) -> PositionalArray:
    """Return a number as a value."""
    return as_array(host(number, dtype))


def pair(value: Any) -> tuple[int, int]:
    """Return a number twice, or two numbers."""
    try:
        listed = [int(n) for n in (value if isinstance(value, (list, tuple)) else [value, value])]
    except (TypeError, ValueError):
        raise ArgumentError(f"{value!r} is no integer; give one, or two") from None
    if len(listed) != 2:
        raise ArgumentError(f"{value!r} are {len(listed)} numbers; give one, or two")
    return listed[0], listed[1]


def optional(f: Callable[..., Any], x: Value, *others: Value | None) -> Value:
    """Return ``f(x, other)`` for each other value that is not None, one after another."""
    for each in others:
        x = x if each is None else ew(f, x, each)
    return x


def sizes(shape: Sequence[Any]) -> list[int]:
    """Return lengths as integers."""
    return [int(n) for n in shape]
