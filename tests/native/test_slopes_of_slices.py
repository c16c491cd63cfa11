"""The derivative of a slice is one kernel, whatever ranges, steps and positions it takes."""

from itertools import product

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

A, B, C = geon.Axis("A", 6), geon.Axis("B", 9), geon.Axis("C", 5)
TAKEN = [slice(None), slice(1, None, 3), 3, -1, slice(4, 1, -2), slice(1, 4)]
SLICES = list(product(TAKEN, TAKEN, [slice(None, None, 2), 2]))


def slopes(x):
    return [geon.deriv(geon.sum(geon.square(x[taken])), x) for taken in SLICES]


@pytest.mark.parametrize("further", [False, True], ids=["alone", "in an expression"])
def test_each_is_one_kernel_without_an_array_of_zeros(further):
    x = geon.placeholder([A, B, C])
    with geon.make_transformer("native", threads=1) as transformer:
        for slope in slopes(x):
            f = transformer.computation(slope * 2 + 1 if further else slope, x)
            assert len(f.plan.schedule.kernels) == 1
            assert f.plan.buffers == ()


def test_values_are_those_of_numpy():
    x = geon.placeholder([A, B, C])
    values = np.random.default_rng(0).random((6, 9, 5), np.float32)
    with geon.make_transformer("native", threads=2) as transformer:
        found = transformer.computation(slopes(x), x)(values)
    for taken, slope in zip(SLICES, found, strict=True):
        wanted = np.zeros_like(values)
        wanted[taken] = 2 * values[taken]
        np.testing.assert_array_equal(slope, wanted, err_msg=str(taken))


@pytest.mark.parametrize("length", [10, 11, 12, 1023, 1024, 1025, 3071, 3073])
def test_rows_of_which_nothing_is_left_are_divided_into_no_parts(length):
    """Behind the last three of every length below an open one: 0, 1 or 2 columns of a few rows."""
    n, c = geon.Axis("N"), geon.Axis("C")
    x = geon.placeholder([n, c, geon.Axis("W", 1)])
    columns, rows = x[{c: slice(7, -1, 3)}], x[{n: slice(16, None, 6)}]
    loss = geon.sum(geon.square(columns)) + geon.sum(geon.square(rows))
    results = [columns * 3, geon.deriv(loss, x)]
    data = np.random.default_rng(0).integers(-9, 10, (23, length, 1)).astype("f4")
    expected = geon.NumPyTransformer().computation(results, x)(data)
    native = geon.make_transformer("native", threads=2)
    found = native.computation(results, x)(data)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
