"""The workloads by hand in NumPy, as one writes them who minds time: ``out=`` and no copies.

A reference, not a peer: nothing is derived or compiled, so derivatives are written out here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .numpy_moves import MOVES
from .prepared import (
    ADAM_EPSILON,
    ADAM_RATE,
    BETA1,
    BETA2,
    MOMENTUM,
    NORM_EPSILON,
    RATE,
    Builder,
    Prepared,
    plain,
    stepping,
)
from .workloads import Sizes

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
notes: list[str] = []
f32 = np.float32


def version() -> str:
    """Of NumPy."""
    return np.__version__


def start(threads: int) -> None:
    """Nothing is to be set: the number of threads of its products is in the environment."""


# Training steps ---------------------------------------------------------------------------------


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Two relu layers, softmax cross entropy averaged over the batch, momentum SGD."""
    x, y, count = data["x"], data["y"], f32(sizes["batch"])
    w, b = ([a.copy() for a in data[name]] for name in "wb")
    speeds = [np.zeros_like(a) for a in (*w, *b)]
    slopes = [np.empty_like(a) for a in (*w, *b)]

    def call() -> Any:
        h1 = x @ w[0]
        h1 += b[0]
        np.maximum(h1, 0, out=h1)
        h2 = h1 @ w[1]
        h2 += b[1]
        np.maximum(h2, 0, out=h2)
        z = h2 @ w[2]
        z += b[2]
        z -= z.max(1, keepdims=True)
        hit = np.vdot(z, y)
        np.exp(z, out=z)
        total = z.sum(1, keepdims=True)
        loss = (np.log(total).sum() - hit) / count
        z /= total
        z -= y
        z /= count
        d2 = z @ w[2].T
        d2 *= h2 > 0
        d1 = d2 @ w[1].T
        d1 *= h1 > 0
        for k, (below, d) in enumerate(((x, d1), (h1, d2), (h2, z))):
            np.matmul(below.T, d, out=slopes[k])
            d.sum(0, out=slopes[3 + k])
        for value, speed, slope in zip((*w, *b), speeds, slopes, strict=True):
            speed *= f32(MOMENTUM)
            speed += slope
            np.multiply(speed, f32(RATE), out=slope)
            value -= slope
        return loss

    return stepping(call, lambda: [*w, *b])


def deep_mlp(sizes: Sizes, data: Data) -> Prepared:
    """Many tanh layers, the mean of squared errors, SGD."""
    x, y = data["x"], data["y"]
    w, b = ([a.copy() for a in data[name]] for name in "wb")
    layers = len(w)
    h = [x, *(np.empty_like(y) for _ in range(layers))]

    def call() -> Any:
        for k in range(layers):
            np.matmul(h[k], w[k], out=h[k + 1])
            h[k + 1] += b[k]
            np.tanh(h[k + 1], out=h[k + 1])
        error = h[-1] - y
        loss = np.vdot(error, error) / f32(error.size)
        d = error * f32(2 / error.size)
        for k in reversed(range(layers)):
            np.square(h[k + 1], out=h[k + 1])
            np.subtract(1, h[k + 1], out=h[k + 1])
            d *= h[k + 1]
            slope, bias_slope = h[k].T @ d, d.sum(0)
            d = d @ w[k].T if k else d
            w[k] -= f32(RATE) * slope
            b[k] -= f32(RATE) * bias_slope
        return loss

    return stepping(call, lambda: [*w, *b])


def logistic(sizes: Sizes, data: Data) -> Prepared:
    """One weight for each feature, SGD."""
    x, y, w = data["x"], data["y"], data["w"].copy()
    count = f32(len(y))

    def call() -> Any:
        score = x @ w
        loss = (np.logaddexp(f32(0), score).sum() - np.vdot(y, score)) / count
        inside = 1 / (1 + np.exp(-score))
        w[:] -= f32(RATE) / count * ((inside - y) @ x)
        return loss

    return stepping(call, lambda: [w])


def adam(sizes: Sizes, data: Data) -> Prepared:
    """In blocks that stay in the cache."""
    p, g = data["p"].copy(), data["g"]
    mean, square = np.zeros_like(p), np.zeros_like(p)
    scratch, step, now = np.empty(1 << 14, f32), np.empty(1 << 14, f32), [0]

    def call() -> Any:
        now[0] += 1
        rate = f32(ADAM_RATE / (1 - BETA1 ** now[0]))
        root = f32((1 - BETA2 ** now[0]) ** -0.5)
        for start in range(0, len(p), 1 << 14):
            part = slice(start, start + (1 << 14))
            m, v, slope = mean[part], square[part], g[part]
            s, t = scratch[: len(m)], step[: len(m)]
            m *= f32(BETA1)
            m += np.multiply(slope, f32(1 - BETA1), out=s)
            v *= f32(BETA2)
            np.square(slope, out=s)
            s *= f32(1 - BETA2)
            v += s
            np.sqrt(v, out=s)
            s *= root
            s += f32(ADAM_EPSILON)
            np.divide(m, s, out=t)
            t *= rate
            p[part] -= t
        return now[0]

    return stepping(call, lambda: [p])


