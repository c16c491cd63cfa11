"""Values set and added at positions, in their order where these are equal."""

import numpy as np
import pytest

import geon
from geon.op_graph.rows.indexing import COMBINING
from geon.transformers.pycuda.kernels import scattering, sorting
from geon.transformers.pycuda.runtime.host import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")
A, M, B = geon.Axis("A"), geon.Axis("M"), geon.Axis("B")
COUNTS = [
    n + more
    for n in (
        scattering.MAX_UNSORTED_POSITIONS,
        sorting.MAX_ALL_PAIRS_ELEMENTS,
        sorting.MAX_SHARED_SORT_ELEMENTS,
        sorting.TILE_ELEMENTS,
    )
    for more in (-1, 0, 1)
] + [0, 1, 3 * sorting.TILE_ELEMENTS + 5]


def given(dtype, n, m, seed=0):
    """What is written to, positions from both ends, many of them equal, and values."""
    random = np.random.default_rng(seed)
    at = random.integers(-n, n, m)
    at[: m // 2] = random.integers(-n, n, 3)[random.integers(0, 3, m // 2)]
    x, values = (random.normal(size=(2, size, 3)) * 50 for size in (n, m))
    return x.astype(dtype), at, values.astype(dtype)


def program(how, n, dtype):
    N = geon.Axis("N", n)
    x = geon.placeholder([A, N, B], dtype, name="x")
    at = geon.placeholder([M], "int64", name="at")
    values = geon.placeholder([A, M, B], dtype, name="values")
    return geon.scatter(x, at, values, N, mode=how), [x, at, values]


def expected(how, x, at, values):
    """One after the other; halves are added in float32 and rounded at the end."""
    found = x.astype(np.float32 if x.dtype == np.float16 else x.dtype)
    for k, place in enumerate(at):
        value, old = values[:, k], found[:, place]
        found[:, place] = value if how == "set" else COMBINING[how](old, value)
    return found.astype(x.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("how", ["set", "add", "max", "min"])
@pytest.mark.parametrize("n", [5, 300])
def test_positions_in_their_order(how, n, dtype):
    graph, inputs = program(how, n, dtype)
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(graph, *inputs)
        for m in COUNTS:
            data = given(dtype, n, m)
            np.testing.assert_array_equal(f(*data), expected(how, *data), err_msg=str(m))


def test_an_open_axis_has_all_digits():
    N = geon.Axis("N")
    x = geon.placeholder([N], name="x")
    at, values = geon.placeholder([M], "int64", name="at"), geon.placeholder([M], name="values")
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(geon.scatter(x, at, values, N, mode="add"), x, at, values)
        for n in (1, 255, 256, 257, 65535, 65536, 65537, 1 << 20):
            random = np.random.default_rng(n)
            data = np.zeros(n, np.float32), random.integers(-n, n, 3000), np.ones(3000, np.float32)
            found = np.zeros(n, np.float32)
            np.add.at(found, data[1], data[2])
            np.testing.assert_array_equal(f(*data), found, err_msg=str(n))


def test_known_numbers_of_positions_have_one_way():
    for m in (
        scattering.MAX_UNSORTED_POSITIONS,
        scattering.MAX_UNSORTED_POSITIONS + 1,
        sorting.MAX_SHARED_SORT_ELEMENTS,
        sorting.MAX_SHARED_SORT_ELEMENTS + 1,
    ):
        N, K = geon.Axis("N", 70), geon.Axis("K", m)
        x = geon.placeholder([N], name="x")
        at, values = geon.placeholder([K], "int64", name="at"), geon.placeholder([K], name="v")
        with geon.make_transformer("cuda-on-host") as cuda:
            f = cuda.computation(geon.scatter(x, at, values, N, mode="add"), x, at, values)
            kernels = f.source[f.source.index('extern "C"') :]
            assert ("geon_sort_line" in kernels) == (
                scattering.MAX_UNSORTED_POSITIONS < m <= sorting.MAX_SHARED_SORT_ELEMENTS
            )
            assert ("geon_move_by_digit" in kernels) == (m > sorting.MAX_SHARED_SORT_ELEMENTS)
            where = np.arange(m) % 70
            found = f(np.zeros(70, np.float32), where, np.ones(m, np.float32))
            np.testing.assert_array_equal(found, np.bincount(where, minlength=70))


def test_scatters_have_no_races():
    graph, inputs = program("add", 300, "float32")
    with geon.make_transformer("cuda-on-host", checks="races") as cuda:
        f = cuda.computation(graph, *inputs)
        for m in (5, 40, sorting.TILE_ELEMENTS + 7):
            data = given("float32", 300, m)
            np.testing.assert_array_equal(f(*data), expected("add", *data))
