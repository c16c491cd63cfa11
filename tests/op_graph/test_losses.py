"""Cross entropies: values, derivatives in every argument, and logits far out."""

import math

import numpy as np
import pytest
from scipy import special

import geon
from geon.op_graph.rewriting.stabilise import stabilise
from tests.op_graph.evaluation import leaf, value

N, C = geon.Axis("N", 3), geon.Axis("C", 4)
RANDOM = np.random.default_rng(2)
PROBABILITIES = RANDOM.uniform(0.05, 0.95, (3, 4))
TRUTHS = RANDOM.uniform(0.05, 0.95, (3, 4))
BINARY = -(TRUTHS * np.log(PROBABILITIES) + (1 - TRUTHS) * np.log(1 - PROBABILITIES))
MULTI = -TRUTHS * np.log(PROBABILITIES)
LOSSES = pytest.mark.parametrize(
    ("loss", "expected"),
    [(geon.cross_entropy_binary, BINARY), (geon.cross_entropy_multi, MULTI)],
    ids=["binary", "multi"],
)


@LOSSES
def test_values_over_named_axes(loss, expected):
    y, t = leaf(PROBABILITIES, N, C), leaf(TRUTHS, N, C)
    feeds = {y: PROBABILITIES, t: TRUTHS}
    for made, exact, axes in [
        (loss(y, t), expected.sum(), ()),
        (loss(y, t, out_axes=geon.Axes()), expected.sum(), ()),
        (loss(y, t, out_axes=[N]), expected.sum(1), ("N",)),
        (loss(y, t, reduction_axes=N), expected.sum(0), ("C",)),
        (loss(y, t, out_axes=[C, N]), expected.T, ("C", "N")),
        (loss(y, t, usebits=True), expected.sum() / math.log(2), ()),
    ]:
        assert made.axes.names == axes
        np.testing.assert_allclose(value(made, feeds), exact, rtol=1e-13)
    assert loss(y, t, out_axes=[N], name="cost").name == "cost"


@LOSSES
def test_derivatives_in_y_and_t(loss, expected):
    y, t = leaf(PROBABILITIES, N, C), leaf(TRUTHS, N, C)
    weights = geon.constant(np.array([1.0, 2.0, -1.0]), axes=N)
    feeds = {y: PROBABILITIES, t: TRUTHS}
    geon.check_gradients(weights * loss(y, t, out_axes=[N]), feeds, each=True)
    geon.check_gradients(loss(y, t, usebits=True), feeds, each=True)


def test_the_derivative_in_t_of_binary_cross_entropy():
    y, t = leaf(PROBABILITIES, N, C), leaf(TRUTHS, N, C)
    got = value(geon.deriv(geon.cross_entropy_binary(y, t), t), {y: PROBABILITIES, t: TRUTHS})
    np.testing.assert_allclose(got, -special.logit(PROBABILITIES), rtol=1e-12)


def test_derivatives_in_t_where_t_is_0_or_1():
    truths = np.array([0.0, 1.0, 0.0])
    logits = np.array([2.0, -1.0, 300.0])
    x, t = leaf(logits, N), leaf(truths, N)
    loss = geon.cross_entropy_binary(geon.sigmoid(x), t)
    got = value(geon.deriv(loss, t), {x: logits, t: truths})
    np.testing.assert_allclose(got, -logits, rtol=1e-12)


@LOSSES
def test_derivatives_through_the_activation(loss, expected):
    logits = 2 * RANDOM.normal(size=(3, 4))
    x, t = leaf(logits, N, C), leaf(TRUTHS, N, C)
    y = geon.sigmoid(x) if loss is geon.cross_entropy_binary else geon.softmax(x, C)
    geon.check_gradients(loss(y, t), {x: logits, t: TRUTHS}, each=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_far_out(dtype):
    logits = np.array([1000.0, -1000.0, 30.0], dtype)
    truths = np.array([0, 1, 1], dtype)
    x, t = leaf(logits, N), leaf(truths, N)
    loss = geon.cross_entropy_binary(geon.sigmoid(x), t, out_axes=[N])
    feeds = {x: logits, t: truths}
    np.testing.assert_allclose(
        value(stabilise(loss), feeds), [1000, 1000, np.log1p(np.exp(-30.0))], rtol=1e-6
    )
    slope = value(geon.deriv(geon.sum(loss), x), feeds)
    np.testing.assert_allclose(slope, [1, -1, -special.expit(-30.0)], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_far_out(dtype):
    logits = np.array([1000.0, -1000.0, 0.0, -1000.0], dtype)
    x = leaf(logits, C)
    t = geon.onehot(geon.constant(1), C, dtype)
    loss = geon.cross_entropy_multi(geon.softmax(x), t)
    assert value(stabilise(loss), {x: logits}) == 2000
    np.testing.assert_array_equal(value(geon.deriv(loss, x), {x: logits}), [1, -1, 0, 0])


def test_agreement_far_out_costs_nothing():
    logits = np.array([1000.0, -1000.0, 1000.0], np.float32)
    x, truths = leaf(logits, N), geon.constant([1, 0, 1], axes=N)
    loss = geon.cross_entropy_binary(geon.sigmoid(x), truths)
    assert value(stabilise(loss), {x: logits}) == 0
    np.testing.assert_array_equal(value(geon.deriv(loss, x), {x: logits}), 0)


@LOSSES
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8"])
def test_integer_truths(loss, expected, dtype):
    truths = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]).astype(dtype)
    y, t, exact = leaf(PROBABILITIES, N, C), leaf(truths, N, C), leaf(TRUTHS, N, C)
    made = loss(y, t)
    assert made.dtype == np.float64
    want = value(loss(y, exact), {y: PROBABILITIES, exact: truths.astype(float)})
    assert value(made, {y: PROBABILITIES, t: truths}) == want


@LOSSES
def test_float32_stays_float32_and_numbers_are_weak(loss, expected):
    y = geon.placeholder(axes=[N])
    for t in (1, 0.5, True, geon.placeholder(axes=[N], dtype="int64")):
        assert loss(y, t).dtype == np.float32
    data = np.full(3, 0.25, np.float32)
    assert value(loss(y, 1), {y: data}) == pytest.approx(3 * math.log(4))


def test_class_numbers_are_refused():
    y, t = geon.placeholder(axes=[N, C]), geon.placeholder(axes=[N], dtype="int64", name="t")
    with pytest.raises(geon.AxisError, match=r"t\(N:3\).*lacks the axis 'C'.*geon\.onehot\(t, C\)"):
        geon.cross_entropy_multi(y, t)
    shares = geon.placeholder(axes=[C])
    assert geon.cross_entropy_multi(y, shares, out_axes=[N]).axes.names == ("N",)


def test_a_loss_for_each_example_of_an_open_batch():
    batch = geon.Axis("batch")
    x = geon.placeholder(axes=[batch, C], dtype="float64")
    t = geon.placeholder(axes=[batch], dtype="int64")
    y = geon.softmax(x, normalization_axes=C)
    loss = geon.cross_entropy_multi(y, geon.onehot(t, C), out_axes=[batch])
    logits, labels = RANDOM.normal(size=(3, 4)), np.array([2, 0, 3])
    got = value(loss, {x: logits, t: labels}, {"batch": 3})
    np.testing.assert_allclose(got, -special.log_softmax(logits, 1)[range(3), labels], rtol=1e-12)
