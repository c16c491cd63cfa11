"""Sums of integers of 16 bits and fewer, and of truths, are exact, however they are taken."""

import numpy as np
import pytest

import geon

TERMS = [1, 15, 17, 32769, 100003]
DTYPES = {"int8": -128, "uint8": 255, "int16": -32768, "uint16": 65535, "bool": True}


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_the_widest_of_narrow_values_are_exact(dtype):
    """All of one sign: blocks in 32 bits would overflow if they were longer than they may be."""
    axis, few, short = geon.Axis("N"), geon.Axis("M", 3), geon.Axis("K", 20)
    row, columns = geon.placeholder([axis], dtype=dtype), geon.placeholder([axis, few], dtype=dtype)
    rows = geon.placeholder([axis, short], dtype=dtype)
    results = [geon.sum(row), geon.sum(columns, [axis]), geon.sum(rows, [short]), geon.sum(rows)]
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, row, columns, rows)
        for terms in TERMS:
            given = [np.full(shape, DTYPES[dtype]) for shape in (terms, (terms, 3), (terms, 20))]
            a, b, c = (each.astype(dtype) for each in given)
            wanted = [a.sum(), b.sum(0), c.sum(1), c.sum()]
            for found, value in zip(f(a, b, c), wanted, strict=True):
                np.testing.assert_array_equal(found, value)


def test_a_cast_that_changes_values_is_summed_as_it_is():
    axis = geon.Axis("N", 40001)
    x, y = geon.placeholder([axis], dtype="int16"), geon.placeholder([axis], dtype="float32")
    narrowed = geon.cast(geon.cast(x, "int8"), "int64")
    turned = geon.cast(geon.cast(geon.cast(x, "int8"), "uint32"), "int64")
    sums = [geon.sum(each) for each in (narrowed, turned, y > 0, geon.cast(y, "int64"), y)]
    a = np.arange(-20000, 20001).astype(np.int16)
    b = (a % 7 - 3).astype(np.float32)
    wide = a.astype(np.int8)
    wanted = [wide.sum(dtype=np.int64), wide.astype(np.uint32).sum(dtype=np.int64)]
    with geon.NativeTransformer(threads=1) as transformer:
        found = transformer.computation(sums, x, y)(a, b)
    np.testing.assert_array_equal(found, [*wanted, (b > 0).sum(), b.sum(), b.sum()])
