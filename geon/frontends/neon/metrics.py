"""Metrics of a data set, computed from a network's results for each example.

``each`` returns tensors for a batch, and ``value`` a number from the concatenated arrays of all
batches; so batches may have any lengths. A class number out of range raises ``IndexRangeError``
when it is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError
from ...op_graph.building.constants import as_tensor
from ...op_graph.functions.composites import softmax
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.elementwise import equal
from ...op_graph.rows.movement import broadcast
from ...op_graph.rows.reductions import any, argmax
from ...op_graph.rows.sort_and_cumulative import top_k
from .checks import at_least_one
from .classes import a_class, check_class_numbers, class_axis
from .costs import cross_entropy

if TYPE_CHECKING:
    from ...op_graph.building.typing import AxisLike

Array = np.ndarray


class Metric:
    """Base class of metrics of results and targets.

    ``name`` is its name in reports.
    """

    name: str

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """Tensors that are needed of a batch, over the same axes in the same order."""
        raise NotImplementedError

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The metric, from the flat arrays of ``each`` for all batches."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Mean(Metric):
    """The mean of a cost, such as ``neon.squared_error``."""

    cost: Callable[[Tensor, Tensor], Tensor]
    name: str = "cost"

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """The cost of each example."""
        return [self.cost(y, t)]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The mean; NaN without examples."""
        (costs,) = arrays
        return float(np.mean(costs, dtype=np.float64)) if costs.size else float("nan")


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of examples whose highest score is that of the right class."""

    over: AxisLike | None = None
    name: str = "accuracy"

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """True for each example that is right."""
        axis = class_axis(y, self.over, self.name)
        return [equal(argmax(y, axis), check_class_numbers(y, t, axis, self.name))]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The share."""
        return _share(*arrays)


@dataclass(frozen=True)
class TopK(Metric):
    """The share of examples whose right class is among the ``k`` highest scores."""

    k: int
    over: AxisLike | None = None
    name: str = "top_k"

    def __post_init__(self) -> None:
        at_least_one("TopK", "k", self.k)

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """True for each example whose class is among them."""
        axis = class_axis(y, self.over, self.name)
        _, best = top_k(y, self.k, axis)
        return [any(equal(best, check_class_numbers(y, t, axis, self.name)), axis.name)]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The share."""
        return _share(*arrays)


@dataclass(frozen=True)
class F1(Metric):
    """2 tp / (2 tp + fp + fn), from true positives, false positives and false negatives of a class.

    ``average`` is "macro", the mean over the classes that occur, or "micro", that of the sums over
    classes. With ``positive``, it is that of this class.
    """

    average: str = "macro"
    positive: int | None = None
    over: AxisLike | None = None
    name: str = "F1"

    def __post_init__(self) -> None:
        if self.average not in ("macro", "micro"):
            raise ArgumentError(
                f"F1: there is no average={self.average!r}; give 'macro' or 'micro'"
            )

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """The class of the highest score, and the right one."""
        axis = class_axis(y, self.over, self.name)
        a_class(self.name, "positive", self.positive, axis)
        return [broadcast(argmax(y, axis), t.axes), check_class_numbers(y, t, axis, self.name)]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The F1 score; NaN if no class occurs."""
        said, right = arrays
        classes = [self.positive] if self.positive is not None else np.union1d(said, right)
        counts = np.array(
            [
                (np.sum((said == c) & (right == c)), np.sum(said == c) + np.sum(right == c))
                for c in classes
            ],
            np.float64,
        ).reshape(-1, 2)
        if self.average == "micro" and self.positive is None:
            counts = counts.sum(axis=0, keepdims=True)
        with np.errstate(invalid="ignore"):
            scores = 2 * counts[:, 0] / counts[:, 1]
        return float(scores.mean()) if len(scores) else float("nan")


@dataclass(frozen=True)
class Perplexity(Metric):
    """e to the power of the mean cross entropy."""

    over: AxisLike | None = None
    name: str = "perplexity"

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """The cross entropy of each example."""
        return [cross_entropy(y, t, self.over)]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The perplexity; NaN without examples."""
        (nats,) = arrays
        return float(np.exp(np.mean(nats, dtype=np.float64))) if nats.size else float("nan")


@dataclass(frozen=True)
class RocArea(Metric):
    """The probability that a positive example scores higher than a negative one (AUC).

    Ties count half. It is the area under the ROC curve, NaN if a score is NaN. With ``positive``,
    results are scores of classes and the probability of this one is used; else there is a score for
    each example, whose target is 1 or 0: others raise ``ArgumentError``.
    """

    positive: int | None = None
    over: AxisLike | None = None
    name: str = "ROC area"

    def each(self, y: Tensor, t: Tensor) -> list[Tensor]:
        """The score of each example, and whether it is positive."""
        if self.positive is None:
            return [broadcast(y, t.axes), t]
        axis = class_axis(y, self.over, self.name)
        a_class(self.name, "positive", self.positive, axis)
        score = softmax(y, axis)[{axis: self.positive}]
        right = check_class_numbers(y, t, axis, self.name)
        return [broadcast(score, t.axes), equal(right, as_tensor(self.positive))]

    def value(self, *arrays: Array[Any, Any]) -> float:
        """The area; NaN if there are no positive or no negative examples."""
        scores, targets = arrays
        positive = targets.astype(bool)
        others = targets[positive != targets]
        if others.size:
            raise ArgumentError(
                f"{self.name}: the target {others[0]} is neither 1 nor 0; give one of these for "
                "each score, or positive= with scores of classes"
            )
        if np.isnan(scores).any():
            return float("nan")  # NaN cannot be ranked
        ups, downs = int(positive.sum()), int((~positive).sum())
        if not ups or not downs:
            return float("nan")
        values, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
        ranks = np.cumsum(counts) - (counts - 1) / 2  # mean rank of ties
        above = ranks[place.reshape(-1)][positive].sum() - ups * (ups + 1) / 2
        return float(above / (ups * downs))


def _share(*arrays: Array[Any, Any]) -> float:
    """Return the share of True; NaN without elements."""
    (right,) = arrays
    return float(right.mean()) if right.size else float("nan")
