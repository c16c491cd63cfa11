# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""In JAX: networks, functions of dictionaries of parameters by the names of geon's layers.

``STEPS`` take sizes and values, and give a step from (state, x, t) to (loss, new state), the first
state, and what shows values by names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .jax_windows import convolved
from .prepared import (
    BETA1,
    BETA2,
    MOMENTUM,
    NET_DECAY,
    NET_EPSILON,
    NET_RATE,
    NORM_EPSILON,
    ROTARY,
)
from .workloads import Sizes

Values = Mapping[str, Any]
Step = Callable[[Any, Any, Any], Any]
Made = tuple[Step, Any, Callable[[Any], Values]]


def entropy(scores: Any, t: Any) -> Any:
    """The mean over all examples."""
    logs = jax.nn.log_softmax(scores)
    return -jnp.mean(jnp.take_along_axis(logs, t[..., None], -1))


def layer(x: Any, p: Values, new: dict[str, Any], place: str, stride: int = 1) -> Any:
    """A convolution and batch norm, whose statistics go into ``new``."""
    x = convolved(x, p[f"{place}.w"], stride)
    place = f"{place}_norm"
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[-1]
    for part, value in (("mean", mean), ("variance", variance * (count / (count - 1)))):
        new[f"{place}.{part}"] = 0.9 * p[f"{place}.{part}"] + 0.1 * value
    x = (x - mean) * jax.lax.rsqrt(variance + NORM_EPSILON)
    return x * p[f"{place}.scale"] + p[f"{place}.shift"]


def residual_step(sizes: Sizes, values: Values) -> Made:
    """Momentum SGD."""
    blocks = sizes["blocks"]

    def loss(trained: Values, kept: Values, x: Any, t: Any) -> Any:
        p, new = {**trained, **kept}, dict[str, Any]()
        x = jax.nn.relu(layer(x, p, new, "stem"))
        for number in range(3 * blocks):
            place, further = f"blocks.{number}", number >= blocks and number % blocks == 0
            stride = 2 if further else 1
            y = jax.nn.relu(layer(x, p, new, f"{place}.first", stride))
            y = layer(y, p, new, f"{place}.second")
            if further:
                x = layer(x, p, new, f"{place}.shortcut", stride)
            x = jax.nn.relu(x + y)
        return entropy(x.mean((1, 2)) @ p["head.w"] + p["head.b"], t), new

    def step(state: Any, x: Any, t: Any) -> Any:
        p, kept, speeds = state
        (cost, kept), slopes = jax.value_and_grad(loss, has_aux=True)(p, kept, x, t)
        speeds = jax.tree.map(lambda v, g: MOMENTUM * v + g, speeds, slopes)
        return cost, (jax.tree.map(lambda w, v: w - NET_RATE * v, p, speeds), kept, speeds)

    moving = (".mean", ".variance")
    p = {name: value for name, value in values.items() if not name.endswith(moving)}
    kept = {name: value for name, value in values.items() if name.endswith(moving)}
    return step, (p, kept, jax.tree.map(np.zeros_like, p)), lambda s: {**s[0], **s[1]}


def adam(loss: Callable[..., Any], values: Values, decay: float) -> Made:
    """Steps of Adam, with decay of the weights by themselves."""

    def step(state: Any, x: Any, t: Any) -> Any:
        p, m, v, count = state
        cost, slopes = jax.value_and_grad(loss)(p, x, t)
        count = count + 1
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, slopes)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, slopes)
        rate, size = NET_RATE / (1 - BETA1**count), 1 / (1 - BETA2**count)

        def moved(w: Any, m: Any, v: Any) -> Any:
            return w - rate * m / (jnp.sqrt(v * size) + NET_EPSILON) - NET_RATE * decay * w

        return cost, (jax.tree.map(moved, p, m, v), m, v, count)

    zeros = jax.tree.map(np.zeros_like, dict(values))
    return step, (dict(values), zeros, zeros, np.float32(0)), lambda s: dict(s[0])


def normed(x: Any, p: Values, place: str) -> Any:
    """Layer norm over the width."""
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + NORM_EPSILON)
    return x * p[f"{place}.scale"] + p[f"{place}.shift"]


def turned(x: Any, times: Any) -> Any:
    """Halves of rows, (batch, time, head, key), turned by their times."""
    half = x.shape[-1] // 2
    angles = (times[:, None] * ROTARY ** (-jnp.arange(half) / half))[:, None]
    c, s = jnp.cos(angles), jnp.sin(angles)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * c - b * s, a * s + b * c], -1)


