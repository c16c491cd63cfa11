"""Costs (loss functions) of results and targets, for each example.

Costs of classes take scores before any softmax, so they are accurate for extreme scores, too. Their
targets are class numbers, over the axes of the scores without the class axis, or probabilities over
all of them. The other costs take a target over the axes of the result, and are means over its
features: all axes but N and T. Training minimises the mean of a cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import ArgumentError, AxisError
from ...op_graph.building.constants import as_tensor
from ...op_graph.core.source_info import user_call
from ...op_graph.functions.composites import log_softmax, mean, weighted
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.elementwise import (
    absolute,
    cast,
    expm1,
    isinf,
    maximum,
    power,
    softplus,
    square,
    where,
)
from ...op_graph.rows.reductions import sum
from ...op_graph.values.dtypes import kind
from .axis import T, feature_axes
from .checks import above_zero, finite, not_negative
from .classes import class_axis, hits, numbers
from .ctc import Alignment

if TYPE_CHECKING:
    from ...op_graph.building.typing import AxisLike, TensorLike
    from ...op_graph.values.dtypes import DType


def cross_entropy(
    scores: TensorLike, t: TensorLike, over: AxisLike | None = None, *, smoothing: float = 0.0
) -> Tensor:
    """-log of the probability of the right class, in nats, or its mean under probabilities ``t``.

    The class axis is ``over``, or the only one beside N, T, D, H and W. With ``smoothing``, that
    share of the target is spread over all classes. A class number out of range raises
    ``IndexRangeError`` when it is computed.
    """
    if not finite(smoothing) or not 0 <= smoothing <= 1:
        raise ArgumentError(
            f"{user_call('cross_entropy')}: smoothing={smoothing!r} is a share of the target; give "
            "one from 0 to 1"
        )
    scores, axis = as_tensor(scores), class_axis(as_tensor(scores), over, "cross_entropy")
    logs = log_softmax(scores, axis)
    t = as_tensor(t, near=scores)
    if numbers(t, axis):
        right = sum(where(hits(scores, t, axis, "cross_entropy"), logs, 0), axis)
    else:
        if not scores.axes.same_set(t.axes):
            rest = scores.axes.without([axis])
            raise AxisError(
                f"{user_call('cross_entropy')}: the target {t} (made at {t.line_info}) of dtype "
                f"{t.dtype.name} fits the scores {scores} (made at {scores.line_info}) neither as "
                f"class numbers, which are integers over {rest}, nor as probabilities over "
                f"{scores.axes}; give a target over one of these"
            )
        right = sum(weighted(t, logs), axis)
    if smoothing:
        right = weighted(1 - smoothing, right) + smoothing * mean(logs, axis)
    return 0 - right  # never returns -0.0


def binary_cross_entropy(scores: TensorLike, t: TensorLike) -> Tensor:
    """-log of the probability of each truth value, in nats; t are 0 and 1 or probabilities."""
    x, t = _pair(scores, t, "binary_cross_entropy")
    return _each(weighted(t, softplus(-x)) + weighted(1 - t, softplus(x)))


def squared_error(y: TensorLike, t: TensorLike) -> Tensor:
    """The square of the difference."""
    y, t = _pair(y, t, "squared_error")
    return _each(square(y - t))


def absolute_error(y: TensorLike, t: TensorLike) -> Tensor:
    """The absolute difference."""
    y, t = _pair(y, t, "absolute_error")
    return _each(absolute(y - t))


def huber(y: TensorLike, t: TensorLike, delta: float = 1.0) -> Tensor:
    """Half the square of the difference d; delta (|d| - delta / 2) if |d| is more than delta.

    P. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics, 1964.
    """
    above_zero("huber", "delta", delta)
    y, t = _pair(y, t, "huber")
    far = absolute(y - t)
    near = far <= delta
    # Without the inner where, the gradient for an infinite distance would be 0 times an infinity.
    return _each(where(near, square(where(near, far, 0)) / 2, delta * (far - delta / 2)))


def hinge(
    scores: TensorLike, t: TensorLike, over: AxisLike | None = None, *, margin: float = 1.0
) -> Tensor:
    """Sum over other classes of max(0, score - right score + ``margin``).

    ``t`` are class numbers; ``over`` is as in ``cross_entropy``.
    """
    scores = as_tensor(scores)
    axis = class_axis(scores, over, "hinge")
    hit = hits(scores, as_tensor(t), axis, "hinge")
    right = sum(where(hit, scores, 0), axis)
    return sum(where(hit, 0, maximum(scores - right + margin, 0)), axis)


def binary_hinge(scores: TensorLike, t: TensorLike, *, margin: float = 1.0) -> Tensor:
    """max(0, ``margin`` - score * target), for targets 1 or -1."""
    x, t = _pair(scores, t, "binary_hinge")
    return _each(maximum(margin - x * t, 0))


def focal(
    scores: TensorLike, t: TensorLike, over: AxisLike | None = None, *, gamma: float = 2.0
) -> Tensor:
    """The cross entropy times (1 - p) ** gamma, where p is the probability of the right class.

    ``t`` are class numbers; ``over`` is as in ``cross_entropy``. T.-Y. Lin, P. Goyal, R. Girshick,
    K. He and P. Dollár, "Focal loss for dense object detection", ICCV 2017.
    """
    not_negative("focal", "gamma", gamma)
    scores = as_tensor(scores)
    axis = class_axis(scores, over, "focal")
    hit = hits(scores, as_tensor(t), axis, "focal")
    right = sum(where(hit, log_softmax(scores, axis), 0), axis)
    # For gamma below 1, the power's derivative at 0 is infinite; at the smallest normal number it
    # is finite, and times 0 it is 0.
    others = maximum(-expm1(right), smallest_normal(right.dtype))
    # The derivative of this factor vanishes if the logarithm is infinite.
    others = where(isinf(right), 1, others)
    return 0 - power(others, gamma) * right  # never returns -0.0


def ctc(
    scores: TensorLike,
    labels: TensorLike,
    lengths: TensorLike | None = None,
    label_lengths: TensorLike | None = None,
    over: AxisLike | None = None,
    *,
    along: AxisLike = T,
    blank: int = 0,
) -> Tensor:
    """-log of the probability of a label sequence, summed over all alignments in time (CTC).

    At each time along ``along``, one class is emitted. An alignment yields the labels if repeated
    classes are merged and ``blank`` is then removed. ``labels`` are class numbers over the axes of
    the batch and one of their own. ``lengths`` and ``label_lengths``, integers over the batch, are
    the numbers of valid times and labels; by default, all are valid. ``over`` is as in
    ``cross_entropy``. If no alignment yields the labels, because there are too few times or a label
    is ``blank``, or if a length is out of range, the cost is infinite and its derivative 0. A class
    number out of range raises ``IndexRangeError`` when it is computed.

    A. Graves, S. Fernández, F. Gomez and J. Schmidhuber, "Connectionist temporal classification",
    ICML 2006.
    """
    scores = as_tensor(scores)
    return Alignment(scores, as_tensor(labels), over, along, blank).cost(
        *[None if count is None else as_tensor(count) for count in (lengths, label_lengths)]
    )


def smallest_normal(dtype: DType) -> float:
    """Return the smallest normal number of a float dtype."""
    return float(np.finfo(dtype).tiny) if dtype.kind == "f" else 2.0**-126  # bfloat16


def _pair(y: TensorLike, t: TensorLike, what: str) -> tuple[Tensor, Tensor]:
    """Return a result and its target as floats; raise unless they have the same axes."""
    y = as_tensor(y)
    t = as_tensor(t, near=y)
    y, t = (x if kind(x.dtype) == "f" else cast(x, "float32") for x in (y, t))
    _same_axes(y, t, what)
    return y, t


def _same_axes(y: Tensor, t: Tensor, what: str) -> None:
    if not y.axes.same_set(t.axes):
        raise AxisError(
            f"{user_call(what)}: the result {y} (made at {y.line_info}) and the target {t} (made "
            f"at {t.line_info}) have other axes; give a target over {y.axes}"
        )


def _each(cost: Tensor) -> Tensor:
    """Return the mean over the features."""
    return mean(cost, feature_axes(cost.axes))
