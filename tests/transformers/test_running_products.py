"""Derivatives of running products: right where factors are 0, in memory of their operand's size."""

import numpy as np
import pytest

import geon

B, N = geon.Axis("B"), geon.Axis("N")


def slopes(x, g, exclusive, reverse):
    """By the definition: of each result the product of all factors but one."""
    x, g = (a[:, ::-1] if reverse else a for a in (x, g))
    found = np.zeros_like(x)
    for k in range(x.shape[1]):
        others = x.copy()
        others[:, k] = 1
        made = np.cumprod(others, axis=1)
        if exclusive:
            made = np.concatenate([np.ones_like(made[:, :1]), made[:, :-1]], axis=1)
        found[:, k] = (g * made)[:, k + exclusive :].sum(axis=1)
    return found[:, ::-1] if reverse else found


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_slopes_with_factors_of_zero(transformer, exclusive, reverse, dtype):
    x, g = geon.placeholder([B, N], dtype), geon.placeholder([B, N], dtype)
    y = geon.cumprod(x, N, exclusive=exclusive, reverse=reverse)
    slope = geon.deriv(y, x, seed=g)
    f = transformer.computation([slope, geon.jvp(y, x, g)], x, g)
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 7, 40):
        values, seed = (rng.normal(size=(5, count)).astype(dtype) for _ in range(2))
        values[1, count // 2 :][:1] = values[2, :1] = values[2, -1:] = values[3] = 0
        found, along = f(values, seed)
        want = slopes(values.astype(np.float64), seed.astype(np.float64), exclusive, reverse)
        rtol = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-10}[dtype]
        np.testing.assert_allclose(found, want, rtol, rtol * np.abs(want).max(initial=1))
        ones = np.eye(count)[:, None, :] * np.ones((5, 1))
        matrix = [slopes(values.astype(np.float64), one, exclusive, reverse) for one in ones]
        if count:
            pushed = np.einsum("ibk,bk->bi", matrix, seed.astype(np.float64))
            np.testing.assert_allclose(along, pushed, rtol, rtol * np.abs(pushed).max(initial=1))


def test_slopes_take_memory_of_the_operands_size(transformer):
    """A table over the axis would take a thousand times as much."""
    x = geon.placeholder([geon.Axis("R", 1000), geon.Axis("K", 1000)])
    slope = geon.deriv(geon.sum(geon.cumprod(x, "K")), x)
    assert transformer.computation(slope, x).peak_bytes() < 8 * 4_000_000
