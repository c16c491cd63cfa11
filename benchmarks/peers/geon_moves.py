"""In geon: workloads that move, order and join elements, and reduce what was just computed.

Each function takes sizes and gives results, placeholders by the names of their data, and the open
lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon
from geon import Axis, placeholder

from .chains import stepped
from .workloads import Sizes

Made = tuple[Any, dict[str, Any], dict[Axis, int]]


def prefix_sums(sizes: Sizes) -> Made:
    """Along columns."""
    rows, columns = Axis("N"), Axis("C", sizes["columns"])
    x = placeholder([rows, columns])
    return geon.cumsum(x, columns), {"x": x}, {rows: sizes["rows"]}


def join(sizes: Sizes) -> Made:
    """Two computed halves, one after the other."""
    n = Axis("N")
    x, y = placeholder([n]), placeholder([n])
    return geon.concat([x * 2 + y, x - y * y], n), {"x": x, "y": y}, {n: sizes["count"]}


def scatter_add(sizes: Sizes) -> Made:
    """Values added up by place."""
    n, places = Axis("N"), Axis("P", sizes["places"])
    values, index = placeholder([n]), placeholder([n], "int64")
    zeros = geon.broadcast(geon.cast(0, "float32"), [places])
    made = geon.scatter(zeros, index, values, places, mode="add")
    return made, {"values": values, "index": index}, {n: sizes["count"]}


def long_chain(sizes: Sizes) -> Made:
    """Steps of a system of three values for each of many elements."""
    n = Axis("N")
    first = [placeholder([n]) for _ in range(3)]
    at: Any = first
    for _ in range(sizes["steps"]):
        at = stepped(at)
    return list(at), dict(zip("xyz", first, strict=True)), {n: sizes["count"]}


def attention(sizes: Sizes) -> Made:
    """Softmax of scaled products of queries and keys, times values."""
    head, depth, time = Axis("head", sizes["heads"]), Axis("D", sizes["depth"]), Axis("T")
    earlier = Axis("S")
    query = placeholder([head, time, depth])
    key, value = placeholder([head, earlier, depth]), placeholder([head, earlier, depth])
    scores = geon.dot(query * float(sizes["depth"] ** -0.5), key, over=depth)
    made = geon.dot(geon.softmax(scores, normalization_axes=earlier), value, over=earlier)
    inputs = {"query": query, "key": key, "value": value}
    return made, inputs, {time: sizes["tokens"], earlier: sizes["tokens"]}


def nearest(sizes: Sizes) -> Made:
    """For each point the nearest centre, by squared distances."""
    n, centres, depth = Axis("N"), Axis("C", sizes["centres"]), Axis("D", sizes["depth"])
    x, c = placeholder([n, depth]), placeholder([centres, depth])
    distances = geon.sum(c * c, depth) - 2 * geon.dot(x, c, over=depth)
    return geon.argmin(distances, centres), {"x": x, "c": c}, {n: sizes["count"]}


def transposed_sum(sizes: Sizes) -> Made:
    """A matrix and another one's transpose."""
    n, m = Axis("N", sizes["side"]), Axis("M", sizes["side"])
    x, y = placeholder([n, m]), placeholder([m, n])
    return x + y, {"x": x, "y": y}, {}


def top_k(sizes: Sizes) -> Made:
    """The largest of each row, and where they are."""
    rows, columns = Axis("N"), Axis("C", sizes["columns"])
    x = placeholder([rows, columns])
    return list(geon.top_k(x, sizes["k"], columns)), {"x": x}, {rows: sizes["rows"]}


def sort(sizes: Sizes) -> Made:
    """Each row."""
    rows, columns = Axis("N"), Axis("C", sizes["columns"])
    x = placeholder([rows, columns])
    return geon.sort(x, columns), {"x": x}, {rows: sizes["rows"]}


MOVES: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        prefix_sums, join, scatter_add, long_chain, attention, nearest, transposed_sum, top_k, sort
    )
}  # fmt: skip
