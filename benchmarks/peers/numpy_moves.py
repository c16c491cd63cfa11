"""By hand in NumPy: workloads that move, order and join elements, and reduce what was computed.

Each function takes sizes and gives a function and the names of its data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .chains import stepped
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...]]
Array = np.ndarray[Any, Any]


def prefix_sums(sizes: Sizes) -> Made:
    """Along columns."""
    return partial(np.cumsum, axis=1), ("x",)


def join(sizes: Sizes) -> Made:
    """Two computed halves, each put where it belongs."""

    def function(x: Array, y: Array) -> Array:
        out = np.empty(2 * x.size, x.dtype)
        first, second = out[: x.size], out[x.size :]
        np.add(np.multiply(x, 2, out=first), y, out=first)
        np.subtract(x, np.multiply(y, y, out=second), out=second)
        return out

    return function, ("x", "y")


def scatter_add(sizes: Sizes) -> Made:
    """Values added up by place, in float64."""
    count = sizes["places"]

    def function(values: Array, index: Array) -> Array:
        return np.bincount(index, values, count)

    return function, ("values", "index")


def long_chain(sizes: Sizes) -> Made:
    """Steps of a system of three values for each of many elements."""

    def function(*at: Any) -> Any:
        for _ in range(sizes["steps"]):
            at = stepped(at)
        return at

    return function, ("x", "y", "z")


def attention(sizes: Sizes) -> Made:
    """Softmax of scaled products of queries and keys, times values."""

    def function(query: Array, key: Array, value: Array) -> Array:
        scores = (query * np.float32(sizes["depth"] ** -0.5)) @ key.transpose(0, 2, 1)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        total = scores.sum(-1, keepdims=True)
        return np.asarray((scores @ value) / total)

    return function, ("query", "key", "value")


def nearest(sizes: Sizes) -> Made:
    """For each point the nearest centre, by squared distances."""

    def function(x: Array, c: Array) -> Array:
        distances = x @ (-2 * c.T)
        distances += (c * c).sum(1)
        return np.asarray(distances.argmin(1))

    return function, ("x", "c")


def transposed_sum(sizes: Sizes) -> Made:
    """A matrix and another one's transpose."""
    return lambda x, y: x + y.T, ("x", "y")


def top_k(sizes: Sizes) -> Made:
    """The largest of each row, and where they are."""
    k = sizes["k"]

    def function(x: Array) -> tuple[Array, Array]:
        some = np.argpartition(x, x.shape[1] - k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(x, some, 1), axis=1)
        found = np.take_along_axis(some, order, 1)
        return np.take_along_axis(x, found, 1), found

    return function, ("x",)


def sort(sizes: Sizes) -> Made:
    """Each row."""
    return partial(np.sort, axis=1), ("x",)


MOVES: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        prefix_sums, join, scatter_add, long_chain, attention, nearest, transposed_sum, top_k, sort
    )
}  # fmt: skip
