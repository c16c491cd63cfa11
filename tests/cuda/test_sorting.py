"""Lines in order, at lengths around those at which the way of sorting changes."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.kernels import sorting
from geon.transformers.pycuda.runtime.host import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")
A, N, B = geon.Axis("A"), geon.Axis("N"), geon.Axis("B")
LENGTHS = [
    (3, 1, 2),
    (0, 5, 2),
    (2, sorting.MAX_ALL_PAIRS_ELEMENTS - 1, 3),
    (1, sorting.MAX_ALL_PAIRS_ELEMENTS, 1),
    (2, sorting.MAX_ALL_PAIRS_ELEMENTS + 1, 2),
    (2, 2 * sorting.MAX_ALL_PAIRS_ELEMENTS, 1),
    (1, 3 * sorting.MAX_ALL_PAIRS_ELEMENTS + 5, 3),
    (1, sorting.MAX_SHARED_SORT_ELEMENTS - 1, 2),
    (3, sorting.MAX_SHARED_SORT_ELEMENTS, 1),
    (2, sorting.MAX_SHARED_SORT_ELEMENTS + 1, 2),
    (1, sorting.TILE_ELEMENTS - 1, 1),
    (1, sorting.TILE_ELEMENTS, 2),
    (2, sorting.TILE_ELEMENTS + 1, 1),
    (1, 3 * sorting.TILE_ELEMENTS + 77, 1),
]
DTYPES = [
    "float32", "float64", "float16", "bfloat16", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


def numbers(dtype, shape, seed=0):
    """Numbers with ties; floats with NaN, infinities and both zeros among them."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        info = np.iinfo(dtype)
        found = random.integers(info.min, info.max, shape, dtype, endpoint=True)
        found.reshape(-1)[::3] = random.integers(0, 5, found.reshape(-1)[::3].shape)
        return found
    found = random.normal(size=shape)
    found.reshape(-1)[::2] = np.round(found.reshape(-1)[::2])
    for start, special in ((3, np.nan), (5, np.inf), (7, -np.inf), (11, -0.0), (13, 0.0)):
        found.reshape(-1)[start::29] = special
    return found.astype(geon.placeholder([], dtype).dtype)


def order(x, descending=False):
    """The stable order along the middle axis, NaN last (first from above)."""
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x
    ranks = np.unique(wide, return_inverse=True)[1].reshape(x.shape)  # all NaN are the largest
    return np.argsort(-ranks if descending else ranks, axis=1, kind="stable")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_in_order(dtype):
    x = geon.placeholder([A, N, B], dtype, name="x")
    lengths = LENGTHS if dtype in ("float32", "int8") else LENGTHS[4:14:4]
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(geon.argsort(x, N), x)
        g = cuda.computation(geon.sort(x, N), x)
        for shape in lengths:
            given = numbers(dtype, shape)
            expected = order(given)
            np.testing.assert_array_equal(f(given), expected, err_msg=str(shape))
            if lengths is LENGTHS:
                assert g(given).tobytes() == np.take_along_axis(given, expected, 1).tobytes(), shape


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int16", "bfloat16"])
@pytest.mark.parametrize("k", [1, sorting.MAX_ALL_PAIRS_ELEMENTS])
def test_top_k(dtype, k):
    x = geon.placeholder([A, N, B], dtype, name="x")
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        f, g = (each.computation([*geon.top_k(x, k, N)], x) for each in (cuda, numpy))
        for shape in LENGTHS[3:14:3]:
            given = numbers(dtype, shape)
            for a, b in zip(f(given), g(given), strict=True):
                a, b = (each.astype(np.float64) for each in (a, b))
                np.testing.assert_array_equal(a, b, err_msg=str(shape))


def test_known_lengths_have_one_way():
    for n in (
        sorting.MAX_ALL_PAIRS_ELEMENTS,
        sorting.MAX_ALL_PAIRS_ELEMENTS + 1,
        sorting.MAX_SHARED_SORT_ELEMENTS,
        sorting.MAX_SHARED_SORT_ELEMENTS + 1,
    ):
        x = geon.placeholder([A, geon.Axis("M", n)], name="x")
        with geon.make_transformer("cuda-on-host") as cuda:
            f = cuda.computation(geon.sort(x, x.axes[1]), x)
            calls = {
                "other < n": n <= sorting.MAX_ALL_PAIRS_ELEMENTS,
                "geon_sort_line": sorting.MAX_ALL_PAIRS_ELEMENTS
                < n
                <= sorting.MAX_SHARED_SORT_ELEMENTS,
                "geon_move_by_digit": n > sorting.MAX_SHARED_SORT_ELEMENTS,
            }
            kernels = f.source[f.source.index('extern "C"') :]
            assert {text: text in kernels for text in calls} == calls
            given = numbers("float32", (2, n))
            np.testing.assert_array_equal(f(given), np.sort(given, axis=1))


def test_sorts_have_no_races():
    x = geon.placeholder([A, N, B], name="x")
    with geon.make_transformer("cuda-on-host", checks="races") as cuda:
        f = cuda.computation(geon.argsort(x, N), x)
        for shape in (
            (2, 9, 3),
            (2, 100, 2),
            (1, sorting.MAX_SHARED_SORT_ELEMENTS + 3, 2),
            (1, sorting.TILE_ELEMENTS + 9, 1),
        ):
            given = numbers("float32", shape)
            np.testing.assert_array_equal(f(given), order(given))
