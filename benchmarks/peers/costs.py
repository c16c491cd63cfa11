"""The work that a workload cannot do without: operations, and bytes from and to memory.

Each function is named as a kind of workload and takes its sizes. A kind without one is bound by
what a call costs. Inputs are counted as read once and results as written once; elementary
functions are not counted as operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Floating-point operations, and bytes; ``in_place`` where what is written was read before."""

    flops: float
    read: float
    written: float
    in_place: bool = False

    @property
    def footprint(self) -> float:
        """Bytes of memory that are touched."""
        return self.read if self.in_place else self.read + self.written


def _floats(read: float, written: float, flops: float = 0, in_place: bool = False) -> Cost:
    return Cost(flops, 4 * read, 4 * written, in_place)


def matmul(m: int, k: int, n: int) -> Cost:
    """One product."""
    return _floats(m * k + k * n, m * n, 2 * m * k * n)


def matvec(m: int, k: int) -> Cost:
    """One product with a vector."""
    return matmul(m, k, 1)


def batch_matmul(batch: int, n: int) -> Cost:
    """Products of their own."""
    return _floats(2 * batch * n * n, batch * n * n, 2 * batch * n**3)


def mlp_step(batch: int, inputs: int, hidden: int, classes: int) -> Cost:
    """Products forward, for weights, and for all inputs but the first; weights and momentum."""
    first, rest = inputs * hidden, hidden * hidden + hidden * classes
    state = 2 * (first + rest)
    return _floats(state + batch * inputs, state, 2 * batch * (2 * first + 3 * rest), True)


def deep_mlp(layers: int, width: int, batch: int) -> Cost:
    """As ``mlp_step``, without momentum."""
    weights = layers * width * (width + 1)
    return _floats(weights, weights, 2 * batch * width * width * (3 * layers - 1), True)


def block_forward(batch: int, tokens: int, width: int, heads: int) -> Cost:
    """Four projections, two products of attention, two of the perceptron."""
    del heads
    rows = batch * tokens
    flops = 2 * rows * 12 * width * width + 4 * rows * tokens * width
    return _floats(12 * width * width + rows * width, rows * width, flops)


def block_gradient(batch: int, tokens: int, width: int, heads: int) -> Cost:
    """Each product forward, and twice backward."""
    once = block_forward(batch, tokens, width, heads)
    return Cost(3 * once.flops, 2 * once.read, once.read + once.written)


def gelu(count: int) -> Cost:
    """One array to another."""
    return _floats(count, count)


def adam(count: int) -> Cost:
    """Parameters and two moments in place, the gradient read."""
    return _floats(4 * count, 3 * count, 0, True)


def stencil_forward(side: int) -> Cost:
    """The grid read once."""
    return _floats(side**3, 0)


def stencil_gradient(side: int) -> Cost:
    """The grid read, its gradient written."""
    return _floats(side**3, side**3)


def softmax_forward(rows: int, columns: int) -> Cost:
    """One array to another."""
    return _floats(rows * columns, rows * columns)


def softmax_backward(rows: int, columns: int) -> Cost:
    """Input and seed to the gradient."""
    return _floats(2 * rows * columns, rows * columns)


layernorm_forward, layernorm_backward = softmax_forward, softmax_backward


def logsumexp(rows: int, columns: int) -> Cost:
    """One array read."""
    return _floats(rows * columns, columns)


def prefix_sums(rows: int, columns: int) -> Cost:
    """One array to another."""
    return _floats(rows * columns, rows * columns, rows * columns)


def join(count: int) -> Cost:
    """Two arrays to one."""
    return _floats(2 * count, 2 * count, 4 * count)


def scatter_add(count: int, places: int) -> Cost:
    """Values and 64-bit places to the sums."""
    return _floats(3 * count, places, count)


def long_chain(count: int, steps: int) -> Cost:
    """Three arrays to three."""
    return _floats(3 * count, 3 * count, 71 * steps * count)


def attention(heads: int, tokens: int, depth: int) -> Cost:
    """Two products; the square between them needs no memory."""
    size = heads * tokens * depth
    return _floats(3 * size, size, 4 * size * tokens)


