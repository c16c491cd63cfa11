"""Operators that reduce positions, or combine elements along them."""

from __future__ import annotations

import functools
from typing import Any

import geon

from ...positional.elementwise import elementwise
from ...positional.functions import argument, extreme, order_along, running, top_k
from ...positional.movement import with_axis
from ...positional.programs import cast
from ...positional.reductions import along, along_axis, reduce
from ...positional.reshaping import flatten_to, reshape
from ...positional.values import Value, array, as_array, position
from .rows import FLOAT, INT, Function, Row, settings_of, with_attributes


def reduction(f: Function) -> Function:
    """Return the function of an operator that reduces some positions by ``f(tensor, axes)``."""

    def build(x: Value, *, dim: Any, keep_dim: bool, reduce_all: bool, **settings: Any) -> Value:
        at = None if reduce_all else dim
        if f in (geon.max, geon.min):
            return extreme(f, x, at, keep_dim)
        return reduce(functools.partial(f, **settings), x, at, keep_dim)

    return with_attributes(
        build, {"dim": (0,), "keep_dim": False, "reduce_all": False}, settings_of(f)
    )


def whole(f: Function, x: Value) -> Value:
    """Return ``f``, such as ``geon.sum``, over all elements, with shape (1,)."""
    return reshape(reduce(f, x, range(len(x.shape)), False), [1])


def along_position(f: Function) -> Function:
    """Return the function of an operator for ``f(tensor, axis)``, which keeps the axis."""

    def build(x: Value, *, axis: int, **settings: Any) -> Value:
        return running(f, x, axis, **settings)

    return with_attributes(build, {"axis": -1}, settings_of(f))


def of_pairs(f: Function, **required: Any) -> Function:
    """Return the function of an operator for the two results of ``f(tensor, ..., axis=axis)``."""

    def build(x: Value, *, axis: int, keep_dim: bool, **settings: Any) -> Any:
        at = position(axis, len(x.shape))
        given = with_axis(as_array(x), at)
        found = f(given.tensor, **settings, axis=given.dims[at])
        rest = [None if k == at else d for k, d in enumerate(given.dims) if keep_dim or k != at]
        return tuple([array(each, rest) for each in found])

    return with_attributes(build, {**required, "axis": -1, "keep_dim": False})


def normalised(f: Function) -> Function:
    """Return the function of an operator such as softmax, along a position."""
    return lambda x, *, axis=-1: along(f, x, axis)


def extreme_index(f: Function) -> Function:
    """Return the function of an operator for the index of the largest or smallest element."""
    return lambda x, *, axis=-1, keep_dim=False: argument(f, x, axis, keep_dim)


def argsort(x: Value, *, axis: int = -1) -> tuple[Value, Value]:
    """Return sorted elements, and the indices that sort, along a position."""
    at = position(axis, len(x.shape))
    return along_axis(geon.sort, x, at), order_along(x, at)


def accuracy(out: Value, indices: Value, label: Value) -> tuple[Value, ...]:
    """Return the share of rows with the label among the indices, their number, and all rows'."""
    equal = elementwise(geon.equal, cast(indices, "int64"), cast(label, "int64"))
    hit = cast(reduce(geon.any, equal, [1], False), "float32")
    counts = whole(geon.sum, hit), whole(geon.sum, elementwise(lambda t: t * 0 + 1, hit))
    return elementwise(geon.divide, *counts), *[cast(each, "int32") for each in counts]


def l2_normalize(x: Value, *, axis: int = -1, epsilon: float = 1e-10) -> tuple[Value, Value]:
    """Return x divided by its norm along a position, and the norm."""
    squares = reduce(geon.sum, elementwise(geon.square, x), axis)
    norm = elementwise(lambda s: geon.sqrt(s + epsilon), squares)
    return elementwise(geon.divide, x, norm), norm


def in_rows(x: Value) -> Value:
    """Return sums over all positions but the first, (N, 1)."""
    return reduce(geon.sum, flatten_to(x, 1, len(x.shape)), [1])


