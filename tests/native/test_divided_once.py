"""What divides, or takes a root, for each channel does it once, and not for every element."""

import numpy as np
import pytest

import geon
from geon.transformers.lowering.fusion.duplication import MIN_STORED_DIVISIONS, MIN_STORED_REPEATS

SLOW = {
    "divide": (lambda v: 3.0 / v, lambda v: 3 / v),
    "reciprocal": (geon.reciprocal, lambda v: 1 / v),
    "sqrt": (geon.sqrt, np.sqrt),
    "rsqrt": (geon.rsqrt, lambda v: 1 / np.sqrt(v)),
}


def kernels(f):
    """How many kernels a computation has."""
    return len(f.stages().plan.schedule.kernels)


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize(
    ("rows", "columns", "apart"),
    [
        (MIN_STORED_REPEATS, MIN_STORED_DIVISIONS // MIN_STORED_REPEATS, True),
        (MIN_STORED_REPEATS, MIN_STORED_DIVISIONS // MIN_STORED_REPEATS - 1, False),
        (MIN_STORED_REPEATS - 1, MIN_STORED_DIVISIONS, False),
        (None, 32, True),
        (4096, None, True),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_slow_function_of_a_channel_is_stored(name, rows, columns, apart, dtype):
    mine, right = SLOW[name]
    n, c = geon.Axis("N", rows), geon.Axis("C", columns)
    x, v = geon.placeholder([n, c], dtype=dtype), geon.placeholder([c], dtype=dtype)
    a = np.arange((rows or 700) * (columns or 40), dtype=dtype).reshape(rows or 700, -1)
    b = np.linspace(1, 9, columns or 40, dtype=dtype)
    for threads in (1, 2):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(x * (mine(v) + 1), x, v)
            np.testing.assert_allclose(f(a, b), a * (right(b) + 1), rtol=1e-6)
            assert kernels(f) == 1 + apart


@pytest.mark.parametrize("name", SLOW)
def test_of_a_row_it_is_computed_in_the_loop_over_rows(name):
    mine, right = SLOW[name]
    n, c = geon.Axis("N", 300), geon.Axis("C", 500)
    x, v = geon.placeholder([n, c]), geon.placeholder([n])
    a, b = np.ones((300, 500), np.float32), np.linspace(1, 9, 300, dtype=np.float32)
    with geon.NativeTransformer() as transformer:
        f = transformer.computation(x * mine(v), x, v)
        np.testing.assert_allclose(f(a, b), a * right(b)[:, None], rtol=1e-6)
        assert kernels(f) == 1


def test_channels_are_what_lies_side_by_side_whatever_the_order_of_axes():
    n, c = geon.Axis("N", 600), geon.Axis("C", 32)
    x, v = geon.placeholder([n, c]), geon.placeholder([c])
    y = geon.exp((geon.reciprocal(v) + 1) * x)
    assert y.axes.names == ("C", "N")  # but in memory as x is
    a = np.random.default_rng(2).normal(size=(600, 32)).astype(np.float32)
    b = np.linspace(1, 9, 32, dtype=np.float32)
    with geon.NativeTransformer() as transformer:
        f = transformer.computation([geon.sum(y, n), geon.max(y, c)], x, v)
        right = np.exp((1 / b + 1) * a)
        np.testing.assert_allclose(f(a, b)[0], right.sum(0), rtol=1e-5)
        np.testing.assert_allclose(f(a, b)[1], right.max(1), rtol=1e-5)
        assert f.profile(a, b, repeats=1)[0].computes == ("reciprocal (C:32) float32",)


def test_a_batch_norm_divides_for_each_channel_alone():
    axes = [geon.Axis("N"), geon.Axis("H", 20), geon.Axis("C", 16)]
    x, scale = geon.placeholder(axes), geon.placeholder(axes[2:])
    mean = geon.mean(x, out_axes=axes[2:])
    variance = geon.mean(geon.square(x - mean), out_axes=axes[2:])
    a = np.random.default_rng(0).normal(3, 2, (30, 20, 16)).astype(np.float32)
    b = np.linspace(1, 2, 16, dtype=np.float32)
    with geon.NativeTransformer() as transformer:
        f = transformer.computation((x - mean) * geon.rsqrt(variance + 1e-5) * scale, x, scale)
        right = (a - a.mean((0, 1))) / np.sqrt(a.var((0, 1)) + 1e-5) * b
        np.testing.assert_allclose(f(a, b), right, rtol=2e-4, atol=2e-5)
        last = f.profile(a, b, repeats=1)[-1]
        assert last.operations == {"float32": 3 * a.size}


@pytest.mark.parametrize(("rows", "columns"), [(None, 256), (300, 64), (4096, 100)])
def test_a_softmax_over_columns_stays_one_kernel(rows, columns):
    n, c = geon.Axis("N", rows), geon.Axis("C", columns)
    x = geon.placeholder([n, c])
    a = np.random.default_rng(1).normal(size=(rows or 500, columns)).astype(np.float32)
    with geon.NativeTransformer() as transformer:
        f = transformer.computation(geon.softmax(x, n), x)
        e = np.exp(a - a.max(0))
        np.testing.assert_allclose(f(a), e / e.sum(0), rtol=2e-5)
        assert kernels(f) == 1