# Others -----------------------------------------------------------------------------------------


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return plain(partial(np.matmul, data["a"], data["b"]))


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh, in blocks that stay in the cache."""
    x, scratch = data["x"], np.empty(1 << 14, f32)
    scale, cubic = f32((2 / np.pi) ** 0.5), f32(0.044715)

    def call() -> Array:
        result = np.empty_like(x)
        for start in range(0, len(x), 1 << 14):
            part, out = x[start : start + (1 << 14)], result[start : start + (1 << 14)]
            inner = scratch[: len(part)]
            np.multiply(part, part, out=inner)
            inner *= cubic
            inner += 1
            inner *= part
            inner *= scale
            np.tanh(inner, out=inner)
            inner += 1
            np.multiply(part, f32(0.5), out=out)
            out *= inner
        return result

    return plain(call)


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """An array without axes in, another out."""
    x = np.asarray(data["x"])
    return plain(lambda: x + 1)


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """Plane by plane, so that what is between stays in the cache."""
    u = data["u"]

    def call() -> list[Any]:
        squares = absolute = crossed = 0.0
        largest = f32(-np.inf)
        for k, plane in enumerate(u):
            absolute += float(np.abs(plane).sum())
            largest = max(largest, plane.max())
            if 0 < k < len(u) - 1:
                inner = plane[1:-1, 1:-1]
                bent = u[k + 1, 1:-1, 1:-1] + u[k - 1, 1:-1, 1:-1]
                for around in (plane[2:, 1:-1], plane[:-2, 1:-1], plane[1:-1, 2:],
                               plane[1:-1, :-2]):  # fmt: skip
                    bent += around
                bent -= 6 * inner
                squares += float(np.vdot(bent, bent))
                crossed += float((inner * bent).sum())
        return [squares, absolute, largest, crossed / (len(u) - 2) ** 3]

    return plain(call)


def softmax(x: Array) -> Array:
    """Over the last axis."""
    y = x - x.max(-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(-1, keepdims=True)
    return y


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return plain(partial(softmax, data["x"]))


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    x, g = data["x"], data["g"]

    def call() -> Array:
        y = softmax(x)
        y *= g - np.einsum("ij,ij->i", y, g)[:, None]
        return y

    return plain(call)


def normalize(x: Array) -> tuple[Array, Array]:
    """Rows of mean 0 and variance 1, and by what they were multiplied."""
    y = x - x.mean(-1, keepdims=True)
    factor = 1 / np.sqrt(np.einsum("ij,ij->i", y, y) / f32(x.shape[1]) + f32(NORM_EPSILON))
    y *= factor[:, None]
    return y, factor[:, None]


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""

    def call() -> Array:
        y, _ = normalize(data["x"])
        y *= data["scale"]
        y += data["shift"]
        return y

    return plain(call)


def layernorm_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives with a seed."""
    x, g, scale = data["x"], data["g"], data["scale"]

    def call() -> list[Array]:
        y, factor = normalize(x)
        d = g * scale
        along = np.einsum("ij,ij->i", d, y)[:, None] / f32(x.shape[1])
        for_scale, for_shift = np.einsum("ij,ij->j", g, y), g.sum(0)
        d -= d.mean(1, keepdims=True)
        y *= along
        d -= y
        d *= factor
        return [d, for_scale, for_shift]

    return plain(call)


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    x = data["x"]

    def call() -> Array:
        largest = x.max(0)
        powers = x - largest
        np.exp(powers, out=powers)
        result: Array = np.log(powers.sum(0)) + largest
        return result

    return plain(call)


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, deep_mlp, logistic, adam, gelu, plus_one, stencil_forward, softmax_forward,
        softmax_backward, layernorm_forward, layernorm_backward, logsumexp,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)


def prepared_move(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``numpy_moves``."""
    function, names = MOVES[kind](sizes)
    return plain(partial(function, *(data[name] for name in names)))


BUILDERS |= {kind: partial(prepared_move, kind) for kind in MOVES}
