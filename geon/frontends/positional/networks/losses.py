"""Reductions over dimensions, losses of each row of a batch, and histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon

from ....errors import ArgumentError, AxisError
from ..functions import argument
from ..indexing import gather
from ..picking import numbers
from ..programs import cast
from ..reductions import along, reduce
from ..reshaping import reshape, unsqueeze
from ..values import Value, array, as_array
from .common import INDEX, constant, ew, rows_sum


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the function of a reduction, which keeps dimensions of length 1."""
    return lambda x, *, axes=None: reduce(f, x, axes)


def has_nan(t: geon.Tensor, axes: Any) -> geon.Tensor:
    return geon.cast(geon.any(geon.isnan(t), axes), INDEX)


def place(f: Callable[..., Any]) -> Callable[..., Value]:
    return lambda x, *, axis=-1: cast(argument(f, x, axis, True), INDEX)


def targets(label: Value, like: Value, trim0: float, trim1: float) -> Value:
    """Return the wanted probabilities (N, C): labels that are numbers of classes, or themselves.

    The class of a number gets ``trim1`` and the others ``trim0``.
    """
    if len(like.shape) != 2:
        raise AxisError(f"{like} has no rows of classes; give shape (rows, classes)")
    if label.dtype.kind == "f" and tuple(label.shape) == tuple(like.shape):
        return cast(label, like.dtype)
    n, classes = like.shape
    number = cast(reshape(label, [n, 1]), "int64")
    chosen = ew(geon.equal, number, numbers(classes, 2, 1))
    yes, no = constant(trim1, like.dtype), constant(trim0, like.dtype)
    return ew(geon.where, chosen, yes, no)


def categorical_crossentropy(
    a: Value, label: Value, *, trim0: float = 0.0, trim1: float = 1.0
) -> Value:
    """Return ``-sum(target * log(a))`` of rows of probabilities."""
    wanted = targets(label, a, trim0, trim1)
    return rows_sum(ew(lambda t, p: geon.where(geon.equal(t, 0), 0, -t * geon.log(p)), wanted, a))


def softmax_crossentropy(
    a: Value, label: Value, *, trim0: float = 0.0, trim1: float = 1.0
) -> tuple[Value, Value]:
    """Return the cross entropy of the softmax of rows, and the softmax."""
    wanted = targets(label, a, trim0, trim1)
    logs = along(lambda t, axes: geon.log_softmax(t, axes) if axes else t * 0, a, [1])
    loss = rows_sum(ew(lambda t, s: geon.where(geon.equal(t, 0), 0, -t * s), wanted, logs))
    return loss, ew(geon.exp, logs)


def _entropy(a: geon.Tensor, y: geon.Tensor, weight: float) -> geon.Tensor:
    return -(weight * y * geon.log(a) + (1 - y) * geon.log1p(-a))


def _logits_entropy(z: geon.Tensor, y: geon.Tensor, weight: float) -> geon.Tensor:
    return (1 - y) * geon.softplus(z) + weight * y * geon.softplus(-z)


def binary_crossentropy(a: Value, label: Value, *, pos_weight: float = 1.0) -> Value:
    """Return ``-sum(pos_weight * y * log(a) + (1 - y) * log(1 - a))`` of rows."""
    return rows_sum(ew(lambda p, y: _entropy(p, y, pos_weight), a, cast(label, a.dtype)))


def sigmoid_binary_crossentropy(
    a: Value, label: Value, *, pos_weight: float = 1.0
) -> tuple[Value, Value]:
    """Return the binary cross entropy of the sigmoid of rows, and the sigmoid."""
    losses = ew(lambda z, y: _logits_entropy(z, y, pos_weight), a, cast(label, a.dtype))
    return rows_sum(losses), ew(geon.sigmoid, a)


def _huber(d: geon.Tensor, beta: float) -> geon.Tensor:
    size = geon.absolute(d)
    return geon.where(size < beta, geon.square(d) * (0.5 / beta), size - 0.5 * beta)


def smooth_l1(a: Value, b: Value, *, beta: float = 1.0, reduce: str = "sum") -> Value:
    """Return ``d^2 / (2 beta)`` where ``d = |a - b| < beta``, else ``d - beta / 2``, by row."""
    return rows_sum(ew(lambda s, t: _huber(s - t, beta), a, b), reduce)


def mse(a: Value, b: Value, *, reduce: str = "mean") -> Value:
    """Return the mean, or the sum, of squared differences of rows."""
    return rows_sum(ew(lambda s, t: geon.square(s - t), a, b), reduce)


def index_rows(a: Value, index: Value) -> Value:
    """Return the elements of the first dimension at the positions ``index``."""
    return gather(a, cast(index, "int64"), 0)


def masked_fill(a: Value, mask: Value, *, eq: float = 0, fill: float = 0.0) -> Value:
    """Return ``a`` with ``fill`` where ``mask`` equals ``eq``."""
    wide = mask if len(mask.shape) >= len(a.shape) else unsqueeze(
        mask, range(len(a.shape) - len(mask.shape))
    )  # fmt: skip
    return ew(
        lambda t, m: geon.where(geon.equal(m, eq), geon.constant(fill, dtype=t.dtype), t), a, wide
    )


def histogram(
    x: Value, *, bins: int = 10, min: float = 0.0, max: float = 1.0, edges: Any = None
) -> tuple[Value, Value]:
    """Return counts below, in each part, and above; and least, largest, sum and sum of squares.

    Parts are equally wide from ``min`` to ``max``, or between the ascending ``edges``. Each has its
    lower edge; the last one does not have its upper edge.
    """
    if bins < 1:
        raise ArgumentError(f"bins={bins}; give an integer of at least 1")
    bounds = list(edges) if edges is not None else [
        min + (max - min) * k / bins for k in range(bins + 1)
    ]  # fmt: skip
    if sorted(bounds) != bounds or len(bounds) < 2:
        raise ArgumentError(f"the edges {bounds} do not rise; give min < max, or rising edges")
    axis = geon.Axis("bin", len(bounds) + 1)
    given = as_array(x).tensor
    edge = geon.constant(bounds, [geon.Axis("edge", len(bounds))], x.dtype)
    place = geon.searchsorted(edge, given, side="right")
    counts = geon.bincount(place, axis) if len(given.axes) else geon.cast(
        geon.equal(geon.iota(axis), place), "int64"
    )  # fmt: skip
    sums = [geon.min(given), geon.max(given), geon.sum(given), geon.sum(geon.square(given))]
    whole = geon.stack([geon.cast(s, "float32") for s in sums], geon.Axis("statistic", 4))
    return cast(array(counts, [axis]), INDEX), array(whole, ["statistic"])
