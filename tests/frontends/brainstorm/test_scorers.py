"""Scorers: their values with and without masks, and their weights over batches."""

import json

import numpy as np
import pytest

from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.scorers import (
    Accuracy,
    Hamming,
    MeanSquaredError,
    Scorer,
    gather_losses_and_scores,
)
from geon.frontends.brainstorm.tools import evaluate
from geon.frontends.brainstorm.utils import IteratorValidationError
from tests.frontends.brainstorm.small_network import xor_batches, xor_network

PREDICTED = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
LABELS = np.array([[1], [2], [2]])
MASK = np.array([[1], [1], [0]])


def test_accuracy():
    assert Accuracy()(LABELS, PREDICTED) == 2
    assert Accuracy()(LABELS, PREDICTED, MASK) == 1
    assert Accuracy()(np.array([[1.0], [0.0], [1.0]]), np.array([[0.9], [0.4], [0.2]])) == 2


def test_hamming():
    truth = np.array([[1, 0, 0], [1, 0, 1], [0, 0, 0]])
    assert Hamming(0.3)(truth, PREDICTED) == pytest.approx((1 + 1 + 1) / 3)
    assert Hamming()(truth, PREDICTED, MASK) == pytest.approx((1 + 2) / 3)


def test_squared_error():
    truth = np.array([[0, 1], [2, 3]])
    predicted = np.array([[1, 1], [2, 1]])
    assert MeanSquaredError()(truth, predicted) == 2.5
    assert MeanSquaredError()(truth, predicted, np.array([[1], [0]])) == 0.5


def test_batches_are_weighted():
    assert Scorer.aggregate([(4, 2.0), (2, 2.0)]) == pytest.approx(4 / 6)
    net = xor_network()
    scorers = [
        Accuracy("OutLayer.outputs.default"),
        MeanSquaredError("OutLayer.outputs.default", name="error"),
    ]
    whole, uneven = (evaluate(net, xor_batches(size), scorers) for size in (4, 3))
    assert list(whole) == ["total_loss", "Loss", "Accuracy", "error"]
    assert uneven == pytest.approx(whole, rel=1e-5)
    net.output_name = "OutLayer.outputs.default"
    assert evaluate(net, xor_batches(4), [Accuracy()])["Accuracy"] == whole["Accuracy"]


def test_masks_are_inputs():
    class Net:
        output_name, batch_size, time_size = "out", 2, 3

        def get(self, path):
            """Three steps, and the state before the first one."""
            return np.concatenate([PREDICTED, PREDICTED[:1]]).reshape(4, 1, 3)

        def get_input(self, name):
            return {"targets": LABELS, "mask": MASK}[name].reshape(3, 1, 1)

        def get_loss_values(self):
            return {"total_loss": 3.0}

    scores = {"total_loss": [], "Accuracy": []}
    gather_losses_and_scores(Net(), [Accuracy(mask_name="mask")], scores)
    gather_losses_and_scores(Net(), [Accuracy()], scores, mask_name="mask")
    assert scores == {"total_loss": [(2, 3.0)] * 2, "Accuracy": [(2.0, 1.0)] * 2}


def test_descriptions():
    scorer = Hamming(0.25, "Out.outputs.default", mask_name="mask", name="labels")
    again = create_from_description(json.loads(json.dumps(get_description(scorer))))
    assert vars(again) == vars(scorer) and again.__name__ == "labels"


def test_no_batch_is_refused():
    with pytest.raises(IteratorValidationError, match="at least one batch"):
        Accuracy.aggregate([])
