"""Operators for losses: of indices, of distributions, of numbers, and of ranks."""

from __future__ import annotations

import numpy as np

import geon

from ...positional.elementwise import elementwise
from ...positional.indexing import gather_elements
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.values import Value, as_array, host
from .elementwise import of_elements
from .rows import Function, Row

Tensor = geon.Tensor


def _picked(logs: Value, label: Value, soft_label: bool, ignore_index: int) -> Value:
    """Return minus the logarithm of each row at its label, (N, 1)."""
    last = len(logs.shape) - 1
    if soft_label:
        products = elementwise(lambda t, p: -t * p, logs, label)
        return reduce(geon.sum, products, [last])
    index = cast(label, "int64")
    is_known = elementwise(lambda i: geon.not_equal(i, ignore_index), index)
    inside = elementwise(lambda k, i: geon.where(k, i, 0), is_known, index)
    found = gather_elements(logs, inside, last)
    return elementwise(lambda k, t: geon.where(k, -t, 0), is_known, found)


def cross_entropy(
    x: Value, label: Value, *, soft_label: bool = False, ignore_index: int = -100
) -> Value:
    """Return the cross-entropy of rows of probabilities, (N, 1), for indices or distributions."""
    return _picked(elementwise(geon.log, x), label, soft_label, ignore_index)


def softmax_with_cross_entropy(
    logits: Value, label: Value, *, soft_label: bool = False, ignore_index: int = -100
) -> tuple[Value, Value]:
    """Return the softmax of rows, and its cross-entropy, (N, 1)."""
    at = [len(logits.shape) - 1]
    logs = along(geon.log_softmax, logits, at)
    return along(geon.softmax, logits, at), _picked(logs, label, soft_label, ignore_index)


def huber(r: Tensor, delta: float) -> Tensor:
    """Return r² / 2 where r is at most delta, else a line of the slope delta."""
    size = abs(r)
    return geon.where(size <= delta, 0.5 * geon.square(r), delta * (size - 0.5 * delta))


def smooth_l1_loss(x: Value, y: Value, *, sigma: float = 1.0) -> tuple[Value, Value]:
    """Return X - Y, and the sums of its smooth absolute values over rows, (N, 1)."""
    rest = elementwise(geon.subtract, x, y)
    parts = elementwise(lambda r: huber(r, 1 / sigma**2) * sigma**2, rest)
    return rest, reduce(geon.sum, parts, range(1, len(x.shape)))


def huber_loss(x: Value, y: Value, *, delta: float = 1.0) -> tuple[Value, Value]:
    """Return Y - X, and its Huber loss: squares up to delta, then a line."""
    rest = elementwise(geon.subtract, y, x)
    return rest, elementwise(lambda r: huber(r, delta), rest)


def kldiv_loss(x: Value, target: Value, *, reduction: str = "mean") -> Value:
    """Return target (log(target) - x), its mean, sum, or mean of rows (batchmean)."""
    parts = elementwise(lambda t, p: geon.xlogy(p, p) - p * t, x, target)
    if reduction == "none":
        return parts
    total = reduce(
        geon.mean if reduction == "mean" else geon.sum, parts, range(len(x.shape)), False
    )
    count = as_array(host(x.shape[0] if reduction == "batchmean" else 1, "int64"))
    return elementwise(lambda t, n: t / geon.cast(n, t.dtype), total, count)


def label_smooth(x: Value, prior: Value | None, *, epsilon: float = 0.0) -> Value:
    """Return (1 - epsilon) x + epsilon prior; the prior is uniform over classes by default."""
    given = host(np.asarray(1 / int(x.shape[-1]), x.dtype)) if prior is None else prior
    return elementwise(lambda t, p: (1 - epsilon) * t + epsilon * p, x, given)


def modified_huber(x: Tensor, y: Tensor) -> Tensor:
    """Return max(0, 1 - m)² for margins m = x (2 y - 1) from -1 on, else -4 m."""
    margin = x * (2 * y - 1)
    return geon.where(margin < -1, -4 * margin, geon.square(geon.relu(1 - margin)))


log, relu = geon.log, geon.relu
# Losses of elements: the function, its formula, and the slots.
ELEMENTS: dict[str, tuple[Function, str, str]] = {
    "square_error_cost": (lambda x, y: geon.square(x - y), "(X - Y)²", "X Y"),
    "sigmoid_cross_entropy_with_logits": (lambda x, y, *, ignore_index=-100: geon.where(
        geon.equal(y, ignore_index), 0, relu(x) - x * y + geon.softplus(-abs(x))),
        "the cross-entropy of sigmoid(X) with labels from 0 to 1", "X Label"),
    "log_loss": (lambda p, y, *, epsilon=1e-4:
        -y * log(p + epsilon) - (1 - y) * log(1 - p + epsilon),
        "-y log(p + epsilon) - (1 - y) log(1 - p + epsilon)", "Predicted Labels"),
    "hinge_loss": (lambda x, y: relu(1 - (2 * y - 1) * x),
        "max(0, 1 - (2 y - 1) x) for labels 0 and 1", "Logits Labels"),
    "modified_huber_loss": (modified_huber,
        "max(0, 1 - m)² for margins m = X (2 Y - 1) from -1 on, else -4 m", "X Y"),
    "rank_loss": (lambda y, a, b: geon.softplus(a - b) - y * (a - b),
        "log(1 + exp(o)) - label o with o = left - right", "Label Left Right"),
    "margin_rank_loss": (lambda y, a, b, *, margin=0.0: relu(margin - y * (a - b)),
        "max(0, margin - label (X1 - X2))", "Label X1 X2"),
}  # fmt: skip
ROWS = [
    Row("cross_entropy", cross_entropy, "", "X@1+ Label@1+", "Y"),
    Row("softmax_with_cross_entropy", softmax_with_cross_entropy, "", "Logits@1+ Label@1+",
        "Softmax~ Loss"),
    *[Row(name, of_elements(f), f"Return {text}.", slots, "Loss" if "Labels" in slots else "Out")
        for name, (f, text, slots) in ELEMENTS.items()],
    Row("huber_loss", huber_loss, "", "X Y", "Residual~ Out"),
    Row("smooth_l1_loss", smooth_l1_loss, "", "X Y", "Diff~ Out"),
    Row("kldiv_loss", kldiv_loss, "", "X Target", "Loss"),
    Row("label_smooth", label_smooth, "", "X@1+ PriorDist?"),
]  # fmt: skip
