"""Reductions over dimensions, and losses of each row of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon

from ....errors import AxisError
from ...positional.functions import argument
from ...positional.indexing import gather
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Value
from .command import CommandRow
from .common import constant, ew, positions, rows_sum

INDEX = "int32"  # the dtype of positions, as in the original


def reduction(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the function of a reduction, which keeps dimensions of length 1."""
    return lambda x, *, axes=None: reduce(f, x, positions(x, axes))


def _has_nan(t: geon.Tensor, axes: Any) -> geon.Tensor:
    return geon.cast(geon.any(geon.isnan(t), axes), INDEX)


def _place(f: Callable[..., Any]) -> Callable[..., Value]:
    return lambda x, *, axis=-1: cast(argument(f, x, positions(x, axis)[0], True), INDEX)


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


LOSS = ("loss", "y")
ROWS = [
    CommandRow("reduce_sum", reduction(geon.sum)),
    CommandRow("reduce_mean", reduction(geon.mean)),
    CommandRow("reduce_max", reduction(geon.max)),
    CommandRow("reduce_min", reduction(geon.min)),
    CommandRow("reduce_norm2", reduction(geon.L2_norm)),
    CommandRow("reduce_isnan", reduction(_has_nan)),
    CommandRow("argmax", _place(geon.argmax)),
    CommandRow("argmin", _place(geon.argmin)),
    CommandRow("binary_crossentropy", binary_crossentropy, ("loss",)),
    CommandRow("categorical_crossentropy", categorical_crossentropy, ("loss",)),
    CommandRow("sigmoid_binary_crossentropy", sigmoid_binary_crossentropy, LOSS),
    CommandRow("softmax_crossentropy", softmax_crossentropy, LOSS),
    CommandRow("mse", mse, ("loss",)),
    CommandRow("smooth_l1", smooth_l1, ("loss",)),
    CommandRow("index_select", index_rows),
    CommandRow("masked_fill", masked_fill),
]
