"""Normalisation of batches, layers and groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.functions import normalized
from ...positional.programs import cast, number_of
from ...positional.reshaping import by_channel, reshape
from ...positional.values import Value, host
from .common import Rows, wide

Triple = tuple[Value, ...]


def _affine(x: Value, weight: Value | None, bias: Value | None, dtype: Any) -> Value:
    if weight is not None:
        x = elementwise(geon.multiply, x, cast(weight, x.dtype))
    if bias is not None:
        x = elementwise(geon.add, x, cast(bias, x.dtype))
    return cast(x, dtype)


def layer_norm(
    x: Value, shape: Sequence[Any], weight: Value | None, bias: Value | None, eps: float
) -> Triple:
    """Return ``x`` normalised over its last dimensions, the mean, and 1 / deviation."""
    rank = len(x.shape)
    normal, mean, scale, _ = normalized(x, range(rank - len(shape), rank), eps)
    return _affine(normal, weight, bias, x.dtype), mean, scale


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
    weight, bias = [None if v is None else by_channel(v, rank) for v in (weight, bias)]
    if not training:
        assert mean is not None and variance is not None
        scale = elementwise(lambda v: geon.rsqrt(v + eps), wide(variance))
        centred = elementwise(geon.subtract, wide(x), by_channel(mean, rank))
        normal = elementwise(geon.multiply, centred, by_channel(scale, rank))
        return _affine(normal, weight, bias, x.dtype), mean, scale, mean, variance
    normal, own, scale, spread = normalized(x, rest, eps)
    result = _affine(normal, weight, bias, x.dtype)
    flat = [reshape(each, [x.shape[1]]) for each in (own, scale, spread)]
    if mean is None or variance is None:
        return result, flat[0], flat[1]
    total = number_of(product([x.shape[k] for k in rest]), flat[2].dtype)
    unbiased = elementwise(lambda v: v * (total / (total - 1)), flat[2])

    def moved(old: Value, new: Value) -> Value:
        return elementwise(
            lambda o, n: (1 - momentum) * o + momentum * n, old, cast(new, old.dtype)
        )

    return result, flat[0], flat[1], moved(mean, flat[0]), moved(variance, unbiased)


EMPTY = host([], "float32")
ROWS: Rows = {
    "native_layer_norm": layer_norm,
    "_native_batch_norm_legit": batch_norm,
    "_native_batch_norm_legit_functional": batch_norm,
    "_native_batch_norm_legit.no_stats": lambda x, weight, bias, *rest: batch_norm(
        x, weight, bias, None, None, *rest
    )[:3],
    # The last two results of this one are empty.
    "_native_batch_norm_legit_no_training": lambda x, weight, bias, mean, variance, *rest: (
        batch_norm(x, weight, bias, mean, variance, False, *rest)[0],
        EMPTY,
        EMPTY,
    ),
}