def scores(sizes: Sizes, p: Values, x: Any, attend: Callable[..., Any], times: Any) -> Any:
    """Of the next tokens; ``attend`` takes the number of a block, queries, keys and values."""
    x = p["table.w"][x]
    for number in range(sizes["layers"]):
        place = f"blocks.{number}"
        y = normed(x, p, f"{place}.before")
        parts = [p[f"{place}.attention.{part}"] for part in ("query", "key", "value")]
        q, k, v = jnp.einsum("nte,pehk->pnthk", y, jnp.stack(parts))
        y = attend(number, turned(q, times), turned(k, times), v)
        x = x + jnp.einsum("nthk,hke->nte", y, p[f"{place}.attention.out"])
        y = normed(x, p, f"{place}.between") @ p[f"{place}.wide.w"] + p[f"{place}.wide.b"]
        y = jax.nn.gelu(y, approximate=True)
        x = x + y @ p[f"{place}.narrow.w"] + p[f"{place}.narrow.b"]
    return normed(x, p, "norm") @ p["head.w"]


def mixed(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    """Values by the softmax of the scores that are allowed."""
    found = jnp.einsum("nthk,nshk->nhts", q, k) * q.shape[-1] ** -0.5
    shares = jax.nn.softmax(jnp.where(allowed, found, -jnp.inf))
    return jnp.einsum("nhts,nshk->nthk", shares, v)


def gpt_step(sizes: Sizes, values: Values) -> Made:
    """AdamW."""

    def loss(p: Values, x: Any, t: Any) -> Any:
        times = jnp.arange(x.shape[1])
        allowed = times[:, None] >= times
        return entropy(scores(sizes, p, x, lambda n, *qkv: mixed(*qkv, allowed), times), t)

    return adam(loss, values, NET_DECAY)


def lstm_model_step(sizes: Sizes, values: Values) -> Made:
    """Adam."""

    def loss(p: Values, x: Any, t: Any) -> Any:
        gates = jnp.einsum("nte,egh->tngh", p["table.w"][x], p["lstm.w"]) + p["lstm.b"]

        def step(state: Any, own: Any) -> Any:
            h, c = state
            own = own + jnp.einsum("nh,hgk->ngk", h, p["lstm.u"])
            enter, forget, cell, output = (own[:, number] for number in range(4))
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(enter) * jnp.tanh(cell)
            h = jax.nn.sigmoid(output) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[0], sizes["width"]))
        _, y = jax.lax.scan(step, (zero, zero), gates)
        return entropy(y.transpose(1, 0, 2) @ p["head.w"] + p["head.b"], t)

    return adam(loss, values, 0.0)


STEPS: dict[str, Callable[[Sizes, Values], Made]] = {
    f.__name__: f for f in (residual_step, gpt_step, lstm_model_step)
}


class Sampler:
    """Tokens one after another; keys and values are donated from step to step."""

    def __init__(self, sizes: Sizes, values: Values) -> None:
        self.sizes = sizes
        self.weights = jax.device_put(dict(values))
        heads, key = sizes["heads"], sizes["width"] // sizes["heads"]
        self.kept = jnp.zeros((sizes["layers"], 2, 1, sizes["places"], heads, key))
        self.step = jax.jit(self.after, donate_argnums=1)

    def after(self, p: Values, kept: Any, token: Any, position: Any) -> Any:
        """The scores after a token, the likeliest next one, and what is kept."""
        allowed = jnp.arange(self.sizes["places"]) <= position

        def attend(number: int, q: Any, k: Any, v: Any) -> Any:
            nonlocal kept
            both = jnp.stack([k, v])[None]
            first = jnp.array([number, 0, 0, 0, 0, 0], position.dtype).at[3].set(position)
            kept = jax.lax.dynamic_update_slice(kept, both, tuple(first))
            return mixed(q, *kept[number], allowed)

        found = scores(self.sizes, p, token[None, None], attend, position[None])[0, 0]
        return found, found.argmax(), kept

    def run(self, first: int) -> tuple[Any, Any]:
        """The tokens, each the likeliest, and the last scores."""
        said, token = [], first
        for position in range(self.sizes["tokens"]):
            found, token, self.kept = self.step(
                self.weights, self.kept, np.int32(token), np.int32(position)
            )
            said.append(int(token))
        return np.array(said), found
