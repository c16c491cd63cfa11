"""Matrix products and attention."""

from __future__ import annotations

from typing import Any

import geon

from ...positional.elementwise import elementwise, expand
from ...positional.functions import scaled
from ...positional.picking import numbers
from ...positional.products import matmul, turned
from ...positional.programs import cast, number_of
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Value
from .common import Rows
from .making import dropout


def add_product(x: Value, a: Value, b: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """Return ``beta * x + alpha * (a @ b)``."""
    found = scaled(matmul(a, b), alpha)
    return found if beta == 0 else elementwise(geon.add, scaled(x, beta), found)


def linear(x: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return ``x @ weight.T + bias``."""
    found = matmul(x, turned(weight))
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
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = (_repeated(each, q.shape[-3] // each.shape[-3]) for each in (k, v))
    factor = geon.rsqrt(number_of(q.shape[-1], q.dtype)) if scale is None else scale
    scores = elementwise(lambda t: t * factor, matmul(q, turned(k)))
    if is_causal:
        rows, columns = numbers(q.shape[-2], 2, 0), numbers(k.shape[-2], 2, 1)
        mask = elementwise(geon.less_equal, columns, rows)
    if mask is not None and mask.dtype.kind == "b":
        low = geon.constant(float("-inf"), dtype=q.dtype)
        scores = elementwise(lambda m, t: geon.where(m, t, low), mask, scores)
    elif mask is not None:
        scores = elementwise(geon.add, scores, cast(mask, q.dtype))
    weights = along(geon.softmax, scores, [len(scores.shape) - 1])
    return matmul(dropout(weights, share)[0], v)


def _repeated(x: Value, count: Any) -> Value:
    """Return ``x`` with each head ``count`` times in a row."""
    *batch, heads, length, depth = x.shape
    wide = expand(unsqueeze(x, [len(batch) + 1]), [*batch, heads, count, length, depth])
    return reshape(wide, [*batch, heads * count, length, depth])


def distances(x: Value, y: Value, p: float, mode: int | None = None) -> Value:
    """Return the p-norms of the differences of all pairs of rows."""
    rank = len(x.shape)
    gap = elementwise(geon.subtract, unsqueeze(x, [rank - 1]), unsqueeze(y, [rank - 2]))

    def norm(t: geon.Tensor, axes: Any) -> geon.Tensor:
        if p == 0:
            return geon.sum(geon.cast(geon.not_equal(t, 0), t.dtype), axes)
        if p == float("inf"):
            return geon.max(geon.absolute(t), axes)
        if p == 2:
            return geon.L2_norm(t, axes)
        return geon.power(geon.sum(geon.power(geon.absolute(t), p), axes), 1 / p)

    return reduce(norm, gap, [rank], keep=False)


ROWS: Rows = {
    **dict.fromkeys(("mm", "bmm", "matmul"), matmul),
    "addmm": add_product,
    "baddbmm": add_product,
    "linear": linear,
    "scaled_dot_product_attention": attention,
    "_cdist_forward": distances,
}
