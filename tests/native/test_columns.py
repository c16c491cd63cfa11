"""What reduces columns takes some rows at a time: right for every number that is left over."""

import numpy as np
import pytest

import geon

ROWS = [1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 35, 63, 66, 129]
KNOWN = [15, 16, 17, 18, 64, 67]


def reduced(x, axis):
    """Values that sums, extremes, positions and states of several numbers make of columns."""
    functions = [geon.sum, geon.max, geon.argmin, geon.variance, geon.logsumexp]
    return [function(x, axis) for function in functions]


def wanted(a):
    return [a.sum(0), a.max(0), a.argmin(0), a.var(0), np.log(np.exp(a).sum(0))]


def check(f, a):
    for found, value in zip(f(a), wanted(a.astype(np.float64)), strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [70, 1030])
def test_open_columns(columns):
    generator = np.random.default_rng(5)
    axis, other = geon.Axis("N"), geon.Axis("M", columns)
    x = geon.placeholder([axis, other])
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        f, g = one.computation(reduced(x, axis), x), two.computation(reduced(x, axis), x)
        for rows in ROWS:
            a = generator.integers(-4, 5, (rows, columns)).astype(np.float32)
            check(f, a)
            for one_thread, two_threads in zip(f(a), g(a), strict=True):
                np.testing.assert_array_equal(one_thread, two_threads)


def test_known_columns():
    generator = np.random.default_rng(6)
    results, inputs, arrays = [], [], []
    for rows in KNOWN:
        axis, other = geon.Axis("N", rows), geon.Axis("M", 40)
        inputs.append(geon.placeholder([axis, other]))
        arrays.append(generator.integers(-4, 5, (rows, 40)).astype(np.float32))
        results.append(reduced(inputs[-1], axis))
    with geon.NativeTransformer(threads=1) as transformer:
        found = transformer.computation([r for each in results for r in each], *inputs)(*arrays)
    values = [value for a in arrays for value in wanted(a.astype(np.float64))]
    for one, value in zip(found, values, strict=True):
        np.testing.assert_allclose(one, value, rtol=2e-5, atol=1e-6)


def test_a_nan_of_any_row_is_the_extreme():
    axis, other = geon.Axis("N"), geon.Axis("M", 64)
    x = geon.placeholder([axis, other])
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation([geon.max(x, axis), geon.min(x, axis)], x)
        for row in range(9):
            a = np.zeros((9, 64), np.float32)
            a[row, 7] = np.nan
            for found in f(a):
                assert np.isnan(found[7]) and np.count_nonzero(np.isnan(found)) == 1