def cos_sim(x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Return the cosines of rows of X and Y, (N, 1), and the norms of both."""
    norms = [elementwise(geon.sqrt, in_rows(elementwise(geon.square, each))) for each in (x, y)]
    size = elementwise(geon.multiply, *norms)
    dots = in_rows(elementwise(geon.multiply, x, y))
    return elementwise(geon.divide, dots, size), norms[0], norms[1]


def squared_l2_distance(x: Value, y: Value) -> tuple[Value, Value]:
    """Return X - Y, and the sums of its squares over each row, (N, 1)."""
    rest = elementwise(geon.subtract, x, y)
    return rest, in_rows(elementwise(geon.square, rest))


REDUCTIONS: dict[str, Function] = {
    "reduce_sum": geon.sum, "reduce_mean": geon.mean, "reduce_max": geon.max,
    "reduce_min": geon.min, "reduce_prod": geon.prod, "logsumexp": geon.logsumexp,
    "reduce_var": geon.variance, "reduce_std": geon.std, "frobenius_norm": geon.L2_norm,
    "reduce_squared_l2": geon.squared_L2, "reduce_median": geon.median,
    "reduce_nanmean": geon.nanmean, "reduce_nansum": geon.nansum,
    "reduce_nanmedian": geon.nanmedian,
    "reduce_all": geon.all, "reduce_any": geon.any, "count_nonzero": geon.count_nonzero,
}  # fmt: skip
RUNNING: dict[str, Function] = {
    "cumsum": geon.cumsum, "cumprod": geon.cumprod, "cummax": geon.cummax, "cummin": geon.cummin,
    "logcumsumexp": geon.logcumsumexp, "argcummax": geon.argcummax, "argcummin": geon.argcummin,
    "diff": geon.diff, "cumulative_trapezoid": geon.cumulative_trapezoid,
}  # fmt: skip
TESTS = {"reduce_all", "reduce_any", "count_nonzero"}
ROWS = [
    *[Row(name, reduction(f), f"Return {f.__name__} over positions.", gradient=name not in TESTS)
        for name, f in REDUCTIONS.items()],
    *[Row(name, along_position(f), f"Return {name} along a position.",
          gradient=not name.startswith("arg")) for name, f in RUNNING.items()],
    *[Row(f"reduce_{f.__name__}", with_attributes(reduction(
          lambda t, axes, *, q, method, f=f: f(t, q, axes, method=method)), reduction(f),
          {"q": FLOAT}), f"Return the {f.__name__} q over positions; method says how elements are "
          "interpolated.") for f in (geon.quantile, geon.nanquantile)],
    Row("kthvalue", of_pairs(geon.kthvalue, k=INT),
        "Return the k-th smallest elements along a position, and their indices.", "X",
        "Out Indices"),
    Row("mode", of_pairs(geon.mode), "Return the most frequent elements along a position, and the "
        "index of one of them.", "X", "Out Indices"),
    Row("softmax", normalised(geon.softmax), "Return the softmax along a position."),
    Row("log_softmax", normalised(geon.log_softmax), "Return the logarithm of the softmax."),
    *[Row(name, extreme_index(f), f"Return {f.__name__} along a position.", gradient=False)
        for name, f in {"arg_max": geon.argmax, "arg_min": geon.argmin}.items()],
    Row("mean", lambda x: whole(geon.mean, x), "Return the mean of all elements, shape (1,)."),
    Row("argsort", argsort, "", "X", "Out Indices"),
    Row("top_k", lambda x, *, k=1: top_k(x, k, len(x.shape) - 1),
        "Return the k largest elements of the last position, and their indices.", "X@1+",
        "Out Indices"),
    Row("accuracy", accuracy, "", "Out Indices@2 Label@2", "Accuracy Correct Total",
        gradient=False),
    Row("norm", l2_normalize, "", "X", "Out Norm"),
    Row("squared_l2_norm", lambda x: whole(geon.squared_L2, x), "Return the sum of squares, (1,)."),
    Row("l1_norm", lambda x: whole(geon.sum, elementwise(abs, x)), "Return the sum of |x|, (1,)."),
    Row("cos_sim", cos_sim, "", "X@1+ Y@1+", "Out XNorm YNorm"),
    Row("squared_l2_distance", squared_l2_distance, "", "X@1+ Y@1+", "sub_result Out"),
]  # fmt: skip
