"""Joins, borders, updates and slopes of slices at lengths near those at which pieces are made."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.kernels.test_pieces import JOINS, taken

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

A, B, C = (geon.Axis(name) for name in "ABC")
DTYPES = ["float32", "float64", "float16", "int32", "int8", "bool"]


def values(shape, dtype, seed=0):
    """Numbers, some of which are no numbers or not finite."""
    x = np.random.default_rng(seed).integers(-9, 9, shape)
    if np.dtype(dtype).kind == "f":
        x = x / 4
        x.reshape(-1)[::7] = np.resize([np.nan, np.inf, -np.inf, -0.0], x.reshape(-1)[::7].shape)
    return x.astype(dtype)


def compare(results, inputs, arrays):
    """One thread, two, and each value apart give the bits that NumPy's transformer gives."""
    with geon.make_transformer("numpy") as transformer:
        wanted = transformer.computation(results, *inputs)(*arrays)
    for threads, plan in [(1, True), (2, True), (2, False)]:
        with geon.make_transformer("native", threads=threads) as transformer:
            found = transformer.computation(results, *inputs, plan=plan)(*arrays)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, b)
                assert np.array_equal(np.signbit(a), np.signbit(b)) or a.dtype.kind != "f"


def joined(x, y, axes):
    """Joins of two values along each axis, with what is done before and after."""
    if x.dtype.name == "bool":
        found = [geon.concat([x, geon.logical_not(y), x], axis) for axis in axes]
        return [*found, geon.stack([x, y], geon.Axis("S"), len(axes))]
    found = [geon.concat([x + x, y, x * y], axis) * 2 for axis in axes]
    found += [geon.pad(x + y, dict.fromkeys(axes, (1, 2)), value=3) * 2]
    found += [geon.stack([x, y, x + y], geon.Axis("S"), k) for k in range(len(axes) + 1)]
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(2, 3, 5), (1, 1, 300), (40, 7, 1), (9, 8, 33)], ids=str)
def test_dtypes_and_axes(dtype, lengths):
    for axes in (
        [A, B, C],
        [axis.with_length(n) for axis, n in zip([A, B, C], lengths, strict=False)],
    ):
        x, y = geon.placeholder(axes, dtype), geon.placeholder(axes, dtype)
        arrays = values(lengths, dtype), values(lengths, dtype, 1)
        compare(joined(x, y, axes), [x, y], arrays)


@pytest.mark.parametrize("name", JOINS)
def test_orders_of_axes_and_lengths(name):
    """Also where the joined values lie across memory."""
    sides = [2, 3, 7, 8, 9, 63, 64, 65]
    n, c = geon.Axis("N"), geon.Axis("C")
    x, y = geon.placeholder([n, c]), geon.placeholder([c, n])
    results = [JOINS[name](x, n, c), JOINS[name](geon.reorder(y, [n, c]), n, c)]
    with (
        geon.make_transformer("native", threads=2) as native,
        geon.make_transformer("numpy") as numpy,
    ):
        f, g = (each.computation(results, x, y) for each in (native, numpy))
        for rows, columns in itertools.product(sides, sides):
            a, b = values((rows, columns), "float32"), values((columns, rows), "float32", 2)
            for got, want in zip(f(a, b), g(a, b), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("width", [*range(1, 20), 63, 64, 65, 200])
def test_widths_near_the_constants(width):
    n, c = geon.Axis("N", 37), geon.Axis("C", width)
    x, y = geon.placeholder([n, c]), geon.placeholder([n, c.with_length(width + 1)])
    results = [geon.concat([x * 2, y], c), geon.concat([y, x * x, y], c) + 1]
    results += [geon.pad(x + 1, {c: (k, 9 - k)}) for k in range(10)]
    arrays = values((37, width), "float32"), values((37, width + 1), "float32", 1)
    compare(results, [x, y], arrays)


def test_updates_in_place_and_apart():
    n, c = geon.Axis("N", 50), geon.Axis("C", 40)
    x = geon.placeholder([n, c])
    with geon.make_transformer("native", threads=2) as transformer:
        v = geon.Variable([n, c], initial_value=1)
        part = geon.concat([taken(x, c, 0, 15) * 2, taken(x, c, 20, 35)], c)
        w = geon.assign(v[{c: slice(5, 35)}], part)
        f = transformer.computation(w, x)
        array = values((50, 40), "float32")
        f(array)
        wanted = np.ones((50, 40), np.float32)
        wanted[:, 5:20], wanted[:, 20:35] = array[:, :15] * 2, array[:, 20:35]
        np.testing.assert_array_equal(transformer.get(v), wanted)


def test_slopes_near_the_ends_of_short_axes():
    """Open lengths for which pieces would overlap are computed as a whole."""
    n, c = geon.Axis("N"), geon.Axis("C")
    x = geon.placeholder([n, c])
    along = [
        taken(x, c, 3, None) - taken(x, c, None, -3),
        taken(x, n, 2, None) - taken(x, n, 0, -2),
    ]
    slope = geon.deriv(sum(geon.sum(geon.square(each)) for each in along), x)
    with (
        geon.make_transformer("native", threads=2) as native,
        geon.make_transformer("numpy") as numpy,
    ):
        f, g = native.computation(slope, x), numpy.computation(slope, x)
        for rows, columns in itertools.product(range(3, 9), range(4, 12)):
            a = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(np.float32)
            np.testing.assert_array_equal(f(a), g(a))
