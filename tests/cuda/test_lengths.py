"""CUDA kernels at lengths just below, at and above every number at which they change their way.

One program with open lengths serves all of them; a part is made again for known lengths, where the
text differs. They are compared with NumPy's.
"""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.nests import unrolled_reductions
from geon.transformers.loops.rules.teams import MAX_REGISTER_ELEMENTS
from geon.transformers.pycuda.kernels import (
    cooperative_threads,
    sorting,
    split_reductions,
    tree_choice,
)
from geon.transformers.pycuda.launches import launch_ir
from geon.transformers.pycuda.products import contractions, product_tiles
from geon.transformers.pycuda.runtime.host import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")

NUMBERS = sorted({
    1, tree_choice.MAX_THREAD_ROW_ELEMENTS, tree_choice.MAX_THREAD_COLUMN_ELEMENTS,
    product_tiles.DEFAULT_TILE_DEPTH, product_tiles.NARROW_TILE_SIDE,
    product_tiles.TALL_TILE_ROWS, unrolled_reductions.MAX_SERIAL_TERMS,
    cooperative_threads.WARP_SIZE,
    unrolled_reductions.MAX_SERIAL_TERMS * cooperative_threads.WARP_SIZE,
    cooperative_threads.MAX_WARP_ROW_ELEMENTS,
    launch_ir.THREADS_PER_BLOCK, sorting.MAX_ALL_PAIRS_ELEMENTS, 2 *
    sorting.MAX_ALL_PAIRS_ELEMENTS,
    launch_ir.THREADS_PER_BLOCK, contractions.MAX_SERIAL_TERMS, launch_ir.MIN_PART_TURNS, 2 *
    launch_ir.MIN_PART_TURNS,
})  # fmt: skip
LENGTHS = sorted({length for n in NUMBERS for length in (n - 1, n, n + 1)})
LONG = [split_reductions.ELEMENTS_PER_BLOCK + k for k in (-1, 0, 1)] + [
    3 * split_reductions.ELEMENTS_PER_BLOCK + 5
]
N, C, T = geon.Axis("N"), geon.Axis("C"), geon.Axis("T")
x = geon.placeholder([N, C], name="x")
v = geon.placeholder([C], name="v")
words = geon.placeholder([T], "int64", name="words")
rows = geon.placeholder([T, C], name="rows")


def softmax(x):
    return geon.softmax(x, normalization_axes=C)


GRAPHS = {
    "elements": geon.tanh(x) * v + 1,
    "types": [
        x > 0,
        geon.cast(x, "int8"),
        geon.cast(x, "float16"),
        geon.cast(x, "float64") * 3,
        geon.where(geon.cast(x, "int32") > 1, geon.cast(x, "bfloat16"), 0),
    ],
    "softmax": softmax(x),
    "softmax_of_columns": geon.softmax(x, normalization_axes=N),
    "derivative_of_softmax": geon.deriv(geon.sum(geon.square(softmax(x))), x),
    "normalized": (x - geon.mean(x, C)) * geon.rsqrt(geon.variance(x, C) + 1e-5),
    "rows": [geon.sum(x, reduction_axes=C), geon.max(x, reduction_axes=C)],
    "columns": [geon.sum(x, reduction_axes=N), geon.argmin(x, reduction_axes=N)],
    "shares_of_columns": geon.mean(geon.square(x), N) * 2 + geon.max(x, reduction_axes=N),
    "everything": [geon.sum(x), geon.min(x), geon.any(x > 2), geon.mean(geon.exp(x))],
    "reordered": geon.reorder(x, [C, N]),
    "product": geon.relu(geon.dot(x, geon.rename(x, {"N": "M"})) + 1),
    "vector": geon.dot(x, v),
    "order": [geon.sort(x, C), geon.argsort(x, N)],
    "prefixes": [geon.cumsum(x, C), geon.cumsum(x, N)],
    "extremes": [geon.argmax(x, reduction_axes=C), geon.argmax(x)],
    "joined": geon.concat([x, x * 2, x], C),
}


def data(n, c):
    """Numbers with ties, infinities and both zeros among them."""
    random = np.random.default_rng(n * 1000 + c)
    found = random.normal(size=(n, c)).astype(np.float32)
    found.reshape(-1)[::7] = np.round(found.reshape(-1)[::7])
    return found, random.normal(size=c).astype(np.float32)


def shapes():
    """Each length along one axis beside short ones along the other."""
    for length in LENGTHS:
        yield 3, length
        yield length, 2
    yield 33, 65
    yield 65, 33
    yield 3 * launch_ir.MIN_PART_TURNS + 1, 70


@pytest.fixture(scope="module")
def both():
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        yield cuda, numpy


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_open_lengths(name, both):
    graph = GRAPHS[name]
    inputs = [x, v] if name in ("elements", "vector") else [x]
    f, g = (each.computation(graph, *inputs) for each in both)
    for n, c in shapes():
        if 0 in (n, c) and name not in ("elements", "types", "product", "prefixes"):
            continue
        given = data(n, c)[: len(inputs)]
        compare(f(*given), g(*given), (name, n, c))


@pytest.mark.slow
@pytest.mark.parametrize("length", LONG)
def test_many_elements(length, both):
    for name in ("everything", "softmax", "extremes", "elements"):
        inputs = [x, v] if name == "elements" else [x]
        f, g = (each.computation(GRAPHS[name], *inputs) for each in both)
        rows = [] if name == "extremes" else [(length, 1)]  # of which each is a block
        for n, c in ((1, length), *rows):
            given = data(n, c)[: len(inputs)]
            compare(f(*given), g(*given), (name, n, c))


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_known_lengths(name, both):
    graph = GRAPHS[name]
    inputs = [x, v] if name in ("elements", "vector") else [x]
    for n, c in (
        (3, 4),
        (5, 5),
        (4, 33),
        (2, cooperative_threads.MAX_WARP_ROW_ELEMENTS + 1),
        (40, 9),
        (70, 17),
    ):
        f, g = (each.computation(graph, *inputs, specialize={N: n, C: c}) for each in both)
        given = data(n, c)[: len(inputs)]
        compare(f(*given), g(*given), (name, n, c))


@pytest.mark.parametrize(
    "length",
    [
        n + more
        for n in (
            cooperative_threads.WARP_SIZE,
            cooperative_threads.MAX_WARP_ROW_ELEMENTS,
            MAX_REGISTER_ELEMENTS * launch_ir.THREADS_PER_BLOCK,
        )
        for more in (-1, 0, 1)
    ],
)
def test_rows_that_threads_hold(length, both):
    for name in ("softmax", "derivative_of_softmax"):
        f, g = (each.computation(GRAPHS[name], x, specialize={C: length}) for each in both)
        fits = length <= MAX_REGISTER_ELEMENTS * launch_ir.THREADS_PER_BLOCK
        assert ("(slot + " not in f.source) == fits or name != "softmax"
        for n in (1, 9):
            given = data(n, length)[:1]
            compare(f(*given), g(*given), (name, n, length))


def compare(found, expected, where):
    """Numbers as near as rounding lets them be; all else equal."""
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(found, expected, strict=True):
        if np.asarray(b).dtype.kind in "fV":
            a, b = (np.asarray(each).astype(np.float64) for each in (a, b))
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=str(where))
        else:
            np.testing.assert_array_equal(a, b, err_msg=str(where))
