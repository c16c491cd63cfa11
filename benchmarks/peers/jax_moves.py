# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""In JAX: workloads that move, order and join elements, and reduce what was just computed.

Each function takes sizes and gives a function and the names of its data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .chains import stepped
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...]]


def prefix_sums(sizes: Sizes) -> Made:
    """Along columns."""
    return partial(jnp.cumsum, axis=1), ("x",)


def join(sizes: Sizes) -> Made:
    """Two computed halves, one after the other."""
    return lambda x, y: jnp.concatenate([x * 2 + y, x - y * y]), ("x", "y")


def scatter_add(sizes: Sizes) -> Made:
    """Values added up by place."""
    count = sizes["places"]
    return lambda values, index: jnp.zeros(count).at[index].add(values), ("values", "index")


def long_chain(sizes: Sizes) -> Made:
    """Steps of a system of three values for each of many elements."""

    def function(*at: Any) -> Any:
        for _ in range(sizes["steps"]):
            at = stepped(at)
        return at

    return function, ("x", "y", "z")


def attention(sizes: Sizes) -> Made:
    """Softmax of scaled products of queries and keys, times values."""

    def function(query: Any, key: Any, value: Any) -> Any:
        # Tokens come before heads there.
        parts = [jnp.swapaxes(each, 0, 1) for each in (query, key, value)]
        return jnp.swapaxes(jax.nn.dot_product_attention(*parts), 0, 1)

    return function, ("query", "key", "value")


def nearest(sizes: Sizes) -> Made:
    """For each point the nearest centre, by squared distances."""
    return lambda x, c: jnp.argmin(jnp.sum(c * c, 1) - 2 * (x @ c.T), axis=1), ("x", "c")


def transposed_sum(sizes: Sizes) -> Made:
    """A matrix and another one's transpose."""
    return lambda x, y: x + y.T, ("x", "y")


def top_k(sizes: Sizes) -> Made:
    """The largest of each row, and where they are."""
    return lambda x: tuple(jax.lax.top_k(x, sizes["k"])), ("x",)


def sort(sizes: Sizes) -> Made:
    """Each row."""
    return partial(jnp.sort, axis=1), ("x",)


MOVES: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        prefix_sums, join, scatter_add, long_chain, attention, nearest, transposed_sum, top_k, sort
    )
}  # fmt: skip
