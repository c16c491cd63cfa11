"""Few long rows are reduced in parts, in an order that the lengths alone decide."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

C = geon.Axis("C")


def reduced(threads, rows, x, reduction):
    axes = [geon.Axis(f"R{k}", n) for k, n in enumerate(rows)]
    with geon.make_transformer("native", threads=threads) as transformer:
        leaf = geon.placeholder([*axes, C])
        f = transformer.computation(reduction(leaf * 2 - 1, C) * 3, leaf)
        return f(x), f.source


@pytest.mark.parametrize("rows", [(1,), (3,), (2, 4)], ids=str)
@pytest.mark.parametrize("length", [0, 1, 1000, 300_001])
def test_sums_are_right_and_the_same_for_any_number_of_threads(rows, length):
    x = np.random.default_rng(2).random((*rows, length), np.float32)
    one, source = reduced(1, rows, x, geon.sum)
    assert "geon_pool_run(" in source
    np.testing.assert_allclose(one, (x * 2.0 - 1).sum(-1) * 3, rtol=1e-4, atol=1e-2)
    for threads in (2, 3):
        assert reduced(threads, rows, x, geon.sum)[0].tobytes() == one.tobytes()


def test_a_nan_in_any_part_of_a_row():
    for at in (0, 100_000, 299_999):
        x = np.zeros((2, 300_000), np.float32)
        x[1, at] = np.nan
        for reduction in (geon.max, geon.min, geon.sum):
            got, _ = reduced(2, (2,), x, reduction)
            assert np.isfinite(got[0]) and np.isnan(got[1])


def test_many_rows_are_divided_by_rows():
    x = np.ones((9, 100), np.float32)
    assert "_parts" not in reduced(1, (9,), x, geon.sum)[1]
