"""Reductions over dimensions, and the indices of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape
from ...positional.values import Value, as_array, host
from .common import positions, wide

Dims = Sequence[int] | int | None


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a reduction in the dtype of its result; over all by default."""

    def build(
        x: Value, dims: Dims = None, keepdim: bool = False, *, dtype: Any = None, result: Any
    ) -> Value:
        at = positions(dims, len(x.shape))
        return cast(reduce(f, cast(x, result.dtype), at, keepdim), result.dtype)

    return build


def truth(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a reduction of truth values."""

    def build(x: Value, dims: Dims = None, keepdim: bool = False) -> Value:
        return reduce(f, cast(x, "bool"), positions(dims, len(x.shape)), keepdim)

    return build


def extreme(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the largest or the smallest elements."""

    def build(x: Value, dims: Dims = None, keepdim: bool = False) -> Value:
        at = positions(dims, len(x.shape))
        if x.dtype.kind == "b":
            return cast(reduce(f, cast(x, "uint8"), at, keepdim), "bool")
        return reduce(f, x, at, keepdim)

    return build


def variance(
    x: Value,
    dims: Dims = None,
    correction: Any = None,
    keepdim: bool = False,
    *,
    root: bool = False,
) -> Value:
    """Return the variance, with ``correction`` (1 by default) taken from the count."""
    at = positions(dims, len(x.shape))
    count = product([x.shape[k] for k in at])
    taken = 1 if correction is None else correction
    given = wide(x)
    spread = reduce(geon.variance, given, at, keepdim)
    if taken != 0:
        total = as_array(host(count, "int64")).tensor
        share = geon.cast(total, given.dtype) / geon.cast(
            geon.maximum(total - taken, 0), given.dtype
        )
        spread = elementwise(lambda t: t * share, spread)
    return cast(elementwise(geon.sqrt, spread) if root else spread, x.dtype)


def variance_biased(
    x: Value, dims: Dims = None, unbiased: bool = True, keepdim: bool = False
) -> Value:
    """Return the variance, by default the unbiased one."""
    return variance(x, dims, int(unbiased), keepdim)


def corrected(
    x: Value, dims: Dims = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    """Return ``variance``."""
    return variance(x, dims, correction, keepdim)


def argument(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of the first index of an extreme, over all elements without ``dim``."""

    def build(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        rank = len(x.shape)
        if dim is None:
            found = build(reshape(x, [product(x.shape)]), 0)
            return reshape(found, [1] * rank) if keepdim else found
        if not rank:
            return host(0, "int64")
        (at,) = positions(dim, rank)
        given = cast(x, "uint8") if x.dtype.kind == "b" else x
        if as_array(given).dims[at] is None:
            zero = elementwise(lambda t: geon.cast(geon.logical_and(t != t, False), "int64"), given)
            return reduce(lambda t, axes: t, zero, [at], keepdim)
        return reduce(f, given, [at], keepdim)

    return build


def softmax_along(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a softmax or its logarithm along a dimension."""

    def build(x: Value, dim: int, half_to_float: bool = False, *, result: Any) -> Value:
        return along(f, cast(x, result.dtype), positions(dim, len(x.shape)))

    return build


ROWS: dict[str, Callable[..., Any]] = {
    "sum.dim_IntList": reduction(geon.sum),
    "sum": reduction(geon.sum),
    "mean": reduction(geon.mean),
    "mean.dim": reduction(geon.mean),
    "prod": reduction(geon.prod),
    "prod.dim_int": reduction(geon.prod),
    "logsumexp": reduction(geon.logsumexp),
    "any": truth(geon.any),
    "any.dim": truth(geon.any),
    "any.dims": truth(geon.any),
    "all": truth(geon.all),
    "all.dim": truth(geon.all),
    "amax": extreme(geon.max),
    "amin": extreme(geon.min),
    "max": extreme(geon.max),
    "min": extreme(geon.min),
    "var.correction": corrected,
    "var.dim": variance_biased,
    "argmax": argument(geon.argmax),
    "argmin": argument(geon.argmin),
    "_softmax": softmax_along(geon.softmax),
    "_log_softmax": softmax_along(geon.log_softmax),
}
