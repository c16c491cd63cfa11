"""Activation functions, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import geon

from ...positional.elementwise import elementwise, mapped
from ...positional.reductions import along
from ...positional.reshaping import flatten_to, reshape, unsqueeze
from ...positional.values import Value, as_array, position
from ..table import row

# Functions of a tensor and of the attributes of their operators.
FUNCTIONS: dict[str, Callable[..., geon.Tensor]] = {
    "Celu": lambda x, alpha=1.0: geon.where(
        x > 0, x, alpha * geon.expm1(geon.minimum(x, 0) / alpha)
    ),
    "Elu": lambda x, alpha=1.0: geon.elu(x, alpha),
    "Gelu": lambda x, approximate="none": geon.gelu(x, approximate=approximate),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: geon.clip(alpha * x + beta, 0, 1),
    "HardSwish": lambda x: x * geon.clip(x * (1 / 6) + 0.5, 0, 1),
    "LeakyRelu": lambda x, alpha=0.01: geon.where(x < 0, alpha * x, x),
    "Mish": lambda x: x * geon.tanh(geon.softplus(x)),
    "Relu": geon.relu,
    "Selu": lambda x, alpha, gamma: gamma * geon.elu(x, alpha),
    "Shrink": lambda x, bias, lambd: geon.where(
        x < -lambd, x + bias, geon.where(x > lambd, x - bias, 0)
    ),
    "Sigmoid": geon.sigmoid,
    "Softplus": geon.softplus,
    "Softsign": lambda x: x / (1 + geon.absolute(x)),
    "Swish": lambda x, alpha=1.0: x * geon.sigmoid(alpha * x),
    "ThresholdedRelu": lambda x, alpha=1.0: geon.where(x > alpha, x, 0),
}


def prelu(x: Value, slope: Value, /) -> Value:
    """Return ``x`` where it is positive, else ``slope * x``."""
    return elementwise(lambda t, s: geon.where(t < 0, s * t, t), x, slope)


def prelu_by_channel(x: Value, slope: Value, /) -> Value:
    """Return ``prelu`` with one slope for all elements, or one for each channel."""
    if slope.shape not in ((), (1,)):
        slope = unsqueeze(slope, range(1, len(x.shape) - 1))
    return prelu(x, slope)


def hardmax_tensor(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return 1 at the first largest element, else 0."""
    if not axes:
        return geon.broadcast(geon.constant(1, dtype=x.dtype), x.axes)
    (axis,) = axes
    return geon.cast(geon.onehot(geon.argmax(x, axis), axis), x.dtype)


def over_one(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a function along one position, the last by default."""

    def build(x: Value, /, *, axis: int = -1) -> Value:
        return along(f, x, axis if x.shape else [])

    return build


def over_rest(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a function over all positions from ``axis`` on, taken as one."""

    def build(x: Value, /, *, axis: int = 1) -> Value:
        rank = len(x.shape)
        first = rank if axis == rank else position(axis, rank)
        if f is hardmax_tensor:  # its indices are those of the merged position
            merged = flatten_to(x, first, len(x.shape))
            return reshape(along(f, merged, [first]), as_array(x).shape)
        return along(f, x, range(first, len(x.shape)))

    return build


ALONG: dict[str, Callable[..., Any]] = {
    "Softmax": geon.softmax,
    "LogSoftmax": geon.log_softmax,
    "Hardmax": hardmax_tensor,
}

ROWS = [
    *[row(name, wraps(f)(mapped(f))) for name, f in FUNCTIONS.items()],
    row("PRelu", prelu, 7),
    row("PRelu", prelu_by_channel, 1, 6),
    *[row(name, over_one(f), 13) for name, f in ALONG.items()],
    *[row(name, over_rest(f), 1, 12) for name, f in ALONG.items()],
]
