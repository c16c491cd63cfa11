"""A training step of a 784-512-512-10 perceptron: in geon, and by hand in NumPy, in place.

Both compute the same: relu layers, softmax cross entropy averaged over a batch, momentum SGD.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import geon

WIDTHS = (784, 512, 512, 10)
BATCH = 128
RATE, MOMENTUM = 0.01, 0.9
Array = np.ndarray[Any, np.dtype[np.float32]]


def data(batch: int = BATCH) -> tuple[Array, Array]:
    """Random images and one-hot classes."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(batch, WIDTHS[0])).astype(np.float32)
    classes = np.eye(WIDTHS[-1], dtype=np.float32)[rng.integers(0, WIDTHS[-1], batch)]
    return images, classes


def weights() -> list[Array]:
    """First values of the weights, the same for all contenders."""
    rng = np.random.default_rng(1)
    shapes = zip(WIDTHS, WIDTHS[1:], strict=False)
    return [(rng.normal(size=s) * np.sqrt(2 / s[0])).astype(np.float32) for s in shapes]


class ByHand:
    """The step as one writes it who wants no allocation at all: every call has ``out=``."""

    def __init__(self, batch: int = BATCH) -> None:
        wide, classes = WIDTHS[1], WIDTHS[-1]
        self.w = weights()
        self.b = [np.zeros(n, np.float32) for n in WIDTHS[1:]]
        self.moving_w = [np.zeros_like(w) for w in self.w]
        self.moving_b = [np.zeros_like(b) for b in self.b]
        self.h1, self.h2, self.d = (np.empty((batch, wide), np.float32) for _ in range(3))
        self.z, self.picked = (np.empty((batch, classes), np.float32) for _ in range(2))
        self.row = np.empty((batch, 1), np.float32)
        self.off = np.empty((batch, wide), np.bool_)
        self.gradient = np.empty(WIDTHS[0] * wide, np.float32)
        self.gradient_b = np.empty(wide, np.float32)

    @property
    def state(self) -> list[Array]:
        """Weights, biases and their momentum."""
        return [*self.w, *self.b, *self.moving_w, *self.moving_b]

    @property
    def scratch_bytes(self) -> int:
        """Bytes beside inputs and state."""
        mine = (self.h1, self.h2, self.d, self.z, self.picked, self.row, self.off)
        return sum(a.nbytes for a in (*mine, self.gradient, self.gradient_b))

    def step(self, x: Array, y: Array) -> np.float32:
        """One step on a batch; returns the loss."""
        w, b, h1, h2, z, d, row = self.w, self.b, self.h1, self.h2, self.z, self.d, self.row
        for source, k, out in ((x, 0, h1), (h1, 1, h2)):
            np.matmul(source, w[k], out=out)
            np.add(out, b[k], out=out)
            np.maximum(out, 0, out=out)
        np.matmul(h2, w[2], out=z)
        np.add(z, b[2], out=z)
        np.maximum.reduce(z, axis=1, keepdims=True, out=row)
        np.subtract(z, row, out=z)
        np.multiply(z, y, out=self.picked)
        hit = self.picked.sum()
        np.exp(z, out=z)
        np.add.reduce(z, axis=1, keepdims=True, out=row)
        np.divide(z, row, out=z)
        np.subtract(z, y, out=z)
        np.multiply(z, np.float32(1 / len(x)), out=z)
        np.log(row, out=row)
        loss = (row.sum() - hit) / len(x)
        np.matmul(z, w[2].T, out=d)
        self.update(2, h2, z)
        np.less_equal(h2, 0, out=self.off)
        np.copyto(d, 0, where=self.off)
        np.matmul(d, w[1].T, out=h2)
        self.update(1, h1, d)
        np.less_equal(h1, 0, out=self.off)
        np.copyto(h2, 0, where=self.off)
        self.update(0, x, h2)
        return loss  # type: ignore[no-any-return]  # NumPy scalars of float32

    def update(self, k: int, below: Array, d: Array) -> None:
        """Gradients of layer k, and momentum SGD in place."""
        gradient = self.gradient[: self.w[k].size].reshape(self.w[k].shape)
        gradient_b = self.gradient_b[: self.b[k].size]
        np.matmul(below.T, d, out=gradient)
        np.add.reduce(d, axis=0, out=gradient_b)
        for moving, value, g in (
            (self.moving_w[k], self.w[k], gradient),
            (self.moving_b[k], self.b[k], gradient_b),
        ):
            np.multiply(moving, np.float32(MOMENTUM), out=moving)
            np.add(moving, g, out=moving)
            np.multiply(moving, np.float32(RATE), out=g)
            np.subtract(value, g, out=value)


def in_geon(widths: tuple[int, ...] = WIDTHS) -> tuple[Any, Any, list[Any]]:
    """The transformer, the step as a computation of (images, classes), and the parameters."""
    batch = geon.Axis("N")
    axes = [geon.Axis(f"layer{k}", n) for k, n in enumerate(widths)]
    x, y = geon.placeholder([batch, axes[0]]), geon.placeholder([batch, axes[-1]])
    first = weights() if widths == WIDTHS else None
    h: Any = x
    for k, (below, above) in enumerate(zip(axes, axes[1:], strict=False)):
        initial: Any = 0.01 if first is None else first[k]
        w = geon.Variable([below, above], initial_value=initial, name=f"w{k}")
        b = geon.Variable([above], initial_value=0, name=f"b{k}")
        h = geon.dot(h, w) + b
        if k < len(widths) - 2:
            h = geon.relu(h)
    y_hat = geon.softmax(h, normalization_axes=axes[-1])
    loss = geon.cross_entropy_multi(y_hat, y) / geon.tensor_size(h, reduction_axes=batch)
    parameters, updates = loss.variables(), []
    for v, g in zip(parameters, geon.deriv(loss, parameters), strict=True):
        moving = geon.persistent_tensor(v.axes, initial_value=0, name=f"{v.name} moving")
        new = MOMENTUM * moving + g
        updates += [geon.assign(moving, new), geon.assign(v, v - RATE * new)]
    transformer = geon.NumPyTransformer()
    step = transformer.computation([loss, geon.doall(updates)], x, y)
    return transformer, step, parameters
