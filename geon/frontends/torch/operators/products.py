"""Matrix products, distances and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon

from ...positional.elementwise import elementwise
from ...positional.picking import numbers
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape, transpose, unsqueeze
from ...positional.values import Value, as_array, host
from .common import value_of
from .making import dropout


def add_product(x: Value, a: Value, b: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """Return ``beta * x + alpha * (a @ b)``."""
    found = _scaled(matmul(a, b), alpha)
    return found if beta == 0 else elementwise(geon.add, _scaled(x, beta), found)


def _scaled(x: Value, factor: Any) -> Value:
    return x if factor == 1 else elementwise(geon.multiply, x, value_of(factor, x.dtype))


def turned(x: Value) -> Value:
    """Return ``x`` with its last two dimensions exchanged."""
    rank = len(x.shape)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def linear(x: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return ``x @ weight.T + bias``."""
    found = matmul(x, turned(weight) if len(weight.shape) == 2 else weight)
    return found if bias is None else elementwise(geon.add, found, bias)


def attention(
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    share: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Return ``softmax(q k^T scale + mask) v``; a bool mask is true where keys take part."""
    depth = q.shape[-1]
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = (_repeated(each, q.shape[-3] // each.shape[-3]) for each in (k, v))
    factor = geon.rsqrt(geon.cast(as_array(host(depth, "int64")).tensor, q.dtype))
    scores = elementwise(lambda t: t * (factor if scale is None else scale), matmul(q, turned(k)))
    if is_causal:
        rows, columns = numbers(q.shape[-2], 2, 0), numbers(k.shape[-2], 2, 1)
        mask = elementwise(geon.less_equal, columns, rows)
    if mask is not None and mask.dtype.kind == "b":
        scores = elementwise(
            lambda m, t: geon.where(m, t, geon.cast(float("-inf"), t.dtype)), mask, scores
        )
    elif mask is not None:
        scores = elementwise(geon.add, scores, cast(mask, q.dtype))
    weights = along(geon.softmax, scores, [len(scores.shape) - 1])
    return matmul(dropout(weights, share)[0] if share else weights, v)


def _repeated(x: Value, count: Any) -> Value:
    """Return ``x`` with each head ``count`` times in a row."""
    from ...positional.elementwise import expand

    *batch, heads, length, depth = x.shape
    wide = expand(unsqueeze(x, [len(batch) + 1]), [*batch, heads, count, length, depth])
    return reshape(wide, [*batch, heads * count, length, depth])


def distances(x: Value, y: Value, p: float, mode: int | None = None) -> Value:
    """Return the p-norms of the differences of all pairs of rows."""
    rank = len(x.shape)
    gap = elementwise(geon.subtract, unsqueeze(x, [rank - 1]), unsqueeze(y, [rank - 2]))
    return reduce(lambda t, axes: _norm(t, axes, p), gap, [rank], keep=False)


def pair_distances(x: Value, p: float = 2) -> Value:
    """Return the p-norms of the differences of each pair of different rows, as a vector."""
    from ...positional.picking import gather_at

    count = int(x.shape[0])  # type: ignore[arg-type]  # its own message for an open length
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first, second = (gather_at(x, {0: host([pair[k] for pair in pairs], "int64")}) for k in (0, 1))
    gap = elementwise(geon.subtract, first, second)
    return reduce(lambda t, axes: _norm(t, axes, p), gap, [1], keep=False)


def _norm(t: geon.Tensor, axes: Any, p: float) -> geon.Tensor:
    size = geon.absolute(t)
    if p == 0:
        return geon.sum(geon.cast(t != 0, t.dtype), axes)
    if p == float("inf"):
        return geon.max(size, axes)
    return geon.L2_norm(t, axes) if p == 2 else geon.sum(size**p, axes) ** (1 / p)


ROWS: dict[str, Callable[..., Any]] = {
    "mm": lambda x, y: matmul(x, y),
    "bmm": lambda x, y: matmul(x, y),
    "matmul": lambda x, y: matmul(x, y),
    "addmm": add_product,
    "baddbmm": add_product,
    "linear": linear,
    "scaled_dot_product_attention": attention,
    "_cdist_forward": distances,
    "_pdist_forward": pair_distances,
}
