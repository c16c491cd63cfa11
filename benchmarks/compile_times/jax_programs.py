"""The programs in JAX; ``python -m benchmarks.compile_times.jax_programs NAME`` times one."""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Built = tuple[Any, tuple[Any, ...]]  # a function to compile, and its arguments


def trained(loss: Any) -> Any:
    """A step against the gradient of ``loss``, whose first argument are the weights."""

    def step(weights: Any, *data: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *data)
        return value, jax.tree.map(lambda w, g: w - 0.1 * g, weights, slopes)

    return step


def full(*shape: int, value: float = 0.01) -> Any:
    return np.full(shape, value, "f")


def mlp() -> Built:
    weights = [full(784, 512), full(512, 512), full(512, 10)]
    biases = [full(size, value=0) for size in (512, 512, 10)]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        w, b = parameters
        for number in range(2):
            x = jnp.maximum(x @ w[number] + b[number], 0)
        logs = jax.nn.log_softmax(x @ w[2] + b[2])
        return -jnp.mean(jnp.sum(logs * jax.nn.one_hot(y, 10), 1))

    return trained(loss), ((weights, biases), full(128, 784), np.zeros(128, "i"))


def chain() -> Built:
    def value(x: Any) -> Any:
        for _ in range(300):
            x = jnp.tanh(x * 1.01) + 0.1
        return x.sum()

    return jax.grad(value), (full(10000),)


def gpt() -> Built:
    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        spread = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return centred * spread * scale + shift

    layers = [
        {
            "g1": full(64, value=1), "b1": full(64, value=0), "qkv": full(3, 64, 4, 16),
            "o": full(4, 16, 64), "g2": full(64, value=1), "b2": full(64, value=0),
            "w1": full(64, 256), "c1": full(256, value=0), "w2": full(256, 64),
            "c2": full(64, value=0),
        }
        for _ in range(3)
    ]  # fmt: skip
    model = {"table": full(256, 64), "places": full(32, 64), "layers": layers,
             "g": full(64, value=1), "b": full(64, value=0)}  # fmt: skip

    def loss(m: Any, x: Any, y: Any) -> Any:
        h = m["table"][x] + m["places"]
        mask = jnp.tril(jnp.ones((32, 32), bool))
        for layer in m["layers"]:
            n = normalized(h, layer["g1"], layer["b1"])
            q, k, v = jnp.einsum("btc,pchd->pbthd", n, layer["qkv"])
            scores = jnp.where(mask, jnp.einsum("bthd,bshd->bhts", q, k) / 4, -1e9)
            mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
            h = h + jnp.einsum("bthd,hdc->btc", mixed, layer["o"])
            n = normalized(h, layer["g2"], layer["b2"])
            inner = jax.nn.gelu(n @ layer["w1"] + layer["c1"], approximate=False)
            h = h + inner @ layer["w2"] + layer["c2"]
        logs = jax.nn.log_softmax(normalized(h, m["g"], m["b"]) @ m["table"].T)
        return -jnp.mean(jnp.take_along_axis(logs, y[..., None], -1))

    return trained(loss), (model, np.zeros((4, 32), "i"), np.zeros((4, 32), "i"))


def gru() -> Built:
    w, u = [full(32, 64) for _ in range(3)], [full(64, 64) for _ in range(3)]
    b = [full(64, value=0) for _ in range(3)]

    def loss(parameters: Any, xs: Any) -> Any:
        w, u, b = parameters
        h = jnp.zeros((8, 64))
        for step in range(20):
            z = jax.nn.sigmoid(xs[step] @ w[0] + h @ u[0] + b[0])
            r = jax.nn.sigmoid(xs[step] @ w[1] + h @ u[1] + b[1])
            h = (1 - z) * jnp.tanh(xs[step] @ w[2] + r * (h @ u[2]) + b[2]) + z * h
        return (h * h).sum()

    return jax.value_and_grad(loss), ((w, u, b), full(20, 8, 32))


def lstm() -> Built:
    w, u, bias = full(6, 32, value=0.1), full(8, 32, value=0.1), full(32, value=0)

    def loss(parameters: Any, x: Any) -> Any:
        w, u, bias = parameters

        def step(carry: Any, own: Any) -> Any:
            state, cell = carry
            i, f, o, new = jnp.split(own + state @ u, 4, 1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(new)
            state = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (state, cell), state

        start = jnp.zeros((x.shape[0], 8))
        _, states = jax.lax.scan(step, (start, start), jnp.swapaxes(x @ w + bias, 0, 1))
        return jnp.mean(states**2)

    return jax.value_and_grad(loss), ((w, u, bias), full(4, 12, 6))


def third() -> Built:
    w = full(32, 32, value=0.1)

    def squares(f: Any) -> Any:
        return lambda x: jnp.sum(jax.grad(f)(x) ** 2)

    def value(x: Any) -> Any:
        return jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w))

    return jax.grad(squares(squares(value))), (full(16, 32),)


def deep() -> Built:
    layers = [(full(128, 128), full(128, value=0)) for _ in range(200)]

    def loss(parameters: Any, x: Any) -> Any:
        for w, b in parameters:
            x = jnp.tanh(x @ w + b)
        return (x * x).sum()

    return trained(loss), (layers, full(32, 128))


if __name__ == "__main__":
    jnp.zeros(3).block_until_ready()  # the backend is there
    begin = time.perf_counter()
    function, arguments = globals()[sys.argv[1]]()
    jax.block_until_ready(jax.jit(function)(*arguments))
    print(time.perf_counter() - begin)
