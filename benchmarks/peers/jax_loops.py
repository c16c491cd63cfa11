# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""In JAX: loops. Each function takes sizes and gives a function and the names of its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .chains import stepped
from .loops import gru_step, lstm_step, ring_step
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...]]
LAYER = ("x", "w", "u", "b")


def lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
    """The output of each step; inputs are multiplied for all steps at once."""
    zero = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)

    def step(carry: Any, each: Any) -> Any:
        h, c = carry
        h, c = lstm_step(jnp.split(each + h @ u, 4, 1), c, jax.nn.sigmoid, jnp.tanh)
        return (h, c), h

    return jax.lax.scan(step, (zero, zero), x @ w + b)[1]


def gru(x: Any, w: Any, u: Any, b: Any) -> Any:
    """The same of the gated unit."""

    def step(h: Any, each: Any) -> Any:
        h = gru_step(jnp.split(each, 3, 1), jnp.split(h @ u, 3, 1), h, jax.nn.sigmoid, jnp.tanh)
        return h, h

    return jax.lax.scan(step, jnp.zeros((x.shape[1], u.shape[0]), x.dtype), x @ w + b)[1]


def slopes(outputs: Callable[..., Any]) -> Callable[..., Any]:
    """The derivatives of the sum of squares with respect to all inputs."""
    return jax.grad(lambda *given: jnp.sum(jnp.square(outputs(*given))), (0, 1, 2, 3))


def lstm_forward(sizes: Sizes) -> Made:
    """The outputs of all steps."""
    return lstm, LAYER


def lstm_gradient(sizes: Sizes) -> Made:
    """Derivatives with respect to inputs and weights."""
    return slopes(lstm), LAYER


def gru_gradient(sizes: Sizes) -> Made:
    """The same of the gated unit."""
    return slopes(gru), LAYER


def lorenz(sizes: Sizes) -> Made:
    """Where each system is after all steps."""

    def one(*at: Any) -> Any:
        return jax.lax.scan(lambda c, _: (stepped(c), None), at, length=sizes["steps"])[0]

    return jax.vmap(one), ("x", "y", "z")


def products_gradient(sizes: Sizes) -> Made:
    """Derivatives of what matrices make of one, step by step, with respect to them."""

    def last(m: Any, start: Any) -> Any:
        return jax.lax.scan(lambda s, each: (each @ s, None), start, m)[0]

    def function(m: Any, start: Any) -> Any:
        end, back = jax.vjp(lambda m: last(m, start), m)
        return end, back(2 * end)[0]

    return function, ("m", "start")


def after_ring(force: Any, start: Any) -> Any:
    """The sum of squares of the values on a ring after all steps."""

    def step(at: Any, each: Any) -> Any:
        two, one, after = (jnp.roll(at, k) for k in (2, 1, -1))
        return ring_step(two, one, at, after, each), None

    return jnp.sum(jnp.square(jax.lax.scan(step, start, force)[0]))


def ring(sizes: Sizes) -> Made:
    """Of values that are one vector."""
    return after_ring, ("force", "start")


def ring_gradient(sizes: Sizes) -> Made:
    """Its derivatives."""
    return jax.grad(after_ring, (0, 1)), ("force", "start")


LOOPS: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        lstm_forward, lstm_gradient, gru_gradient, lorenz, products_gradient, ring, ring_gradient,
    )
}  # fmt: skip
