"""Operators for losses: of indices, of distributions, of numbers, and of ranks."""

from __future__ import annotations

import geon

from ...positional.elementwise import elementwise
from ...positional.indexing import gather_elements
from ...positional.programs import cast
from ...positional.reductions import along, reduce
from ...positional.values import Value
from .rows import Row

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
    """Return r²/2 where \\|r\\| is at most delta, else delta (\\|r\\| - delta/2)."""
    size = geon.absolute(r)
    return geon.where(size <= delta, 0.5 * geon.square(r), delta * (size - 0.5 * delta))


def huber_loss(x: Value, y: Value, *, delta: float = 1.0) -> tuple[Value, Value]:
    """Return Y - X, and its Huber loss: squares up to delta, then a line."""
    rest = elementwise(geon.subtract, y, x)
    return rest, elementwise(lambda r: huber(r, delta), rest)


def smooth_l1_loss(x: Value, y: Value, *, sigma: float = 1.0) -> tuple[Value, Value]:
    """Return X - Y, and the sums of its smooth absolute values over rows, (N, 1)."""
    rest = elementwise(geon.subtract, x, y)
    each = elementwise(lambda r: huber(r, 1 / sigma**2) * sigma**2, rest)
    return rest, reduce(geon.sum, each, range(1, len(x.shape)))


def kldiv_loss(x: Value, target: Value, *, reduction: str = "mean") -> Value:
    """Return target (log(target) - x), its mean, sum, or mean of rows (batchmean)."""
    each = elementwise(
        lambda t, p: geon.where(p > 0, p * (geon.log(geon.where(p > 0, p, 1)) - t), 0), x, target
    )
    whole = range(len(x.shape))
    if reduction == "none":
        return each
    if reduction == "batchmean":
        rows = reduce(geon.sum, each, whole[1:], False)
        return reduce(geon.mean, rows, [0], False)
    return reduce(geon.mean if reduction == "mean" else geon.sum, each, whole, False)


def label_smooth(x: Value, prior: Value | None, *, epsilon: float = 0.0) -> Value:
    """Return (1 - epsilon) x + epsilon prior; the prior is uniform over classes by default."""
    if prior is None:
        share = epsilon / int(x.shape[-1])
        return elementwise(lambda t: (1 - epsilon) * t + share, x)
    return elementwise(lambda t, p: (1 - epsilon) * t + epsilon * p, x, prior)


def modified_huber(x: Tensor, y: Tensor) -> Tensor:
    """Return the modified Huber loss of a margin x (2 y - 1)."""
    margin = x * (2 * y - 1)
    return geon.where(margin < -1, -4 * margin, geon.square(geon.relu(1 - margin)))


def of_logit(x: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy of sigmoid(x) with y."""
    return geon.relu(x) - x * y + geon.softplus(-abs(x))


log = geon.log
ROWS = [
    Row("cross_entropy", cross_entropy, "", "X Label", "Y"),
    Row("softmax_with_cross_entropy", softmax_with_cross_entropy, "", "Logits Label",
        "Softmax~ Loss"),
    Row("sigmoid_cross_entropy_with_logits", lambda x, y, *, ignore_index=-100: elementwise(
        lambda t, p: geon.where(geon.equal(p, ignore_index), 0, of_logit(t, p)), x, y),
        "Return the cross-entropy of sigmoid(X) with labels from 0 to 1.", "X Label"),
    Row("square_error_cost", lambda x, y: elementwise(lambda a, b: geon.square(a - b), x, y),
        "Return (X - Y)².", "X Y"),
    Row("huber_loss", huber_loss, "", "X Y", "Residual~ Out"),
    Row("smooth_l1_loss", smooth_l1_loss, "", "X Y", "Diff~ Out"),
    Row("log_loss", lambda x, y, *, epsilon=1e-4: elementwise(
        lambda p, q: -q * log(p + epsilon) - (1 - q) * log(1 - p + epsilon), x, y),
        "Return -y log(p + epsilon) - (1 - y) log(1 - p + epsilon).", "Predicted Labels", "Loss"),
    Row("hinge_loss", lambda x, y: elementwise(lambda t, k: geon.relu(1 - (2 * k - 1) * t), x, y),
        "Return max(0, 1 - (2 y - 1) x) for labels 0 and 1.", "Logits Labels", "Loss"),
    Row("modified_huber_loss", lambda x, y: elementwise(modified_huber, x, y),
        "Return max(0, 1 - m)² for margins m = X (2 Y - 1) from -1 on, else -4 m.", "X Y"),
    Row("rank_loss", lambda y, a, b: elementwise(
        lambda y, a, b: geon.softplus(a - b) - y * (a - b), y, a, b),
        "Return log(1 + exp(o)) - label o with o = left - right.", "Label Left Right"),
    Row("margin_rank_loss", lambda y, a, b, *, margin=0.0: elementwise(
        lambda y, a, b: geon.relu(margin - y * (a - b)), y, a, b),
        "Return max(0, margin - label (X1 - X2)).", "Label X1 X2"),
    Row("kldiv_loss", kldiv_loss, "", "X Target", "Loss"),
    Row("label_smooth", label_smooth, "", "X PriorDist?"),
]  # fmt: skip
