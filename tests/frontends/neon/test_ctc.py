"""The cost of alignments beside PyTorch's, and beside a count of all alignments."""

import itertools

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import close, computed, reference

N, T = ax.N, ax.T
Y, ROW = geon.Axis("Y", 4), geon.Axis("row")
x = geon.placeholder([T, N, Y], name="x")
labels = geon.placeholder([N, ROW], "int64", name="labels")
lengths = geon.placeholder([N], "int64", name="lengths")
label_lengths = geon.placeholder([N], "int64", name="label_lengths")
GIVEN = [x, labels, lengths, label_lengths]


@pytest.mark.parametrize("blank", [0, 3])
def test_values_and_derivatives(transformer, blank):
    arrays = reference(f"ctc_{blank}")
    y = neon.costs.ctc(x, labels, lengths, label_lengths, blank=blank)
    values = {leaf: arrays[leaf.name] for leaf in GIVEN} | {"g": arrays["g"]}
    found, slopes = computed(transformer, y, [N], [x], values, beside=GIVEN[1:])
    assert np.isinf(found).sum() == 1  # too few times for one of the rows
    np.testing.assert_allclose(found, arrays["y"], rtol=1e-5, atol=1e-5)
    close(slopes[x], arrays["dx"])


def counted(scores, row, blank):
    """-log of the sum over all alignments, one by one."""
    p = np.exp(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
    total = 0.0
    for said in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        kept = [c for c, _ in itertools.groupby(said) if c != blank]
        if kept == list(row):
            total += np.prod([p[t, c] for t, c in enumerate(said)])
    return -np.log(total) if total else np.inf


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_all_alignments(transformer, count):
    y = neon.costs.ctc(x, labels)
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], x, labels)
    random = np.random.default_rng(count)
    for times in (0, 1, 2, 3, 5):
        data = random.normal(size=(times, 3, 4)).astype("float32")
        rows = random.integers(1, 4, (3, count))
        found, slope = f(data, rows)
        wanted = [counted(data[:, n].astype("float64"), rows[n], 0) for n in range(3)]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        for n in range(3):
            if np.isinf(wanted[n]):
                assert not slope[:, n].any()
                continue
            for t, c in itertools.product(range(min(times, 2)), range(4)):
                moved = data[:, n].astype("float64")
                moved[t, c] += 1e-4
                near = (counted(moved, rows[n], 0) - wanted[n]) / 1e-4
                np.testing.assert_allclose(slope[t, n, c], near, rtol=1e-2, atol=1e-3)


def test_what_cannot_be(transformer):
    y = neon.costs.ctc(x, labels, lengths, label_lengths)
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], *GIVEN)
    data = np.zeros((2, 6, 4), "float32")
    rows = [[1, 2], [1, 1], [0, 1], [1, 2], [1, 2], [1, 2]]
    # one alignment; no time for a blank; a blank; more times, labels than there are; below none
    found, slope = f(data, rows, [2, 2, 2, 3, 2, -1], [2, 2, 2, 2, 3, 2])
    np.testing.assert_allclose(found, [2 * np.log(4)] + [np.inf] * 5, rtol=1e-6)
    assert slope[:, 0].any()
    assert not slope[:, 1:].any()


def test_any_upstream_and_scores_that_are_far_out(transformer):
    y = neon.costs.ctc(x, labels)
    loss = geon.sum(geon.square(geon.where(geon.isfinite(y), y, 0)))
    f = transformer.computation([y, geon.deriv(loss, x)], x, labels)
    data = np.zeros((3, 2, 4), "float32")
    data[1, 0] = [-np.inf, 200, 0, 0]
    data[:, 1, 2] = -np.inf
    found, slope = f(data, [[1], [2]])
    assert found[1] == np.inf
    np.testing.assert_allclose(found[0], -np.log(4 / 16), rtol=1e-5)
    assert np.isfinite(slope[:, 0]).all()
    assert not slope[:, 1].any()
    assert np.isnan(f(np.full((3, 1, 4), np.nan), [[1]])[0]).all()


def test_long_rows_and_padding(transformer):
    y = neon.costs.ctc(x, labels, lengths, label_lengths, blank=2)
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], *GIVEN)
    random = np.random.default_rng(0)
    data = random.normal(size=(67, 2, 4)).astype("float32")
    row = np.array([[0, 1, 3, 3, 0, 1], [3, 0, 0, 1, 1, 0]])
    whole = f(data, row, [67, 50], [6, 6])
    padded = np.concatenate([row, [[-1] * 3, [99] * 3]], axis=1)
    found = f(np.concatenate([data, np.full((5, 2, 4), 7.0)]), padded, [67, 50], [6, 6])
    np.testing.assert_array_equal(found[0], whole[0])
    np.testing.assert_array_equal(found[1][:67], whole[1])
    assert not found[1][67:].any()
    assert not found[1][50:, 1].any()


def test_a_class_number_outside_raises(transformer):
    f = transformer.computation(neon.costs.ctc(x, labels), x, labels)
    for wrong in (4, -1):
        with pytest.raises(geon.IndexRangeError):
            f(np.zeros((2, 1, 4)), [[wrong]])


def test_what_does_not_fit_is_refused():
    for wrong in (geon.placeholder([N, ROW]), lengths, geon.placeholder([N, T], "int64")):
        with pytest.raises(geon.AxisError, match="an axis of their own"):
            neon.costs.ctc(x, wrong)
    for blank in (-1, 4):
        with pytest.raises(geon.ArgumentError, match="is no class of"):
            neon.costs.ctc(x, labels, blank=blank)
    for wrong in (geon.placeholder([N]), geon.placeholder([N, ROW], "int64")):
        with pytest.raises(geon.DTypeError, match="no lengths of rows"):
            neon.costs.ctc(x, labels, wrong)
