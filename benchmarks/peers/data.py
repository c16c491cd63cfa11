"""Inputs of the workloads: each function is named as a kind and takes a generator and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data_nets import gpt_step as gpt_step
from .data_nets import lstm_model_step as lstm_model_step
from .data_nets import residual_step as residual_step
from .data_nets import sampling as sampling

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
Generator = np.random.Generator


def normal(rng: Generator, *shape: int, scale: float = 1.0) -> Array:
    """Normal numbers in float32."""
    return rng.standard_normal(shape, np.float32) * np.float32(scale)


def mlp_step(rng: Generator, batch: int, inputs: int, hidden: int, classes: int) -> Data:
    """Images, one-hot classes, weights of three layers."""
    widths = (inputs, hidden, hidden, classes)
    return {
        "x": normal(rng, batch, inputs),
        "y": np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)],
        "w": [normal(rng, a, b, scale=(2 / a) ** 0.5) for a, b in zip(widths, widths[1:])],  # noqa: B905
        "b": [np.zeros(n, np.float32) for n in widths[1:]],
    }


def deep_mlp(rng: Generator, layers: int, width: int, batch: int) -> Data:
    """Inputs, targets, weights and biases of each layer.

    Weights are orthogonal: with others nothing would be left of the derivatives after a few dozen
    layers, and comparing them would compare rounding.
    """
    return {
        "x": normal(rng, batch, width),
        "y": normal(rng, batch, width),
        "w": [np.linalg.qr(normal(rng, width, width))[0] for _ in range(layers)],
        "b": [np.zeros(width, np.float32) for _ in range(layers)],
    }


def block_forward(rng: Generator, batch: int, tokens: int, width: int, heads: int) -> Data:
    """Tokens, and the weights by name; the last axis of a weight matrix is its output."""
    del heads
    spread = width**-0.5
    return {
        "x": normal(rng, batch, tokens, width),
        "scale1": 1 + normal(rng, width, scale=0.1),
        "shift1": normal(rng, width, scale=0.1),
        "qkv": normal(rng, width, 3 * width, scale=spread),
        "out": normal(rng, width, width, scale=spread),
        "scale2": 1 + normal(rng, width, scale=0.1),
        "shift2": normal(rng, width, scale=0.1),
        "up": normal(rng, width, 4 * width, scale=spread),
        "up_bias": normal(rng, 4 * width, scale=0.1),
        "down": normal(rng, 4 * width, width, scale=spread / 2),
        "down_bias": normal(rng, width, scale=0.1),
    }


block_gradient = block_forward
WEIGHTS = (
    "scale1 shift1 qkv out scale2 shift2 up up_bias down down_bias"
).split()  # in the order of the gradients


def matmul(rng: Generator, m: int, k: int, n: int) -> Data:
    """Two matrices."""
    return {"a": normal(rng, m, k), "b": normal(rng, k, n)}


def matvec(rng: Generator, m: int, k: int) -> Data:
    """A matrix and a vector."""
    return {"a": normal(rng, m, k), "b": normal(rng, k)}


def batch_matmul(rng: Generator, batch: int, n: int) -> Data:
    """Two stacks of matrices."""
    return {"a": normal(rng, batch, n, n), "b": normal(rng, batch, n, n)}


def gelu(rng: Generator, count: int) -> Data:
    """Values on both sides of 0."""
    return {"x": normal(rng, count, scale=2)}


def plus_one(rng: Generator) -> Data:
    """A scalar."""
    return {"x": np.float32(rng.standard_normal())}


def stencil_forward(rng: Generator, side: int) -> Data:
    """A grid."""
    return {"u": normal(rng, side, side, side)}


stencil_gradient = stencil_forward


def softmax_forward(rng: Generator, rows: int, columns: int) -> Data:
    """Values over rows and columns."""
    return {"x": normal(rng, rows, columns, scale=2)}


logsumexp = softmax_forward


def softmax_backward(rng: Generator, rows: int, columns: int) -> Data:
    """Values, and the derivative of a loss with respect to the result."""
    return {"x": normal(rng, rows, columns, scale=2), "g": normal(rng, rows, columns)}


def layernorm_forward(rng: Generator, rows: int, columns: int) -> Data:
    """Values, a scale and a shift for each column."""
    return {
        "x": normal(rng, rows, columns, scale=2),
        "scale": 1 + normal(rng, columns, scale=0.1),
        "shift": normal(rng, columns, scale=0.1),
    }


def layernorm_backward(rng: Generator, rows: int, columns: int) -> Data:
    """The same, and the derivative of a loss with respect to the result."""
    return {**layernorm_forward(rng, rows, columns), "g": normal(rng, rows, columns)}


def adam(rng: Generator, count: int) -> Data:
    """Parameters and a gradient, the same for each step."""
    return {"p": normal(rng, count), "g": normal(rng, count, scale=0.1)}


def logistic(rng: Generator, batch: int, features: int) -> Data:
    """Features, classes 0 and 1, first weights."""
    return {
        "x": normal(rng, batch, features),
        "y": rng.integers(0, 2, batch).astype(np.float32),
        "w": normal(rng, features),
    }


def chain(rng: Generator, count: int, length: int) -> Data:
    """A vector to start from, one to add and one near 1 to multiply with."""
    return {
        "x": normal(rng, count),
        "w": 1 + normal(rng, count, scale=0.05),
        "length": length,
    }


chain_gradient = chain


def prefix_sums(rng: Generator, rows: int, columns: int) -> Data:
    """Values over rows and columns."""
    return {"x": normal(rng, rows, columns)}


def join(rng: Generator, count: int) -> Data:
    """Two vectors."""
    return {"x": normal(rng, count), "y": normal(rng, count)}


def scatter_add(rng: Generator, count: int, places: int) -> Data:
    """Values, and a place for each."""
    return {"values": normal(rng, count), "index": rng.integers(0, places, count)}


def long_chain(rng: Generator, count: int, steps: int) -> Data:
    """Three values for each element."""
    del steps
    return {name: normal(rng, count) for name in "xyz"}


def attention(rng: Generator, heads: int, tokens: int, depth: int) -> Data:
    """Queries, keys and values of each head."""
    return {name: normal(rng, heads, tokens, depth) for name in ("query", "key", "value")}


def nearest(rng: Generator, count: int, centres: int, depth: int) -> Data:
    """Centres, and points near some of them: no two are as near, whoever rounds."""
    c = normal(rng, centres, depth)
    return {"x": c[rng.integers(0, centres, count)] + normal(rng, count, depth, scale=0.01), "c": c}


def transposed_sum(rng: Generator, side: int) -> Data:
    """Two square matrices."""
    return {"x": normal(rng, side, side), "y": normal(rng, side, side)}


def top_k(rng: Generator, rows: int, columns: int, k: int) -> Data:
    """Values over rows and columns, no two of a row alike."""
    del k
    return {
        "x": rng.permuted(np.arange(rows * columns, dtype=np.float32).reshape(rows, -1), axis=1)
    }


sort = prefix_sums


def layer(rng: Generator, gates: int, steps: int, batch: int, inputs: int, hidden: int) -> Data:
    """Inputs and weights of a recurrent layer with so many gates."""
    return {
        "x": normal(rng, steps, batch, inputs),
        "w": normal(rng, inputs, gates * hidden, scale=inputs**-0.5),
        "u": normal(rng, hidden, gates * hidden, scale=hidden**-0.5),
        "b": normal(rng, gates * hidden, scale=0.1),
    }


def lstm_forward(rng: Generator, **sizes: int) -> Data:
    """Those of four gates."""
    return layer(rng, 4, **sizes)


lstm_gradient = lstm_forward


def gru_gradient(rng: Generator, **sizes: int) -> Data:
    """Those of three."""
    return layer(rng, 3, **sizes)


def lorenz(rng: Generator, count: int, steps: int) -> Data:
    """Where systems of three values start."""
    del steps
    return {name: normal(rng, count) for name in "xyz"}


def products_gradient(rng: Generator, steps: int, n: int) -> Data:
    """Orthogonal matrices: products of others overflow, or nothing is left of them."""
    found = np.linalg.qr(rng.standard_normal((steps, n, n)))[0].astype(np.float32)
    return {"m": found, "start": normal(rng, n, n)}


def ring(rng: Generator, steps: int, count: int) -> Data:
    """What drives values on a ring, and where they start."""
    return {"force": 1 + normal(rng, steps, scale=0.1), "start": normal(rng, count)}


ring_gradient = ring


# Windows ------------------------------------------------------------------------------------------


def _images(rng: Generator, batch: int, side: int, channels: int) -> Array:
    return normal(rng, batch, side, side, channels)


def _filters(rng: Generator, *axes: int) -> Array:
    """Filters of 3×3 positions."""
    return normal(rng, 3, 3, *axes, scale=0.3 * axes[0] ** -0.5)


def convolution(rng: Generator, batch: int, side: int, channels: int, filters: int) -> Data:
    """Images and filters."""
    return {"x": _images(rng, batch, side, channels), "w": _filters(rng, channels, filters)}


def convolution_gradient(
    rng: Generator, batch: int, side: int, channels: int, filters: int, stride: int
) -> Data:
    """Images, filters, and the cotangent of a convolution with a border of 1."""
    found = convolution(rng, batch, side, channels, filters)
    return found | {"g": _images(rng, batch, (side - 1) // stride + 1, filters)}


def depthwise(rng: Generator, batch: int, side: int, channels: int, stride: int) -> Data:
    """Images, and filters of single channels."""
    return {"x": _images(rng, batch, side, channels), "w": _filters(rng, channels)}


def depthwise_gradient(rng: Generator, batch: int, side: int, channels: int, stride: int) -> Data:
    """The same with a cotangent."""
    found = depthwise(rng, batch, side, channels, stride)
    return found | {"g": _images(rng, batch, (side - 1) // stride + 1, channels)}


def pooling(rng: Generator, batch: int, side: int, channels: int, window: int, stride: int) -> Data:
    """Images, and the cotangent of what is largest with a border of half a window."""
    count = (side + (window - 1) // 2 * 2 - window) // stride + 1
    return {
        "x": _images(rng, batch, side, channels),
        "g": _images(rng, batch, count, channels),
    }


def residual_block(rng: Generator, batch: int, side: int, channels: int) -> Data:
    """Images and a cotangent; filters of two convolutions, scales and shifts of two norms."""
    return {
        "x": _images(rng, batch, side, channels),
        "g": _images(rng, batch, side, channels),
        **{f"w{k}": _filters(rng, channels, channels) for k in range(2)},
        **{f"scale{k}": 1 + normal(rng, channels, scale=0.1) for k in range(2)},
        **{f"shift{k}": normal(rng, channels, scale=0.1) for k in range(2)},
    }


def convolution_step(
    rng: Generator, batch: int, side: int, first: int, second: int, classes: int
) -> Data:
    """Images of one channel, one-hot classes, filters and biases."""
    last = ((side - 4) // 2 - 4) // 2
    deep = last * last * second
    return {
        "x": _images(rng, batch, side, 1),
        "y": np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)],
        "parameters": [
            normal(rng, 5, 5, 1, first, scale=0.2),
            normal(rng, 5, 5, first, second, scale=0.2 * first**-0.5),
            normal(rng, last, last, second, classes, scale=deep**-0.5),
            *(np.zeros(n, np.float32) for n in (first, second, classes)),
        ],
    }
