"""The slope of a softmax is computed of its values alone, and is what the chain rule says."""

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import deep_order

N, K, L = geon.Axis("N"), geon.Axis("K"), geon.Axis("L", 3)


def primitives(f):
    """The names of the ops that a computation has after stage 3."""
    return [op.primitive.name for op in deep_order(list(f.stages().program.roots))]


def softmax(a, axis):
    """With NumPy, in float64."""
    powers = np.exp(a - a.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("over", ["last", "first", "two"])
def test_the_slope_is_that_of_numpy(transformer, dtype, over):
    axes = {"last": [K], "first": [N], "two": [K, L]}[over]
    x, g = (geon.placeholder([N, K, L], dtype=dtype, name=name) for name in "xg")
    y = geon.softmax(x, axes)
    f = transformer.computation([geon.deriv(geon.sum(y * g), x), y], x, g)
    assert primitives(f).count("sum") == 2  # that of the powers, and of what meets the cotangent
    generator = np.random.default_rng(2)
    places = tuple("NKL".index(axis.name) for axis in axes)
    for n, k in [(1, 1), (3, 50), (17, 5)]:
        a, b = (generator.normal(size=(n, k, 3)).astype(dtype) for _ in range(2))
        slope, value = f(a, b)
        right = softmax(a.astype(np.float64), places)
        met = (b * right).sum(places, keepdims=True)
        tolerance = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
        np.testing.assert_allclose(value, right, rtol=0, atol=tolerance)
        np.testing.assert_allclose(slope, right * (b - met), rtol=0, atol=tolerance)


def test_masks_and_what_is_not_finite_stay_in_their_rows(transformer):
    x, g = (geon.placeholder([N, K], name=name) for name in "xg")
    f = transformer.computation(geon.deriv(geon.sum(geon.softmax(x, K) * g), x), x, g)
    a = np.random.default_rng(3).normal(size=(5, 6)).astype(np.float32)
    b = np.ones((5, 6), np.float32) * np.arange(6, dtype=np.float32)
    a[0, 2:], a[1, 3], a[2] = -np.inf, np.nan, -np.inf
    found = f(a, b)
    right = softmax(a[[0, 3, 4]].astype(np.float64), 1)
    right = right * (b[:3] - (b[:3] * right).sum(1, keepdims=True))
    np.testing.assert_allclose(found[[0, 3, 4]], right, atol=1e-6)
    assert np.isnan(found[1:3]).all()
    assert (found[0, 2:] == 0).all()


def test_second_derivatives_are_those_of_differences(transformer):
    x, g = (geon.placeholder([N, K], dtype="float64", name=name) for name in "xg")
    slope = geon.deriv(geon.sum(geon.square(geon.softmax(x, K)) * g), x)
    second = geon.deriv(geon.sum(slope * g), x)
    f = transformer.computation([slope, second], x, g)
    generator = np.random.default_rng(4)
    a, b, step = generator.normal(size=(4, 5)), generator.normal(size=(4, 5)), 1e-5
    moved = np.zeros((4, 5))
    for place in np.ndindex(4, 5):
        d = np.zeros((4, 5))
        d[place] = step
        more, less = f(a + d, b)[0], f(a - d, b)[0]
        moved[place] = ((more - less) / (2 * step) * b).sum()
    np.testing.assert_allclose(f(a, b)[1], moved, rtol=1e-6, atol=1e-8)


def like_a_slope(x, g, other, axes):
    """Something that has the form of such a slope, but of other values."""
    powers = geon.exp(x)
    s = geon.sum(powers, axes)
    y = powers / s
    return powers * (g / s + geon.sum(other * (-y / s), axes))


def test_only_slopes_are_taken_for_slopes(transformer):
    x, g, h = (geon.placeholder([N, K], dtype="float64", name=name) for name in "xgh")
    generator = np.random.default_rng(5)
    a, b, c = (generator.normal(size=(4, 5)) for _ in range(3))
    powers = np.exp(a)
    s = powers.sum(1, keepdims=True)
    for other, value in ((g, b), (h, c)):
        f = transformer.computation(like_a_slope(x, g, other, K), x, g, h)
        right = powers * (b / s + (value * (-powers / s / s)).sum(1, keepdims=True))
        np.testing.assert_allclose(f(a, b, c), right, rtol=1e-12)
        assert ("negative" in primitives(f)) == (other is h)
