"""Attention, with a mask and a joining product."""

from __future__ import annotations

import math

import geon

from ....errors import AxisError
from ..picking import numbers
from ..products import matmul, turned
from ..reductions import reduce
from ..reshaping import reshape, transpose
from ..values import Value
from .common import constant, ew, optional


def attention(
    q: Value, k: Value, v: Value, mask: Value | None = None, weight: Value | None = None,
    bias: Value | None = None, *, scale: float | None = None, is_causal: bool = False,
) -> tuple[Value, Value]:  # fmt: skip
    """Return ``softmax(scale q k^T + mask) v``, and the logarithm of the sum of exponentials.

    ``q`` is (rows, queries, heads, depth), or without heads (rows, queries, depth). ``scale`` is
    ``1 / sqrt(depth)`` by default. With ``weight`` heads are joined and multiplied with its
    transpose.
    """
    rank = len(q.shape)
    if rank not in (3, 4) or len(k.shape) != rank or len(v.shape) != rank:
        raise AxisError(f"queries {q}, keys {k} and values {v}: give 3 or 4 dimensions to each")
    many = rank == 4
    heads_first = (lambda t: transpose(t, [0, 2, 1, 3])) if many else (lambda t: t)
    queries, keys, content = (heads_first(each) for each in (q, k, v))
    factor = 1 / math.sqrt(int(q.shape[-1])) if scale is None else scale
    scores = ew(lambda t: t * factor, matmul(queries, turned(keys)))
    if is_causal:
        before = ew(geon.less_equal, numbers(k.shape[1], 2, 1), numbers(q.shape[1], 2, 0))
        low = constant(-math.inf, scores.dtype)
        scores = ew(geon.where, before, scores, low)
    scores = optional(geon.add, scores, mask)
    last = [len(scores.shape) - 1]
    sums = reduce(lambda t, axes: geon.logsumexp(t, axes) if axes else t, scores, last)
    found = heads_first(matmul(ew(lambda s, n: geon.exp(s - n), scores, sums), content))
    lse = reshape(sums, sums.shape[:-1])
    if weight is not None:
        found = matmul(reshape(found, [*found.shape[:2], -1]), turned(weight))
        found = optional(geon.add, found, bias)
    return found, lse