def nearest(count: int, centres: int, depth: int) -> Cost:
    """One product; its result needs no memory, the positions have 64 bits."""
    return _floats(count * depth + centres * depth, 2 * count, 2 * count * centres * depth)


def transposed_sum(side: int) -> Cost:
    """Two arrays to one."""
    return _floats(2 * side * side, side * side, side * side)


def top_k(rows: int, columns: int, k: int) -> Cost:
    """One array read, values and 64-bit positions written."""
    return _floats(rows * columns, 3 * rows * k, rows * columns)


def sort(rows: int, columns: int) -> Cost:
    """One array to another."""
    return _floats(rows * columns, rows * columns, rows * columns * math.ceil(math.log2(columns)))


def layer(gates: int, steps: int, batch: int, inputs: int, hidden: int, products: int) -> Cost:
    """A recurrent layer: for each of ``products`` one by the inputs and one by the state."""
    wide = gates * hidden
    weights, stacks = (inputs + hidden + 1) * wide, steps * batch * (inputs + hidden)
    flops = 2 * products * steps * batch * (inputs + hidden) * wide
    return _floats(weights + stacks, weights + stacks, flops)


def lstm_forward(**sizes: int) -> Cost:
    """Products forward alone."""
    return layer(4, products=1, **sizes)


def lstm_gradient(**sizes: int) -> Cost:
    """Products forward, for weights, and for inputs and states."""
    return layer(4, products=3, **sizes)


def gru_gradient(**sizes: int) -> Cost:
    """The same with three gates."""
    return layer(3, products=3, **sizes)


def lorenz(count: int, steps: int) -> Cost:
    """71 operations for each system and step."""
    return _floats(3 * count, 3 * count, 71 * count * steps)


# Windows ------------------------------------------------------------------------------------------


def convolution(batch: int, side: int, channels: int, filters: int) -> Cost:
    """Nine products of a matrix for each place of an image."""
    places = batch * side * side
    return _floats(
        places * channels + 9 * channels * filters,
        places * filters,
        18 * places * channels * filters,
    )


def convolution_gradient(batch: int, side: int, channels: int, filters: int, stride: int) -> Cost:
    """Forward, and for images and filters, each at every place of the result."""
    places, results = batch * side**2, batch * ((side - 1) // stride + 1) ** 2
    w = 9 * channels * filters
    read = places * channels + results * filters + w
    return _floats(read, read, 3 * 2 * results * w)


def depthwise(batch: int, side: int, channels: int, stride: int) -> Cost:
    """Nine products for each element of the result."""
    places, results = batch * side**2, batch * ((side - 1) // stride + 1) ** 2
    return _floats(channels * (places + 9), channels * results, 18 * channels * results)


def depthwise_gradient(batch: int, side: int, channels: int, stride: int) -> Cost:
    """Forward, and for images and filters."""
    places, results = batch * side**2, batch * ((side - 1) // stride + 1) ** 2
    read = channels * (places + results + 9)
    return _floats(read, read, 3 * 18 * channels * results)


def pooling(batch: int, side: int, channels: int, window: int, stride: int) -> Cost:
    """A comparison for each element of each window, and a sum for each window."""
    count = (side + (window - 1) // 2 * 2 - window) // stride + 1
    places, results = batch * side**2 * channels, batch * count**2 * channels
    return _floats(places + results, places + results, (window**2 + 1) * results)


def residual_block(batch: int, side: int, channels: int) -> Cost:
    """Two convolutions forward, and for images and filters."""
    places = batch * side**2
    w = 9 * channels**2
    images, parameters = places * channels, 2 * w + 4 * channels
    return _floats(2 * images + parameters, 2 * images + parameters, 2 * 3 * 2 * places * w)


def convolution_step(batch: int, side: int, first: int, second: int, classes: int) -> Cost:
    """Products forward, for filters, and for all inputs but the first; the parameters."""
    one, other = side - 4, (side - 4) // 2 - 4
    deep = (other // 2) ** 2 * second
    outer = 25 * first * one**2 * batch
    rest = (25 * first * second * other**2 + deep * classes) * batch
    state = 25 * first * (1 + second) + deep * classes + first + second + classes
    return _floats(state + batch * (side**2 + classes), state, 2 * (2 * outer + 3 * rest), True)
