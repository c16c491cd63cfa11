"""Folds of truths end where these are decided, and not before."""

import time

import numpy as np
import pytest

import geon
from geon.transformers.loops.rules.compiled_folds import TRUTHS_PER_CHECK
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

FOLDS = {"any": np.any, "all": np.all}
ROWS, COLUMNS = 197, TRUTHS_PER_CHECK + 7


@pytest.fixture(scope="module", params=[1, 2])
def computation(request):
    """Of an array by rows and columns: every fold over all of it, over either axis, of a view with
    short rows, and two folds at once; the axes are known or open."""
    with geon.NativeTransformer(threads=request.param) as transformer:
        known = geon.Axis("A", ROWS), geon.Axis("B", COLUMNS)
        made = []
        for a, b in (known, (geon.Axis("C"), geon.Axis("D"))):
            x = geon.placeholder([a, b], dtype="int8")
            results = []
            for fold in (geon.any, geon.all):
                odd = x[:, 0:3] if a is known[0] else x
                results += [fold(x), fold(x, a), fold(x, b), fold(odd)]
            made.append(transformer.computation(results, x))
        yield made


def wanted(data, is_open):
    found = []
    for fold in FOLDS.values():
        found += [fold(data), fold(data, 0), fold(data, 1), fold(data if is_open else data[:, :3])]
    return found


@pytest.mark.parametrize("place", [0, ROWS // 2, ROWS - 1])
@pytest.mark.parametrize("value", [0, 1])
def test_one_element_decides_wherever_it_is(computation, place, value):
    data = np.full((ROWS, COLUMNS), 1 - value, np.int8)
    for column in (0, COLUMNS // 2, COLUMNS - 1):
        data[place, column] = value
        for k, f in enumerate(computation):
            for found, right in zip(f(data), wanted(data, k), strict=True):
                np.testing.assert_array_equal(found, right)
        data[place, column] = 1 - value
    for k, f in enumerate(computation):
        for found, right in zip(f(data), wanted(data, k), strict=True):
            np.testing.assert_array_equal(found, right)


def test_two_folds_of_one_pass_end_where_both_are_decided():
    n, m = geon.Axis("N", 5), geon.Axis("M", 3 * TRUTHS_PER_CHECK)
    x = geon.placeholder([n, m], dtype="int32")
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation([geon.any(x > 3, m), geon.all(x > 3, m), geon.any(x > 7, m)], x)
        assert len(f.stages().schedule.kernels) == 1
        assert f.source.count(" && ") and "break;" in f.source
        data = np.full((5, 3 * TRUTHS_PER_CHECK), 5, np.int32)
        data[1, 0], data[2, -1], data[3, 2 * TRUTHS_PER_CHECK], data[4, :] = 9, 2, 9, 1
        found = f(data)
    for each, right in zip(
        found, [(data > 3).any(1), (data > 3).all(1), (data > 7).any(1)], strict=True
    ):
        np.testing.assert_array_equal(each, right)


def test_what_does_more_than_fold_truths_goes_to_its_end():
    """A sum beside the truth, and truths that are stored too."""
    n, m = geon.Axis("N", 7), geon.Axis("M", 2 * TRUTHS_PER_CHECK)
    x = geon.placeholder([n, m])
    data = np.ones((7, 2 * TRUTHS_PER_CHECK), np.float32)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation([geon.any(x, m), geon.sum(x, m)], x)
        some, total = f(data)
        assert some.all()
        np.testing.assert_array_equal(total, data.sum(1))
        g = transformer.computation([geon.all(x > 2, m), x > 2], x)
        every, each = g(data)
    assert not every.any()
    np.testing.assert_array_equal(each, data > 2)


def test_a_fold_that_is_decided_at_once_reads_little():
    """On one thread, the best of some calls beside those that look at everything."""
    n = geon.Axis("N", 1 << 23)
    x = geon.placeholder([n], dtype="int8")
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.any(x), x)
        ones, zeros = np.ones(1 << 23, np.int8), np.full(1 << 23, 0, np.int8)
        seconds = [min(timed(f, each) for _ in range(9)) for each in (ones, zeros)]
    assert seconds[0] < seconds[1] / 2


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_columns_that_are_decided_at_once_read_little(dtype):
    n, m = geon.Axis("N", 1 << 14), geon.Axis("M", 64)
    x = geon.placeholder([n, m], dtype=dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.all(x, n), x)
        ones, zeros = np.ones((1 << 14, 64), dtype), np.zeros((1 << 14, 64), dtype)
        seconds = [min(timed(f, each) for _ in range(9)) for each in (zeros, ones)]
        late = ones.copy()
        late[-1, 63] = 0
        np.testing.assert_array_equal(f(late), late.all(0))
    assert seconds[0] < seconds[1] / 2


def timed(f, data):
    began = time.perf_counter()
    f(data)
    return time.perf_counter() - began


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_truths_along_two_axes_are_decided_together(order, fold):
    """Those of columns whose kept axes stay two loops."""
    kept, folded, columns = axes = geon.Axis("A", 7), geon.Axis("T"), geon.Axis("B")
    x = geon.placeholder([axes[k] for k in order])
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(getattr(geon, fold)(geon.cast(x, "bool"), folded), x)
        assert "break;" in f.source
        for terms, count in ((3000, 4), (3000, 70), (5, 1), (1, 7), (0, 3)):
            sizes = {kept: 7, folded: terms, columns: count}
            for share in (0.0, 0.001, 0.5, 0.999, 1.0):
                shape = [sizes[axes[k]] for k in order]
                data = (np.random.default_rng(terms).random(shape) < share).astype(np.float32)
                right = FOLDS[fold](data, order.index(1))
                np.testing.assert_array_equal(f(data), right)


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_truths_of_jammed_terms_and_of_those_left_are_one_flag(dtype, fold):
    """Both are folded into the same states, which one test of the loop around them reads."""
    a, b, c = axes = geon.Axis("A"), geon.Axis("B"), geon.Axis("C")
    x, y = geon.placeholder(axes, dtype=dtype), geon.placeholder([b], dtype=dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(getattr(geon, fold)(x > y, [a, b]), x, y)
        assert f.source.count(" open_0 = 0;") == f.source.count("if (!open_0) break;") == 1
        for shape in ((40, 131, 3), (2, 4, 300), (1, 3, 7), (50, 1, 1), (0, 5, 2)):
            for share in (0.0, 0.001, 0.5, 0.999, 1.0):
                drawn = np.random.default_rng(shape[1])
                data = (drawn.random(shape) < share).astype(dtype)
                least = np.zeros(shape[1], dtype)
                right = FOLDS[fold](data > least[:, None], (0, 1))
                np.testing.assert_array_equal(f(data, least), right)
