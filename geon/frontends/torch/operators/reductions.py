"""Reductions over dimensions, and the indices of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.functions import argument, extreme
from ...positional.programs import cast, number_of
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape
from ...positional.values import Value
from .common import Builder, Rows, positions, wide

Dims = Sequence[int] | int | None


def reduction(f: Callable[..., Any]) -> Builder:
    """Return the builder of a reduction in the dtype of its result; over all by default."""

    def build(
        x: Value, dims: Dims = None, keepdim: bool = False, *, dtype: Any = None, result: Any
    ) -> Value:
        return reduce(f, cast(x, result.dtype), positions(dims, len(x.shape)), keepdim)

    return build


def extreme_over(f: Callable[..., Any]) -> Builder:
    """Return the builder of the largest or the smallest elements."""
    return lambda x, dims=None, keepdim=False: extreme(f, x, positions(dims, len(x.shape)), keepdim)


def argument_along(f: Callable[..., Any]) -> Builder:
    """Return the builder of the first index of an extreme, over all elements without ``dim``."""

    def build(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        rank = len(x.shape)
        if dim is not None and rank:
            return argument(f, x, positions(dim, rank)[0], keepdim)
        found = argument(f, reshape(x, [product(x.shape)]), 0, False)
        return reshape(found, [1] * rank) if keepdim else found

    return build


def variance(x: Value, dims: Dims = None, correction: Any = None, keepdim: bool = False) -> Value:
    """Return the variance, with ``correction`` (1 by default) taken from the count."""
    at = positions(dims, len(x.shape))
    found = reduce(geon.variance, wide(x), at, keepdim)
    count = number_of(product([x.shape[k] for k in at]), found.dtype)
    rest = geon.maximum(count - (1 if correction is None else correction), 0)
    return elementwise(lambda t: t * (count / rest), found)


def softmax_along(f: Callable[..., Any]) -> Builder:
    """Return the builder of a softmax or its logarithm along a dimension."""

    def build(x: Value, dim: int, half_to_float: bool = False, *, result: Any) -> Value:
        return along(f, cast(x, result.dtype), positions(dim, len(x.shape)))

    return build


def truth(f: Callable[..., Any]) -> Builder:
    """Return the builder of a reduction of truth values."""
    return lambda x, dims=None, keepdim=False: reduce(
        f, cast(x, "bool"), positions(dims, len(x.shape)), keepdim
    )


ROWS: Rows = {
    **dict.fromkeys(("sum", "sum.dim_IntList"), reduction(geon.sum)),
    **dict.fromkeys(("mean", "mean.dim"), reduction(geon.mean)),
    **dict.fromkeys(("prod", "prod.dim_int"), reduction(geon.prod)),
    "logsumexp": reduction(geon.logsumexp),
    **dict.fromkeys(("any", "any.dim", "any.dims"), truth(geon.any)),
    **dict.fromkeys(("all", "all.dim", "all.dims"), truth(geon.all)),
    **dict.fromkeys(("amax", "max"), extreme_over(geon.max)),
    **dict.fromkeys(("amin", "min"), extreme_over(geon.min)),
    "var.correction": lambda x, dims=None, *, correction=None, keepdim=False: variance(
        x, dims, correction, keepdim
    ),
    "var_mean.correction": lambda x, dims=None, *, correction=None, keepdim=False: (
        variance(x, dims, correction, keepdim),
        reduce(geon.mean, x, positions(dims, len(x.shape)), keepdim),
    ),
    "var.dim": lambda x, dims=None, unbiased=True, keepdim=False: variance(
        x, dims, int(unbiased), keepdim
    ),
    "argmax": argument_along(geon.argmax),
    "argmin": argument_along(geon.argmin),
    "_softmax": softmax_along(geon.softmax),
    "_log_softmax": softmax_along(geon.log_softmax),
}
