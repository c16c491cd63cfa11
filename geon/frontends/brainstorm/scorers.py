"""Scorers: measures of predictions on data, summed over batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .describable import Describable, Members, described
from .errors import IteratorValidationError
from .utils import Array, flatten_all_but_last

__all__ = ["Accuracy", "Hamming", "MeanSquaredError", "Scorer"]

Scores = dict[str, list[tuple[float, float]]]  # by name, for each batch a weight and a value


@described
class Scorer(Describable):
    """Base of scorers; a subclass defines ``__call__``.

    ``out_name`` is the dotted path of the predictions, by default that of ``evaluate`` or
    ``net.output_name``; ``targets_name`` and ``mask_name`` are names of inputs. The score has the
    name of the class unless ``name`` is given.
    """

    __undescribed__: ClassVar[Members] = {"__name__"}

    out_name: str = ""
    targets_name: str = "targets"
    mask_name: str = ""
    name: str | None = None

    def __complete__(self) -> None:
        self.__name__ = self.name or type(self).__name__

    def __call__(self, true_labels: Array, predicted: Array, mask: Array | None = None) -> float:
        """Return the sum of scores over the rows of a batch.

        All are matrices; each row is one time step of one sequence. The mask has one column.
        """
        raise NotImplementedError

    @staticmethod
    def aggregate(errors: Sequence[tuple[float, float]]) -> float:
        """Return the sum of the values of all batches divided by the sum of their weights.

        The weight of a batch is its number of rows, or the sum of its mask.
        """
        weights, values = _columns(errors)
        return float(values.sum() / weights.sum())


class Accuracy(Scorer):
    """The share of rows whose largest prediction is at the index that the target names.

    A single prediction for each row is rounded and compared with the target itself.
    """

    def __call__(self, true_labels: Array, predicted: Array, mask: Array | None = None) -> float:
        several = predicted.shape[1] > 1
        labels = predicted.argmax(1)[:, None] if several else np.round(predicted)
        return _masked_sum(labels == true_labels, mask)


@described
class Hamming(Scorer):
    """The share of labels that are right, of several yes-or-no labels for each row.

    A label is predicted if its prediction is at least ``threshold``.
    """

    threshold: float = 0.5

    def __call__(self, true_labels: Array, predicted: Array, mask: Array | None = None) -> float:
        right = (predicted >= self.threshold) == (true_labels != 0)
        return _masked_sum(right, mask) / true_labels.shape[1]


class MeanSquaredError(Scorer):
    """Half of the squared error, summed over features: the mean over rows."""

    def __call__(self, true_labels: Array, predicted: Array, mask: Array | None = None) -> float:
        return 0.5 * _masked_sum((true_labels - predicted) ** 2, mask)


def gather_losses_and_scores(
    net: Any,
    scorers: Sequence[Scorer],
    scores: Scores,
    out_name: str = "",
    targets_name: str = "targets",
    mask_name: str | None = "",
) -> None:
    """Append the losses and scores of the current batch of a network to lists by name."""
    for name, loss in net.get_loss_values().items():
        scores[name].append((net.batch_size, float(loss)))
    for scorer in scorers:
        mask_of = scorer.mask_name or mask_name
        predicted = net.get(scorer.out_name or out_name or net.output_name)
        predicted = flatten_all_but_last(predicted[: net.time_size])
        targets = flatten_all_but_last(net.get_input(scorer.targets_name or targets_name))
        mask = flatten_all_but_last(net.get_input(mask_of)) if mask_of else None
        weight = predicted.shape[0] if mask is None else float(mask.sum())
        scores[scorer.__name__].append((weight, scorer(targets, predicted, mask)))


def aggregate_losses_and_scores(
    scores: Mapping[str, Sequence[tuple[float, float]]], net: Any, scorers: Sequence[Scorer]
) -> dict[str, float]:
    """Return the mean losses, weighted by batch sizes, and the scores of all batches."""
    results = {name: _weighted_average(scores[name]) for name in net.get_loss_values()}
    return results | {s.__name__: s.aggregate(scores[s.__name__]) for s in scorers}


def _masked_sum(values: Array, mask: Array | None) -> float:
    return float(np.sum(values) if mask is None else np.sum(values * mask))


def _weighted_average(errors: Sequence[tuple[float, float]]) -> float:
    weights, values = _columns(errors)
    return float(np.sum(values * weights / weights.sum()))


def _columns(errors: Sequence[tuple[float, float]]) -> tuple[Array, Array]:
    array = np.array(errors, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise IteratorValidationError(
            f"scores are pairs of a weight and a value for each batch, and {errors!r} was given; "
            "use an iterator with at least one batch"
        )
    return array[:, 0], array[:, 1]
