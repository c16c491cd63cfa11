"""What is stored of rows side by side, behind their last pass: in one loop, each value right."""

import math

import numpy as np
import pytest

import geon
from tests.golden.emitting import Native

N, M = geon.Axis("N"), geon.Axis("M")


def standing(x, y):
    """Values of the columns of ``x``: of several dtypes, some from sums, one of a function that
    compilers make no vectors of."""
    total = geon.sum(x, N)
    largest = geon.max(x, N)
    mean = total / 7.0
    chosen = geon.where(largest > 1.0, mean * y, geon.sqrt(geon.absolute(mean)))
    return [
        chosen + geon.where(y < 0, 0.5, largest),
        geon.greater(total, y),
        geon.cast(geon.floor(mean), "int32"),
        geon.lgamma(geon.absolute(mean) + 1.5) + y,
    ]


def wanted(a, b):
    total, largest = a.sum(0), a.max(0)
    mean = total / 7
    chosen = np.where(largest > 1, mean * b, np.sqrt(np.abs(mean)))
    return [
        chosen + np.where(b < 0, 0.5, largest),
        total > b,
        np.floor(mean).astype(np.int32),
        np.array([math.lgamma(abs(each) + 1.5) for each in mean]) + b,
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_values_of_columns(threads):
    x, y = geon.placeholder([N, M], "float64"), geon.placeholder([M], "float64")
    generator = np.random.default_rng(3)
    with geon.NativeTransformer(threads=threads) as transformer:
        f = transformer.computation(standing(x, y), x, y)
        for rows, columns in [(1, 1), (3, 63), (5, 64), (4, 65), (2, 511), (2, 512), (3, 1300)]:
            a = generator.integers(-9, 9, (rows, columns)) / 8
            b = generator.integers(-9, 9, columns) / 8
            for found, value in zip(f(a, b), wanted(a, b), strict=True):
                np.testing.assert_allclose(found, value, rtol=1e-12)


def test_a_variable_that_is_read_is_written_last():
    """A step of an optimiser after a sum over columns: stores in place, read by one another."""
    with geon.NativeTransformer() as transformer:
        x = geon.placeholder([N, geon.Axis("M", 70)])
        w = geon.variable([x.axes["M"]], initial_value=2.0)
        v = geon.variable([x.axes["M"]], initial_value=1.0)
        slope = geon.sum(x, N)
        step = geon.doall([geon.assign(v, v * 0.5 + slope * w), geon.assign(w, w - v * slope)])
        f = transformer.computation([step, w + v], x)
        a = np.random.default_rng(0).integers(-3, 4, (9, 70)).astype(np.float32)
        for _ in range(2):
            held = transformer.get(w).copy(), transformer.get(v).copy()
            _, both = f(a)
            total = a.sum(0)
            np.testing.assert_array_equal(both, held[0] + held[1])
            np.testing.assert_allclose(transformer.get(v), held[1] * 0.5 + total * held[0])
            np.testing.assert_allclose(transformer.get(w), held[0] - held[1] * total)


def test_there_is_one_loop():
    x = geon.placeholder([N, M])
    total = geon.sum(x, N)
    made = geon.where(total > 1, total * 2, geon.sqrt(total)) - 3
    source = Native().computation([made, made * 2], x).source
    loops = [part.split("\n}")[0] for part in source.split("#pragma omp simd") if "sqrtf(" in part]
    assert loops
    for loop in loops:
        assert "y0[" in loop and "y1[" in loop and "[512]" not in loop
