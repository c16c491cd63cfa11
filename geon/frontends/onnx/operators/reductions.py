"""Reductions over positions, and arguments of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...positional import functions
from ...positional.elementwise import elementwise
from ...positional.functions import bounds_of
from ...positional.movement import flip
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.values import Value, host, position
from ..table import row


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a reduction; its axes are the second input."""

    def build(
        x: Value,
        axes: Sequence[int] = (),
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        over = None if not axes and not noop_with_empty_axes else axes
        return cast(reduce(f, x, over, bool(keepdims)), x.dtype)

    return build


def sum_squares(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return the sum of squares."""
    return geon.sum(geon.square(x), axes)


def log_sum(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return the logarithm of the sum."""
    return geon.log(geon.sum(x, axes))


def log_sum_exp(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return the logarithm of the sum of exponentials, -inf for no elements."""
    empty = any(axis.expression == 0 for axis in axes)
    return log_sum(x, axes) if empty else geon.logsumexp(x, axes)


def absolute_sum(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return the sum of magnitudes."""
    return geon.sum(geon.absolute(x), axes)


def extreme(
    f: Callable[..., Any], of_bool: Callable[..., Any], end: int
) -> Callable[..., geon.Tensor]:
    """Return the reduction to the largest or smallest element, infinite or the bound for none."""

    def build(x: geon.Tensor, axes: Any) -> geon.Tensor:
        if x.dtype.kind == "b":
            return of_bool(x, axes)
        if any(axis.expression == 0 for axis in axes):
            rest = x.axes.without(axes)
            return geon.broadcast(geon.constant(bounds_of(x.dtype)[end], dtype=x.dtype), rest)
        return f(x, axes)

    return build


def argument(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the index of an extreme, of several the first or the last one."""

    def build(
        x: Value, /, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Value:
        at = position(axis, len(x.shape))
        if not select_last_index:
            return functions.argument(f, x, at, bool(keepdims))
        found = functions.argument(f, flip(x, [at]), at, bool(keepdims))
        return elementwise(geon.subtract, host(x.shape[at] - 1, "int64"), found)

    return build


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": geon.sum,
    "ReduceMean": geon.mean,
    "ReduceMax": extreme(geon.max, geon.any, 0),
    "ReduceMin": extreme(geon.min, geon.all, 1),
    "ReduceProd": geon.prod,
    "ReduceL1": absolute_sum,
    "ReduceL2": geon.L2_norm,
    "ReduceSumSquare": sum_squares,
    "ReduceLogSum": log_sum,
    "ReduceLogSumExp": log_sum_exp,
}

ROWS = [
    *[row(name, reduction(f), attributes={"axes": 1}) for name, f in REDUCTIONS.items()],
    row("ArgMax", argument(geon.argmax)),
    row("ArgMin", argument(geon.argmin)),
]
