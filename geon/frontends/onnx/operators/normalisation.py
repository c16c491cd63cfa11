"""Normalisation of channels, layers and neighbours, and dropout."""

from __future__ import annotations

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional import functions
from ...positional.elementwise import elementwise, expand
from ...positional.programs import cast
from ...positional.reductions import along_axis, reduce
from ...positional.reshaping import by_channel
from ...positional.values import Value, host, position
from ..table import NodeInfo, row
from .reductions import absolute_sum


def batch_normalization(
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    /,
    *,
    node: NodeInfo,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> Value | tuple[Value, ...]:
    """Return channels with the mean and variance of the inputs, or in training with their own.

    In training the second and third result are the running mean and variance.
    """
    if not spatial:
        raise ArgumentError("batch normalization of each position (spatial=0) is not supported")
    if node.version < 14 and any(node.wants(k) for k in range(1, 5)):
        raise ArgumentError("batch normalization in training needs an operator set from 14 on")
    rank = len(x.shape)
    running: list[Value] = []
    if training_mode:
        rest = [0, *range(2, rank)]
        own_mean = reduce(geon.mean, x, rest, keep=False)
        own_variance = reduce(geon.variance, x, rest, keep=False)
        for old, new in ((mean, own_mean), (variance, own_variance)):
            running.append(
                elementwise(
                    lambda o, n: o * momentum + n * (1 - momentum), old, cast(new, old.dtype)
                )
            )
        mean, variance = own_mean, own_variance

    def normalize(
        t: geon.Tensor, s: geon.Tensor, b: geon.Tensor, m: geon.Tensor, v: geon.Tensor
    ) -> geon.Tensor:
        return geon.cast((t - m) * (s * geon.rsqrt(v + epsilon)) + b, t.dtype)

    parts = [by_channel(value, rank) for value in (scale, bias, mean, variance)]
    result = elementwise(normalize, x, *parts)
    return (result, *running) if running else result


def instance_normalization(
    x: Value,
    scale: Value,
    bias: Value,
    /,
    *,
    epsilon: float = 1e-5,
) -> Value:
    """Return the channels of each example with the mean 0 and the variance 1, scaled and moved."""
    rank = len(x.shape)
    normal = cast(functions.normalized(x, range(2, rank), epsilon)[0], x.dtype)
    return elementwise(
        lambda t, s, b: t * s + b, normal, by_channel(scale, rank), by_channel(bias, rank)
    )


def layer_normalization(
    x: Value,
    scale: Value,
    bias: Value | None = None,
    /,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> tuple[Value, ...]:
    """Return ``x`` with the mean 0 and the variance 1 from ``axis`` on, scaled and moved.

    The mean and the reciprocal of the standard deviation follow.
    """
    at = range(position(axis, len(x.shape)), len(x.shape))
    normal, mean, inverse, _ = functions.normalized(x, at, epsilon)
    result = elementwise(geon.multiply, cast(normal, x.dtype), scale)
    return (result if bias is None else elementwise(geon.add, result, bias), mean, inverse)


def rms_normalization(x: Value, scale: Value, /, *, axis: int = -1, epsilon: float = 1e-5) -> Value:
    """Return ``x`` over the root of the mean of its squares from ``axis`` on, scaled."""
    wide = cast(x, np.promote_types(x.dtype, np.float32))
    at = range(position(axis, len(x.shape)), len(x.shape))
    squares = reduce(lambda t, axes: geon.mean(geon.square(t), axes), wide, at)
    normal = elementwise(lambda t, s: t * geon.rsqrt(s + epsilon), wide, squares)
    return elementwise(geon.multiply, cast(normal, x.dtype), scale)


def lp_normalization(x: Value, /, *, axis: int = -1, p: int = 2) -> Value:
    """Return ``x`` over its p-norm along ``axis``, 0 where that is 0."""
    norm = reduce(geon.L2_norm if p == 2 else absolute_sum, x, axis)
    return elementwise(lambda t, n: geon.where(geon.equal(n, 0), 0, t / n), x, norm)


def local_response_normalization(
    x: Value, /, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Value:
    """Return ``x`` over a power of the mean of squares of ``size`` neighbouring channels."""

    def normalize(t: geon.Tensor, axis: geon.Axis) -> geon.Tensor:
        around = geon.Window(size, pad=((size - 1) // 2, size // 2))
        squares = geon.average_pool(geon.square(t), {axis: around}, count_pad=True)
        return geon.cast(t * (bias + alpha * squares) ** -beta, t.dtype)

    return along_axis(normalize, x, 1)


def dropout(
    x: Value,
    ratio: float = 0.5,
    training_mode: bool = False,
    /,
    *,
    node: NodeInfo,
    seed: int | None = None,
) -> tuple[Value, ...]:
    """Return ``x``, in training with random elements 0 and the others scaled; and the mask.

    Before version 10 the mask has the dtype of ``x``.
    """
    if not training_mode or ratio == 0:
        mask = expand(host(np.array(True)), x.shape)
        return (x, mask if node.version >= 10 else cast(mask, x.dtype))
    return functions.dropout(x, ratio, geon.Random(0 if seed is None else seed))


ROWS = [
    row("BatchNormalization", batch_normalization),
    row("InstanceNormalization", instance_normalization),
    row("LayerNormalization", layer_normalization),
    row("RMSNormalization", rms_normalization),
    row("LpNormalization", lp_normalization),
    row("LRN", local_response_normalization),
    row("Dropout", dropout, attributes={"ratio": 1}),
]
