"""Normalisation of batches, layers and groups of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.programs import backward, cast
from ...positional.reductions import reduce
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Value, as_array, host
from .common import wide

Triple = tuple[Value, ...]


def _normal(x: Value, at: Sequence[int], eps: float) -> Triple:
    """Return ``x`` with mean 0 and variance 1 over positions, the mean, and 1 / deviation."""
    given = wide(x)
    mean = reduce(geon.mean, given, at)
    centred = elementwise(geon.subtract, given, mean)
    spread = reduce(geon.mean, elementwise(geon.square, centred), at)
    scale = elementwise(lambda v: geon.rsqrt(v + eps), spread)
    return elementwise(geon.multiply, centred, scale), mean, scale, spread


def _affine(x: Value, weight: Value | None, bias: Value | None, dtype: Any) -> Value:
    if weight is not None:
        x = elementwise(geon.multiply, x, cast(weight, x.dtype))
    if bias is not None:
        x = elementwise(geon.add, x, cast(bias, x.dtype))
    return cast(x, dtype)


def _by_channel(value: Value | None, rank: int) -> Value | None:
    return value if value is None or rank < 3 else unsqueeze(value, range(1, rank - 1))


def layer_norm(
    x: Value, shape: Sequence[Any], weight: Value | None, bias: Value | None, eps: float
) -> Triple:
    """Return ``x`` normalised over its last dimensions, the mean, and 1 / deviation."""
    rank = len(x.shape)
    normal, mean, scale, _ = _normal(x, range(rank - len(shape), rank), eps)
    return _affine(normal, weight, bias, x.dtype), mean, scale


def group_norm(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    n: Any,
    c: Any,
    hxw: Any,
    groups: int,
    eps: float,
) -> Triple:
    """Return ``x`` normalised over each group of channels, the mean, and 1 / deviation."""
    shape, rank = x.shape, len(x.shape)
    parts = reshape(x, [shape[0], groups, shape[1] // groups, *shape[2:]])
    normal, mean, scale, _ = _normal(parts, range(2, rank + 1), eps)
    flat = [reshape(each, [shape[0], groups]) for each in (mean, scale)]
    whole = reshape(normal, shape)
    result = _affine(whole, _by_channel(weight, rank), _by_channel(bias, rank), x.dtype)
    return result, flat[0], flat[1]


def batch_norm(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Triple:
    """Return channels normalised, their mean and 1 / deviation, and the new running statistics.

    In training the mean and the variance are those of the batch, else the running ones.
    """
    rank = len(x.shape)
    rest = [0, *range(2, rank)]
    if not training:
        assert mean is not None and variance is not None
        scale = elementwise(lambda v: geon.rsqrt(v + eps), wide(variance))
        centred = elementwise(geon.subtract, wide(x), _by_channel(mean, rank))  # type: ignore[arg-type]  # not None
        normal = elementwise(geon.multiply, centred, _by_channel(scale, rank))  # type: ignore[arg-type]  # not None
        result = _affine(normal, _by_channel(weight, rank), _by_channel(bias, rank), x.dtype)
        return result, mean, scale, mean, variance
    normal, own, scale, spread = _normal(x, rest, eps)
    result = _affine(normal, _by_channel(weight, rank), _by_channel(bias, rank), x.dtype)
    flat = [reshape(each, [x.shape[1]]) for each in (own, scale, spread)]
    if mean is None or variance is None:
        return result, flat[0], flat[1]
    count = product([x.shape[k] for k in rest])
    total = geon.cast(as_array(host(count, "int64")).tensor, flat[2].dtype)
    unbiased = elementwise(lambda v: v * (total / (total - 1)), flat[2])

    def moved(old: Value, new: Value) -> Value:
        return elementwise(
            lambda o, n: (1 - momentum) * o + momentum * n, old, cast(new, old.dtype)
        )

    return result, flat[0], flat[1], moved(mean, flat[0]), moved(variance, unbiased)


def batch_norm_no_statistics(
    x: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> Triple:
    """Return ``batch_norm`` with the statistics of the batch."""
    return batch_norm(x, weight, bias, None, None, True, momentum, eps)[:3]


def batch_norm_inference(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    momentum: float,
    eps: float,
) -> Triple:
    """Return ``batch_norm`` with the running statistics; the last two results are empty."""
    empty = host([], "float32")
    return batch_norm(x, weight, bias, mean, variance, False, momentum, eps)[0], empty, empty


def derivative(forward: Callable[..., Value], seed: Value, x: Value, *parameters: Any) -> Triple:
    """Return the derivatives with respect to ``x`` and parameters; None for those that are None."""
    there = [x, *[p for p in parameters if p is not None]]

    def build(*given: Value) -> Value:
        rest = iter(given[1:])
        return forward(given[0], *[None if p is None else next(rest) for p in parameters])

    found = iter(backward(build, there, seed))
    return tuple([None if p is None else next(found) for p in (x, *parameters)])  # type: ignore[misc]  # as PyTorch has it


def layer_norm_backward(
    gradient: Value,
    x: Value,
    shape: Sequence[Any],
    mean: Value,
    scale: Value,
    weight: Value | None,
    bias: Value | None,
    wanted: Sequence[bool],
) -> Triple:
    """Return the derivatives of ``layer_norm`` with respect to ``x``, weight and bias."""
    rank = len(x.shape)
    at = range(rank - len(shape), rank)

    def forward(t: Value, w: Value | None, b: Value | None) -> Value:
        centred = elementwise(geon.subtract, t, reduce(geon.mean, t, at))
        spread = reduce(geon.mean, elementwise(geon.square, centred), at)
        # The eps of the forward pass is in 1 / deviation, which is given.
        eps = elementwise(lambda r, v: geon.stop_gradient(1 / geon.square(r) - v), scale, spread)
        factor = elementwise(lambda v, e: geon.rsqrt(v + e), spread, eps)
        return _affine(elementwise(geon.multiply, centred, factor), w, b, x.dtype)

    return derivative(forward, gradient, x, weight, bias)


def group_norm_backward(
    gradient: Value,
    x: Value,
    mean: Value,
    scale: Value,
    weight: Value | None,
    n: Any,
    c: Any,
    hxw: Any,
    groups: int,
    wanted: Sequence[bool],
) -> Triple:
    """Return the derivatives of ``group_norm`` with respect to ``x``, weight and bias."""
    shape, rank = x.shape, len(x.shape)
    channels, inner = shape[1], shape[1] // groups

    def parts(t: Value) -> Value:
        return reshape(t, [shape[0], groups, inner, product(shape[2:])])

    factor = weight if weight is not None else host([1.0] * int(channels), x.dtype)  # type: ignore[call-overload]  # known
    scaled = elementwise(geon.multiply, gradient, _by_channel(factor, rank))  # type: ignore[arg-type]  # not None
    flat = [shape[0], groups, inner * product(shape[2:])]
    dx = layer_norm_backward(
        reshape(scaled, flat), reshape(x, flat), [flat[2]],
        unsqueeze(mean, [2]), unsqueeze(scale, [2]), None, None, wanted,
    )[0]  # fmt: skip
    centred = elementwise(geon.subtract, parts(x), unsqueeze(mean, [2, 3]))
    normal = reshape(elementwise(geon.multiply, centred, unsqueeze(scale, [2, 3])), shape)
    rest = [0, *range(2, rank)]
    dweight = reduce(geon.sum, elementwise(geon.multiply, gradient, normal), rest, keep=False)
    return reshape(dx, shape), dweight, reduce(geon.sum, gradient, rest, keep=False)


ROWS: dict[str, Callable[..., Any]] = {
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "_native_batch_norm_legit": batch_norm,
    "_native_batch_norm_legit_functional": batch_norm,
    "_native_batch_norm_legit.no_stats": batch_norm_no_statistics,
    "_native_batch_norm_legit_no_training": batch_norm_inference,
    "native_layer_norm_backward": layer_norm_backward,
    "native_group_norm_backward": group_norm_backward,
}
