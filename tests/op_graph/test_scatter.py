"""Scatter with modes that combine: ties, NaN, zeros and dtypes."""

import numpy as np
import pytest

import geon

from .computing import compute

N, M = geon.Axis("N", 3), geon.Axis("M", 4)
AT = [0, 0, 1, 1]


def slopes(mode, x, values):
    """The derivatives of all places in x and in the values."""
    xs = [geon.placeholder([N], "float64"), geon.placeholder([M], "float64")]
    at = geon.constant(AT, axes=[M])
    y = geon.sum(geon.scatter(xs[0], at, xs[1], N, mode=mode))
    feeds = dict(zip(xs, map(np.asarray, (x, values)), strict=True))
    return [compute(g, feeds).tolist() for g in geon.deriv(y, xs)]


def test_elements_that_tie_share_the_derivative_with_that_of_x():
    for mode, sign in (("max", 1.0), ("min", -1.0)):
        x, values = sign * np.array([2.0, 5.0, 7.0]), sign * np.array([2.0, 2.0, 1.0, 5.0])
        third = 1 / 3
        assert slopes(mode, x, values) == [[third, 0.5, 1], [third, third, 0, 0.5]]


def test_nan_counts_as_in_max():
    found = slopes("max", [1.0, 2.0, np.nan], [np.nan, 0.0, 1.0, 3.0])
    np.testing.assert_equal(found, [[np.nan, 0, np.nan], [np.nan, np.nan, 0, 1]])
    x = geon.constant([np.nan, 1.0], axes=[geon.Axis("X", 2)], dtype="float64")
    reduced = compute(geon.deriv(geon.max(x * 1.0 + 0.0), x * 1.0 + 0.0))
    assert np.isnan(reduced).all()


def test_a_product_with_zeros():
    assert slopes("multiply", [0.0, 0.0, 3.0], [2.0, 5.0, 0.0, 4.0]) == [[10, 0, 1], [0] * 4]
    assert slopes("multiply", [2.0, 3.0, 0.0], [0.0, 5.0, 7.0, 4.0]) == [
        [0, 28, 1], [10, 0, 12, 21],
    ]  # fmt: skip


def test_halves_are_multiplied_in_float32():
    K = geon.Axis("K", 200)
    for dtype in ("float16", "bfloat16"):
        values = geon.cast(geon.broadcast(1.0078125, [K]), dtype)
        at = geon.broadcast(geon.constant(0), [K])
        for name in ("numpy", "native"):
            with geon.make_transformer(name) as transformer:
                one = geon.cast(geon.broadcast(1.0, [N]), dtype)
                y = geon.scatter(one, at, values, N, mode="multiply")
                found = transformer.computation(y)().astype(np.float64)
                np.testing.assert_allclose(found[0], 1.0078125**200, rtol=2**-8)


def test_other_modes_are_refused():
    with pytest.raises(geon.AxisError, match="'mul' is none of 'set', 'add', 'max', 'min'"):
        geon.scatter(geon.broadcast(1.0, [N]), 0, 2.0, N, mode="mul")
