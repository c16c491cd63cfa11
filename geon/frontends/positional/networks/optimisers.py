"""Optimisers: gradients, parameters and their states in, new parameters and states out."""

from __future__ import annotations

from typing import Any

import geon

from ..programs import cast
from ..values import Value
from .common import constant, ew


def _count(step: Any, given: Value | None, like: Value) -> tuple[Value, Value | None]:
    """Return the number of this step as a float, and the next one where it is counted."""
    dtype = like.dtype if like.dtype.itemsize > 2 else "float32"
    if given is None:
        return constant(float(step), dtype), None
    return cast(given, dtype), ew(lambda n: n + 1, given)


def sgd(
    g: Value, a: Value, m: Value, *, rate: float = 0.01, scale: float = 1.0, decay: float = 0.0,
    momentum: float = 0.9, dampening: float = 0.0, nesterov: bool = False,
) -> tuple[Value, Value]:  # fmt: skip
    """Return parameters after a step of gradient descent, and the new momentum."""
    grad = ew(lambda g, a: scale * g + decay * a, g, a)
    new = ew(lambda m, g: momentum * m + (1 - dampening) * g, m, grad)
    move = ew(lambda g, m: g + momentum * m, grad, new) if nesterov else new
    return ew(lambda a, d: a - rate * d, a, move), new


def adam(kind: str) -> Any:
    """Return the function of ``adam``, ``adamw`` or ``lamb``.

    ``adam`` adds ``decay * a`` to the gradient, the others to the step (Loshchilov and Hutter,
    2019), which ``lamb`` scales to the norm of the parameters.
    """

    def build(
        g: Value, a: Value, m: Value, v: Value, vm: Value | None = None, step: Value | None = None,
        *, step_number: int = 1, rate: float = 0.001, scale: float = 1.0, beta1: float = 0.9,
        beta2: float = 0.999, decay: float = 0.0, epsilon: float = 1e-8,
    ) -> tuple[Value | None, ...]:  # fmt: skip
        """Return parameters, moments and the next step's number.

        With ``vm`` it is AMSGrad. ``step`` counts from 1; without it ``step_number`` is used.
        """
        count, following = _count(step_number, step, v)
        grad = ew(lambda g: scale * g, g)
        if kind == "adam" and decay:
            grad = ew(lambda g, a: g + decay * a, grad, a)
        first = ew(lambda m, g: beta1 * m + (1 - beta1) * g, m, grad)
        second = ew(lambda v, g: beta2 * v + (1 - beta2) * geon.square(g), v, grad)
        most = None if vm is None else ew(geon.maximum, vm, second)

        def moved(m: geon.Tensor, v: geon.Tensor, n: geon.Tensor) -> geon.Tensor:
            high = m / (1 - geon.power(beta1, n))
            return high / (geon.sqrt(v / (1 - geon.power(beta2, n))) + epsilon)

        move = ew(moved, first, second if most is None else most, count)
        if kind != "adam" and decay:
            move = ew(lambda d, a: d + decay * a, move, a)
        if kind == "lamb":
            move = ew(_trusted, move, a)
        return ew(lambda a, d: a - rate * d, a, move), first, second, most, following

    return build


def _trusted(move: geon.Tensor, a: geon.Tensor) -> geon.Tensor:
    """Return the update scaled to the norm of the parameters; You et al., 2020."""
    norm, own = geon.L2_norm(a), geon.L2_norm(move)
    usable = geon.logical_and(norm > 0, own > 0)
    return move * geon.where(usable, norm / geon.where(usable, own, 1), 1)


def rmsprop(
    g: Value, a: Value, m: Value, v: Value, *, rate: float = 0.001, scale: float = 1.0,
    decay: float = 0.0, alpha: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-8,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Return parameters, momentum, and the running mean of squared gradients."""
    grad = ew(lambda g, a: scale * g + decay * a, g, a)
    second = ew(lambda v, g: alpha * v + (1 - alpha) * geon.square(g), v, grad)
    new = ew(lambda m, g, v: momentum * m + g / (geon.sqrt(v) + epsilon), m, grad, second)
    return ew(lambda a, d: a - rate * d, a, new), new, second
