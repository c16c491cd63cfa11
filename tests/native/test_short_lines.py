"""Short lines are sorted side by side: as NumPy sorts each, however many there are."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
SHAPES = [(lines, inner) for lines in (1, 5, 15, 16, 17, 33) for inner in (1, 2, 16, 21)]
FEW = {"float32": 56, "float64": 88, "int8": 32, "uint16": 40, "int64": 88, "bool": 32}


def values(dtype, shape, ties):
    generator = np.random.default_rng(len(shape) + ties)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind != "f":
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = generator.integers(-3, 3, shape) / 2 if ties else generator.normal(size=shape)
    x = x.astype(dtype)
    flat = x.reshape(-1)
    flat[::11] = np.resize([np.nan, np.inf, -np.inf, 0.0], flat[::11].shape)
    if ties:
        flat[3::13] = -0.0
    return x


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("ties", [False, True])
def test_short_lines_are_sorted_as_numpy_sorts_them(dtype, ties):
    """At lengths around that up to which a network sorts them, and lines around its lanes."""
    lengths = (0, 1, 2, 3, 8, FEW[dtype] - 1, FEW[dtype], FEW[dtype] + 1)
    outer, n, inner = geon.Axis("Outer"), geon.Axis("N"), geon.Axis("Inner")
    x = geon.placeholder([outer, n, inner], dtype)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        made = [geon.sort(x, n), geon.argsort(x, n)]
        f, g = (each.computation(made, x) for each in (one, two))
        for length, (lines, beside) in itertools.product(lengths, SHAPES):
            data = values(dtype, (lines, length, beside), ties)
            found, order = f(data)
            wanted = np.argsort(data, axis=1, kind="stable")
            np.testing.assert_array_equal(order, wanted)
            sorted_data = np.take_along_axis(data, wanted, 1)
            again = [each.tobytes() for each in g(data)]
            assert again == [found.tobytes(), order.tobytes()]
            assert canonical(found).tobytes() == canonical(sorted_data).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize("ties", [False, True])
def test_longer_lines_are_sorted_as_numpy_sorts_them(dtype, ties):
    """At lengths around those up to which networks of all vectors sort them; half are found too."""
    outer, n, inner = geon.Axis("Outer"), geon.Axis("N"), geon.Axis("Inner")
    x = geon.placeholder([outer, n, inner], dtype)
    k = 120
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(
            [geon.sort(x, n), geon.argsort(x, n), geon.top_k(x, k, n)[1]], x
        )
        for length in (255, 257, 520, 1024, 1025, 1900, 2048, 2049):
            for lines, beside in ((19, 1), (1, 21), (3, 1)):
                data = values(dtype, (lines, length, beside), ties)
                found, order, largest = f(data)
                wanted = np.argsort(data, axis=1, kind="stable")
                np.testing.assert_array_equal(order, wanted)
                sorted_data = np.take_along_axis(data, wanted, 1)
                assert canonical(found).tobytes() == canonical(sorted_data).tobytes()
                keys = data.astype(float)
                ranks = np.where(np.isnan(keys), -np.inf, -keys)
                by_rank = np.lexsort((ranks, ~np.isnan(keys)), axis=1)
                np.testing.assert_array_equal(largest, by_rank[:, :k])


def test_few_long_columns_are_divided_among_threads():
    n, inner = geon.Axis("N"), geon.Axis("Inner")
    x = geon.placeholder([n, inner], "float32")
    for threads in (1, 2, 4):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation([geon.sort(x, n), geon.argsort(x, n)], x)
            for columns in (2, 3, 5):
                data = np.random.default_rng(columns).normal(size=(9000, columns)).astype("float32")
                found, order = f(data)
                np.testing.assert_array_equal(found, np.sort(data, axis=0))
                wanted = np.argsort(data, axis=0, kind="stable")
                np.testing.assert_array_equal(order, wanted)


def canonical(x):
    """NaNs without what they carry."""
    if x.dtype.kind == "f":
        x[np.isnan(x)] = np.nan
    return x


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_the_largest_of_short_lines(k, dtype):
    outer, n = geon.Axis("Outer"), geon.Axis("N")
    x = geon.placeholder([outer, n], dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.top_k(x, k, n)[1], x)
        for lines, length in itertools.product((1, 15, 16, 17, 40), (max(k, 6), 20, 31, 33, 57)):
            data = values(dtype, (lines, length), True)
            keys = data.astype(float)
            ranks = np.where(np.isnan(keys), -np.inf, -keys)
            first = np.lexsort(
                (np.broadcast_to(np.arange(length), keys.shape), ranks, ~np.isnan(keys))
            )
            np.testing.assert_array_equal(f(data), first[:, :k])
