"""Gradients and steps of optimisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ...positional.elementwise import elementwise
from ...positional.programs import cast
from ...positional.values import HostArray, Value, array, as_array
from ..table import TRAINING, NodeInfo, row

Tensor = geon.Tensor


def gradient(
    *values: Value, node: NodeInfo, xs: Sequence[str], y: str, zs: Sequence[str] = ()
) -> tuple[Value, ...]:
    """Return the derivative of the sum of ``y`` with respect to each of ``xs``, values by name.

    The inputs must be the values with these names.
    """
    for name, value in zip([*xs, *zs], values, strict=True):
        if node.find(name) is not value:
            raise ArgumentError(
                f"the gradient of {y!r} is asked for at another value of {name!r} than its own"
            )
        if isinstance(value, HostArray):
            raise ArgumentError(f"{name!r} is a constant; the gradient with respect to it is none")
    total = as_array(node.find(y)).tensor
    inputs = [as_array(value) for value in values[: len(xs)]]
    found = geon.deriv(geon.sum(total), [each.tensor for each in inputs])
    return tuple([array(t, each.dims) for t, each in zip(found, inputs, strict=True)])


def _apply(
    update: Callable[..., Sequence[Any]],
    rate: Value,
    step: Value,
    values: Sequence[Value],
    count: int,
) -> tuple[Value, ...]:
    """Return the new values of an optimiser: groups of ``count`` inputs, for each tensor one each.

    ``update`` takes the rate, the number of the step, and one value of each group; its results are
    the new value of the tensor and of its states.
    """
    groups = len(values) // count
    if groups * count != len(values):
        raise ArgumentError(f"{len(values)} inputs are no multiple of {count}")
    columns: list[list[Value]] = [[] for _ in range(count - 1)]
    for number in range(groups):
        own = [values[k * groups + number] for k in range(count)]
        when = cast(step, own[0].dtype)
        for k, column in enumerate(columns):
            column.append(elementwise(lambda *parts, k=k: update(*parts)[k], rate, when, *own))
    return tuple([value for column in columns for value in column])


def adagrad(
    rate: Value,
    step: Value,
    /,
    *values: Value,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Value, ...]:
    """Return tensors and sums of squared gradients after a step (Duchi and others, 2011)."""

    def update(r: Tensor, t: Tensor, x: Tensor, g: Tensor, h: Tensor) -> Sequence[Tensor]:
        g = norm_coefficient * x + g
        total = h + g * g
        return x - r / (1 + t * decay_factor) * g / (geon.sqrt(total) + epsilon), total

    return _apply(update, rate, step, values, 3)


def adam(
    rate: Value,
    step: Value,
    /,
    *values: Value,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Value, ...]:
    """Return tensors and both moments after a step (Kingma and Ba, 2015)."""

    def update(
        r: Tensor, t: Tensor, x: Tensor, g: Tensor, v: Tensor, h: Tensor
    ) -> Sequence[Tensor]:
        g = norm_coefficient * x + g
        first = alpha * v + (1 - alpha) * g
        second = beta * h + (1 - beta) * g * g
        factor = geon.sqrt(1 - geon.power(beta, t)) / (1 - geon.power(alpha, t))
        moved = geon.where(geon.greater(t, 0), r * factor, r) * first
        new = x - moved / (geon.sqrt(second) + epsilon)
        return (1 - norm_coefficient_post) * new, first, second

    return _apply(update, rate, step, values, 4)


def momentum(
    rate: Value,
    step: Value,
    /,
    *values: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Value, ...]:
    """Return tensors and momenta after a step, standard or Nesterov's."""

    def update(r: Tensor, t: Tensor, x: Tensor, g: Tensor, v: Tensor) -> Sequence[Tensor]:
        g = norm_coefficient * x + g
        new = alpha * v + geon.where(geon.greater(t, 0), beta, 1) * g
        direction = g + alpha * new if mode == "nesterov" else new
        return x - r * direction, new

    return _apply(update, rate, step, values, 3)


ROWS = [
    row("Gradient", gradient, domain=TRAINING),
    row("Adagrad", adagrad, domain=TRAINING),
    row("Adam", adam, domain=TRAINING),
    row("Momentum", momentum, domain=TRAINING),
]
