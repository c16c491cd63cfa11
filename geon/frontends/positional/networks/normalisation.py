"""Normalisation of batches, layers and groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ..programs import cast
from ..reductions import reduce
from ..reshaping import reshape
from ..values import Value, position, positions
from .common import channel_position, ew, optional


def _wide(x: Value) -> Value:
    return cast(x, "float32") if x.dtype.itemsize < 4 else x


def _moments(x: Value, at: Sequence[int]) -> tuple[Value, Value, Value]:
    """Return ``x`` without its mean, the mean and the variance over positions, which stay."""
    mean = reduce(geon.mean, x, at)
    centred = ew(geon.subtract, x, mean)
    return centred, mean, reduce(geon.mean, ew(geon.square, centred), at)


def _affine(x: Value, scale: Value | None, bias: Value | None, dtype: Any) -> Value:
    made = optional(geon.multiply, x, None if scale is None else cast(scale, x.dtype))
    return cast(optional(geon.add, made, None if bias is None else cast(bias, x.dtype)), dtype)


def batch_norm(
    x: Value, scale: Value | None = None, bias: Value | None = None, mean: Value | None = None,
    var: Value | None = None, *, axes: Any = None, epsilon: float = 1e-5, momentum: float = 0.9,
    is_test: bool = False, format: str | None = None,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Return channels normalised over ``axes`` (all but channels), and the statistics.

    A running statistic becomes ``momentum * old + (1 - momentum) * new``; with ``is_test`` the
    running ones are used. Statistics have one element for each channel.
    """
    at = positions(axes, len(x.shape))
    if axes is None:
        at.remove(channel_position(x, format or "NHWC"))
    kept = [1 if k in at else n for k, n in enumerate(x.shape)]
    own = [n for n in kept if n != 1] or [1]
    shape = own if mean is None else mean.shape
    params = [None if p is None else reshape(p, kept) for p in (scale, bias, mean, var)]
    given = _wide(x)
    if is_test:
        if params[2] is None or params[3] is None:
            raise ArgumentError("batch_norm with is_test=True needs the inputs mean and var")
        of, spread = params[2], params[3]
        centred = ew(geon.subtract, given, cast(of, given.dtype))
    else:
        centred, of, spread = _moments(given, at)
    inverse = ew(lambda v: geon.rsqrt(v + epsilon), spread)
    y = _affine(ew(geon.multiply, centred, inverse), params[0], params[1], x.dtype)
    saved = [reshape(each, shape) for each in (of, inverse)]
    if is_test or mean is None or var is None:
        return y, mean, var, *saved

    def moved(old: Value, new: Value) -> Value:
        new = cast(reshape(new, old.shape), old.dtype)
        return ew(lambda o, n: momentum * o + (1 - momentum) * n, old, new)

    return y, moved(mean, of), moved(var, spread), *saved


def layer_norm(
    x: Value, scale: Value | None = None, bias: Value | None = None, *, axes: Any = (-1,),
    epsilon: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    """Return ``x`` normalised over ``axes``, the mean, and 1 / deviation."""
    centred, mean, spread = _moments(_wide(x), axes)
    inverse = ew(lambda v: geon.rsqrt(v + epsilon), spread)
    return _affine(ew(geon.multiply, centred, inverse), scale, bias, x.dtype), mean, inverse


def group_norm(
    x: Value, scale: Value | None = None, bias: Value | None = None, *, groups: int = 1,
    axis: int | None = None, axes: Any = None, epsilon: float = 1e-5, format: str | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """Return ``x`` normalised over each group of channels and over ``axes``.

    ``axis`` is that of channels; ``axes`` are all others but the first by default.
    """
    rank = len(x.shape)
    at = channel_position(x, format or "NHWC") if axis is None else position(axis, rank)
    channels = x.shape[at]
    if channels % groups:
        raise ArgumentError(f"{channels} channels of {x} do not divide into groups={groups}")
    rest = [k for k in range(1, rank) if k != at] if axes is None else positions(axes, rank)
    shape = [*x.shape[:at], groups, channels // groups, *x.shape[at + 1 :]]
    over = [at + 1, *[k + (k > at) for k in rest if k != at]]
    centred, mean, spread = _moments(_wide(reshape(x, shape)), over)
    inverse = ew(lambda v: geon.rsqrt(v + epsilon), spread)
    normal = reshape(ew(geon.multiply, centred, inverse), x.shape)
    own = [channels if k == at else 1 for k in range(len(x.shape))]
    scale, bias = [
        p if p is None or len(p.shape) == len(own) else reshape(p, own) for p in (scale, bias)
    ]
    saved = [
        reshape(each, [n for k, n in enumerate(each.shape) if k != at + 1])
        for each in (mean, inverse)
    ]
    return _affine(normal, scale, bias, x.dtype), *saved


def rmsnorm(
    x: Value, scale: Value | None = None, *, axes: Any = (-1,), epsilon: float = 1e-6
) -> tuple[Value, Value]:
    """Return ``x`` divided by the root of the mean of its squares over ``axes``, and 1 / root."""
    given = _wide(x)
    squares = reduce(geon.mean, ew(geon.square, given), axes)
    inverse = ew(lambda v: geon.rsqrt(v + epsilon), squares)
    return _affine(ew(geon.multiply, given, inverse), scale, None, x.dtype), inverse
