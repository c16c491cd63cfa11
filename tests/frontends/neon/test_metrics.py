"""Metrics beside scikit-learn's, over batches of several lengths."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score, top_k_accuracy_score

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

N = ax.N
Y = geon.Axis("Y", 4)


def figure(transformer, metric, scores, targets, dtype="int64", batch=7):
    """A metric over batches, the last of which is shorter."""
    y = geon.placeholder([N, Y][: scores.ndim], name="y")
    t = geon.placeholder([N], dtype, name="t")
    f = transformer.computation(metric.each(y, t), y, t)
    starts = range(0, len(scores), batch)
    parts = [f(scores[i : i + batch], targets[i : i + batch]) for i in starts]
    arrays = [
        np.concatenate([part.ravel() for part in column]) for column in zip(*parts, strict=True)
    ]
    return metric.value(*arrays)


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    classes = random.integers(0, 4, 60)
    scores = random.normal(size=(60, 4)).round(1).astype("float32")
    scores[np.arange(60), classes] += 1
    return scores, classes


def test_accuracy(transformer, data):
    scores, classes = data
    found = figure(transformer, neon.metrics.Accuracy(), scores, classes)
    assert found == np.mean(scores.argmax(1) == classes)


def test_top_k(transformer, data):
    random = np.random.default_rng(1)
    scores, classes = random.normal(size=(60, 4)).astype("float32"), data[1]
    found = figure(transformer, neon.metrics.TopK(2), scores, classes)
    assert found == pytest.approx(top_k_accuracy_score(classes, scores, k=2))


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_f1(transformer, data, average):
    scores, classes = data
    found = figure(transformer, neon.metrics.F1(average), scores, classes)
    assert found == pytest.approx(f1_score(classes, scores.argmax(1), average=average))


def test_f1_of_one_class(transformer, data):
    scores, classes = data
    found = figure(transformer, neon.metrics.F1(positive=2), scores, classes)
    assert found == pytest.approx(f1_score(classes == 2, scores.argmax(1) == 2))


def test_perplexity(transformer, data):
    classes = data[1]
    found = figure(transformer, neon.metrics.Perplexity(), np.zeros((60, 4), "float32"), classes)
    assert found == pytest.approx(4)


def test_roc_area(transformer, data):
    scores, classes = data
    found = figure(transformer, neon.metrics.RocArea(), scores[:, 0], classes == 0, "bool")
    assert found == pytest.approx(roc_auc_score(classes == 0, scores[:, 0]))
    found = figure(transformer, neon.metrics.RocArea(positive=1), scores, classes)
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert found == pytest.approx(roc_auc_score(classes == 1, chances[:, 1]))


def test_the_mean_of_a_cost(transformer, data):
    scores, classes = data
    found = figure(transformer, neon.metrics.Mean(neon.costs.cross_entropy), scores, classes)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    assert found == pytest.approx(-logs[np.arange(60), classes].mean())


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        (neon.metrics.Accuracy(), 1),
        (neon.metrics.TopK(1), 1),
        (neon.metrics.F1(), 2),
        (neon.metrics.Perplexity(), 1),
        (neon.metrics.Mean(neon.costs.cross_entropy), 1),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_figure_of_nothing_is_nan(metric, parts):
    assert np.isnan(metric.value(*[np.zeros(0)] * parts))


def test_an_area_of_scores_that_are_none_or_of_other_targets():
    area, truths = neon.metrics.RocArea(), np.array([1, 0, 1])
    assert np.isnan(area.value(np.array([0.5, np.nan, 1.0]), truths))
    assert area.value(np.array([0.5, 0.2, 1.0]), truths.astype("float32")) == 1
    for wrong in (2, -1, 0.5):
        with pytest.raises(geon.ArgumentError, match=rf"target {wrong} is neither 1 nor 0"):
            area.value(np.array([0.5, 0.2, 1.0]), np.array([1, 0, wrong]))


def test_an_area_needs_both_kinds():
    assert np.isnan(neon.metrics.RocArea().value(np.ones(3), np.array([True] * 3)))
    assert neon.metrics.RocArea().value(np.ones(3), np.array([True, False, True])) == 0.5


def test_an_average_that_is_not_there_is_refused():
    with pytest.raises(geon.ArgumentError, match="'macro' or 'micro'"):
        neon.metrics.F1("mean")


def test_targets_that_are_no_class_numbers_are_refused():
    y = geon.placeholder([N, Y])
    for metric in (neon.metrics.Accuracy(), neon.metrics.TopK(1), neon.metrics.F1()):
        with pytest.raises(geon.AxisError, match="give integers over"):
            metric.each(y, geon.placeholder([N, Y], "int64"))
