# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""In PyTorch: workloads that move, order and join elements, and reduce what was just computed.

Each function takes sizes and gives a function and the names of its data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from .chains import stepped
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...]]


def prefix_sums(sizes: Sizes) -> Made:
    """Along columns."""
    return partial(torch.cumsum, dim=1), ("x",)


def join(sizes: Sizes) -> Made:
    """Two computed halves, one after the other."""
    return lambda x, y: torch.cat([x * 2 + y, x - y * y]), ("x", "y")


def scatter_add(sizes: Sizes) -> Made:
    """Values added up by place."""
    count = sizes["places"]

    def function(values: Any, index: Any) -> Any:
        return torch.zeros(count).index_add(0, index, values)

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

    def function(query: Any, key: Any, value: Any) -> Any:
        return F.scaled_dot_product_attention(query[None], key[None], value[None])[0]

    return function, ("query", "key", "value")


def nearest(sizes: Sizes) -> Made:
    """For each point the nearest centre, by squared distances."""
    return lambda x, c: torch.argmin((c * c).sum(1) - 2 * (x @ c.T), dim=1), ("x", "c")


def transposed_sum(sizes: Sizes) -> Made:
    """A matrix and another one's transpose."""
    return lambda x, y: x + y.T, ("x", "y")


def top_k(sizes: Sizes) -> Made:
    """The largest of each row, and where they are."""
    return lambda x: tuple(torch.topk(x, sizes["k"], dim=1)), ("x",)


def sort(sizes: Sizes) -> Made:
    """Each row."""
    return lambda x: torch.sort(x, dim=1).values, ("x",)


MOVES: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        prefix_sums, join, scatter_add, long_chain, attention, nearest, transposed_sum, top_k, sort
    )
}  # fmt: skip
