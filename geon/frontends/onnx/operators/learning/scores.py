"""Scores of classifiers: their transforms, and the labels of the largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError
from ....positional.elementwise import elementwise
from ....positional.indexing import gather
from ....positional.movement import concat
from ....positional.reductions import along, reduce
from ....positional.reshaping import squeeze
from ....positional.values import Value, as_array, host, known

NEAR_ZERO = 1e-7  # scores below count as 0 for SOFTMAX_ZERO


def _softmax_zero(x: geon.Tensor, axes: Any) -> geon.Tensor:
    """Return a softmax of the scores that are not 0; the others stay near 0."""
    most = geon.max(x, axes)
    powers = geon.where(geon.absolute(x) > NEAR_ZERO, geon.exp(x - most), x * geon.exp(-most))
    return powers / geon.sum(powers, axes)


def _probit(x: geon.Tensor, axes: Any) -> geon.Tensor:
    del axes
    return math.sqrt(2.0) * geon.erfinv(2 * x - 1)


TRANSFORMS: dict[str, Callable[[geon.Tensor, Any], geon.Tensor]] = {
    "NONE": lambda x, axes: x,
    "SOFTMAX": geon.softmax,
    "LOGISTIC": lambda x, axes: geon.sigmoid(x),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def transformed(scores: Value, name: str) -> Value:
    """Return scores (N, class) after a transform by name."""
    if name not in TRANSFORMS:
        raise ArgumentError(f"post_transform is {name!r}, not one of {', '.join(TRANSFORMS)}")
    return scores if name == "NONE" else along(TRANSFORMS[name], scores, [len(scores.shape) - 1])


def classified(
    scores: Value, labels: Sequence[Any], transform: str, positive: bool
) -> tuple[Value, Value]:
    """Return the labels of the largest scores (N, class), and the transformed scores.

    One score for two labels is that of the second: a probability if no weight is negative
    (``positive``), else a margin around 0.
    """
    if len(labels) == 2 and scores.shape[-1] == 1:
        limit = 0.5 if positive else 0.0
        above = elementwise(lambda s: geon.cast(s > limit, "int64"), scores)
        number: Value = squeeze(above, [1])
        one = 1 if positive and transform != "LOGISTIC" else 0
        scores = concat([elementwise(lambda s: one - s, scores), scores], 1)
    else:
        number = reduce(geon.argmax, scores, [1], keep=False)
    return labelled(number, labels), transformed(scores, transform)


def labelled(number: Value, labels: Sequence[Any]) -> Value:
    """Return the labels of indices; texts only for indices that are known."""
    if labels and isinstance(labels[0], str):
        found = known(number, "the index of a label that is a text")
        return host(np.array(labels, object)[found.astype(np.int64)])
    if list(labels) == list(range(len(labels))):
        return number
    return gather(host(np.array(labels), "int64"), as_array(number), 0)
