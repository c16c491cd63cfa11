"""Costs beside PyTorch's, and what they refuse."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import agrees

N, T = ax.N, ax.T
Y = geon.Axis("Y", 3)
x = geon.placeholder([N, Y], name="x")
classes = geon.placeholder([N], "int64", name="t")
target = geon.placeholder([N, Y], name="t")

OF_CLASSES = {
    "cross_entropy": neon.costs.cross_entropy,
    "smoothed": lambda x, t: neon.costs.cross_entropy(x, t, smoothing=0.1),
    "hinge": neon.costs.hinge,
    "focal": neon.costs.focal,
}
OF_TARGETS = {
    "cross_entropy_soft": neon.costs.cross_entropy,
    "binary_cross_entropy": neon.costs.binary_cross_entropy,
    "squared_error": neon.costs.squared_error,
    "absolute_error": neon.costs.absolute_error,
    "huber": lambda y, t: neon.costs.huber(y, t, 0.7),
    "binary_hinge": neon.costs.binary_hinge,
}


@pytest.mark.parametrize("case", OF_CLASSES)
def test_costs_of_classes(transformer, case):
    agrees(transformer, case, OF_CLASSES[case](x, classes), [N], {"x": x, "t": classes})


@pytest.mark.parametrize("case", OF_TARGETS)
def test_costs_of_targets(transformer, case):
    cost = OF_TARGETS[case](x, target)
    assert cost.axes is geon.Axes(N)
    agrees(transformer, case, cost, [N], {"x": x}, beside={"t": target})


def test_entropies_are_exact_however_far_out(transformer):
    far = neon.costs.cross_entropy(x, classes)
    logit = geon.placeholder([N], name="logit")
    truth = geon.placeholder([N], "bool", name="truth")
    binary = neon.costs.binary_cross_entropy(logit, truth)
    results = [far, geon.deriv(geon.sum(far), x), binary]
    f = transformer.computation(results, x, classes, logit, truth)
    found = f([[0, 0, 1000]] * 2, [2, 0], [-1000, 1000], [True, True])
    np.testing.assert_array_equal(found[0], [0, 1000])
    np.testing.assert_array_equal(found[1], [[0, 0, 0], [-1, 0, 1]])
    np.testing.assert_array_equal(found[2], [1000, 0])


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 0.9, 1.0, 2.0])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_focal_cost_has_slopes_however_far_out(transformer, gamma, dtype):
    """Where a score is so far above others that the probability rounds to 1, they are 0."""
    scores = geon.placeholder([N, Y], dtype, name="scores")
    cost = neon.costs.focal(scores, classes, gamma=gamma)
    slope = geon.deriv(geon.sum(geon.cast(cost, "float32")), scores)
    f = transformer.computation([cost, slope], scores, classes)
    far = np.array([0, 1, 8, 11, 16, 17, 40, 100, 1000])
    given = np.stack([far, 0 * far, 0 * far], 1)
    value, slopes = (part.astype("float64") for part in f(given, np.zeros(len(far), int)))
    assert np.isfinite(value).all() and np.isfinite(slopes).all()
    others = 2 * np.exp(-far) / (1 + 2 * np.exp(-far))
    wanted = others**gamma * np.log1p(2 * np.exp(-far))
    near = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 2e-6, "float64": 1e-9}[dtype]
    np.testing.assert_allclose(value, wanted, rtol=near, atol=near)
    inner = gamma * others**gamma * (1 - others) * np.log1p(2 * np.exp(-far))
    np.testing.assert_allclose(slopes[:, 0], -inner - others ** (gamma + 1), rtol=near, atol=near)


def test_a_class_number_outside_raises(transformer):
    f = transformer.computation(neon.costs.cross_entropy(x, classes), x, classes)
    for wrong in (3, -1):
        with pytest.raises(geon.IndexRangeError):
            f([[0, 0, 0]], [wrong])


def test_classes_of_each_place(transformer):
    scores = geon.placeholder([N, ax.H, ax.W, Y], name="scores")
    places = geon.placeholder([N, ax.H, ax.W], "int64", name="places")
    cost = neon.costs.cross_entropy(scores, places)
    assert cost.axes.names == ("N", "H", "W")
    f = transformer.computation(cost, scores, places)
    found = f(np.zeros((2, 4, 5, 3)), np.ones((2, 4, 5), int))
    np.testing.assert_allclose(found, np.full((2, 4, 5), np.log(3)), rtol=1e-6)


def test_costs_that_do_not_fit_are_refused():
    other = geon.placeholder([N], name="other")
    with pytest.raises(geon.AxisError, match="give a target over"):
        neon.costs.squared_error(x, other)
    with pytest.raises(geon.AxisError, match="give a target over"):
        neon.costs.cross_entropy(x, other)
    with pytest.raises(geon.AxisError, match="give integers over"):
        neon.costs.hinge(x, target)
    with pytest.raises(geon.AxisError, match="give integers over"):
        neon.costs.focal(x, geon.placeholder([N, T], "int64"))
    with pytest.raises(geon.AxisError, match="say which with over="):
        neon.costs.cross_entropy(geon.placeholder([N, Y, geon.Axis("Z", 2)]), classes)
    with pytest.raises(geon.ArgumentError, match="from 0 to 1"):
        neon.costs.cross_entropy(x, classes, smoothing=2)


def test_integers_and_truth_values_are_targets(transformer):
    whole = geon.placeholder([N, Y], "int64", name="whole")
    f = transformer.computation(neon.costs.squared_error(x, whole), x, whole)
    np.testing.assert_array_equal(f([[1, 2, 3]], [[1, 2, 6]]), [3])
