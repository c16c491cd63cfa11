"""Activation functions, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon

from ...positional.elementwise import elementwise, mapped
from ...positional.reductions import along
from ...positional.reshaping import flatten_to, reshape, unsqueeze
from ...positional.values import Value, as_array, position
from ..table import row


def parametric(f: Callable[..., Any], **defaults: float) -> Callable[..., Value]:
    """Return the builder of ``f(tensor, **attributes)`` with these defaults of attributes."""

    def build(x: Value, /, **attributes: float) -> Value:
        return elementwise(lambda t: f(t, **{**defaults, **attributes}), x)

    return build


def elu(x: geon.Tensor, alpha: float) -> geon.Tensor:
    """Return ``x`` where it is positive, else ``alpha * expm1(x)``."""
    return geon.where(x > 0, x, alpha * geon.expm1(geon.minimum(x, 0)))


def selu(x: geon.Tensor, alpha: float, gamma: float) -> geon.Tensor:
    """Return ``gamma`` times the ELU of ``x``."""
    return gamma * elu(x, alpha)


def celu(x: geon.Tensor, alpha: float) -> geon.Tensor:
    """Return max(x, 0) + min(0, alpha * expm1(x / alpha))."""
    return geon.maximum(x, 0) + geon.minimum(alpha * geon.expm1(geon.minimum(x, 0) / alpha), 0)


def hard_sigmoid(x: geon.Tensor, alpha: float, beta: float) -> geon.Tensor:
    """Return ``alpha * x + beta`` from 0 to 1."""
    return geon.minimum(geon.maximum(alpha * x + beta, 0), 1)


def hard_swish(x: geon.Tensor) -> geon.Tensor:
    """Return ``x * hard_sigmoid(x)`` with a slope of 1/6."""
    return x * hard_sigmoid(x, 1 / 6, 0.5)


def thresholded_relu(x: geon.Tensor, alpha: float) -> geon.Tensor:
    """Return ``x`` where it is above ``alpha``, else 0."""
    return geon.where(x > alpha, x, 0)


def shrink(x: geon.Tensor, bias: float, lambd: float) -> geon.Tensor:
    """Return ``x`` moved by ``bias`` towards 0 where it is beyond ``lambd``, else 0."""
    return geon.where(x < -lambd, x + bias, geon.where(x > lambd, x - bias, 0))


def swish(x: geon.Tensor, alpha: float) -> geon.Tensor:
    """Return ``x * sigmoid(alpha * x)``."""
    return x * geon.sigmoid(alpha * x)


def softsign(x: geon.Tensor) -> geon.Tensor:
    """Return x / (1 + |x|)."""
    return x / (1 + geon.absolute(x))


def mish(x: geon.Tensor) -> geon.Tensor:
    """Return x * tanh(softplus(x))."""
    return x * geon.tanh(geon.softplus(x))


def gelu(x: Value, /, *, approximate: str = "none") -> Value:
    """Return x * Phi(x), exactly or by tanh."""
    return elementwise(lambda t: geon.gelu(t, approximate=approximate), x)


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
    row("Relu", mapped(geon.relu)),
    row("Sigmoid", mapped(geon.sigmoid)),
    row("Softplus", mapped(geon.softplus)),
    row("Softsign", mapped(softsign)),
    row("HardSwish", mapped(hard_swish)),
    row("Mish", mapped(mish)),
    row("LeakyRelu", parametric(lambda x, alpha: geon.where(x < 0, alpha * x, x), alpha=0.01)),
    row("Elu", parametric(elu, alpha=1.0)),
    row("Selu", parametric(selu)),
    row("Celu", parametric(celu, alpha=1.0)),
    row("HardSigmoid", parametric(hard_sigmoid)),
    row("ThresholdedRelu", parametric(thresholded_relu, alpha=1.0)),
    row("Shrink", parametric(shrink)),
    row("Swish", parametric(swish, alpha=1.0)),
    row("Gelu", gelu),
    row("PRelu", prelu, 7),
    row("PRelu", prelu_by_channel, 1, 6),
    *[row(name, over_one(f), 13) for name, f in ALONG.items()],
    *[row(name, over_rest(f), 1, 12) for name, f in ALONG.items()],
]
