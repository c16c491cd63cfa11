"""Attention is one kernel without the square of weights, at lengths around those of its tiles."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.products import (
    attention,
    attention_text,
    product_tiles,
)
from geon.transformers.pycuda.runtime import host

from .devices import in_stages, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
B, T, S = geon.Axis("B"), geon.Axis("T"), geon.Axis("S")
H = geon.Axis("H", 2)
CLOSE = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
LENGTHS = (
    (1, 1, 1),
    (2, 3, 5),
    (1, attention_text.TILE_KEYS - 1, attention_text.TILE_KEYS),
    (1, attention_text.TILE_KEYS + 1, attention_text.TILE_KEYS + 1),
    (1, product_tiles.TALL_TILE_ROWS, 2 * attention_text.TILE_KEYS - 1),
    (2, product_tiles.TALL_TILE_ROWS + 1, 2 * attention_text.TILE_KEYS + 1),
    (1, 3, 9 * attention_text.TILE_KEYS),
)
WIDTHS = [
    (64, 64),
    (attention.WMMA_DEPTH - 1, attention.WMMA_DEPTH + 1),
    (8, attention.MAX_PART_RESULTS),
    (1, 1),
    (8, attention.MAX_PART_RESULTS + 1),
    (2 * attention.MAX_PART_RESULTS, 2 * attention.MAX_PART_RESULTS),
    (5, 3 * attention.MAX_PART_RESULTS - 7),
]


def operands(dtype="float32", deep=64, wide=64, orders=("BHTD", "BHSD", "BHSE")):
    """Queries, keys and values with axes in these orders."""
    axes = {"B": B, "H": H, "T": T, "S": S, "D": geon.Axis("D", deep), "E": geon.Axis("E", wide)}
    pairs = zip(("q", "k", "v"), orders, strict=True)
    return [geon.placeholder([axes[n] for n in order], dtype, name=name) for name, order in pairs]


def product(x, y, over):
    return geon.dot(x, y, over=[x.axes[over]])


def attended(q, k, v, masked=False):
    """Attention as everybody writes it."""
    scores = product(q, k, "D") * q.axes["D"].length ** -0.5
    if masked:
        rows, columns = (geon.broadcast(geon.iota(axis), [T, S]) for axis in (T, S))
        scores = geon.where(rows >= columns, scores, geon.cast(-1e4, scores.dtype))
    return product(geon.softmax(scores, normalization_axes=S), v, "S")


def numbers(inputs, lengths, seed=0):
    """Data for placeholders."""
    sizes = dict(zip("BTS", lengths, strict=True))
    random = np.random.default_rng(seed)
    found = []
    for x in inputs:
        shape = [sizes.get(axis.name) or axis.length for axis in x.axes]
        found.append(random.normal(size=shape).astype(x.dtype))
    return found


def kinds(f):
    """What the kernels of a computation are."""
    return [kernel.kind for kernel in f.stages().schedule.kernels]


def compare(graph, inputs, lengths, close, checks=""):
    with geon.make_transformer("cuda-on-host", checks=checks) as cuda, geon.NumPyTransformer() as n:
        f, g = cuda.computation(graph, *inputs), n.computation(graph, *inputs)
        assert kinds(f) == ["blocked"]
        for each in lengths:
            given = numbers(inputs, each)
            found, expected = (np.asarray(h(*given)).astype(np.float64) for h in (f, g))
            np.testing.assert_allclose(found, expected, atol=close, rtol=close, err_msg=str(each))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", CLOSE)
def test_lengths_around_tiles(dtype, masked):
    inputs = operands(dtype)
    compare(attended(*inputs, masked), inputs, LENGTHS, CLOSE[dtype])


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_widths_around_steps(dtype, widths):
    inputs = operands(dtype, *widths)
    compare(attended(*inputs), inputs, LENGTHS[1:6:2], CLOSE[dtype])


@pytest.mark.parametrize(
    "orders",
    [
        ("BTHD", "BSHD", "BSHE"),
        ("BHDT", "BHDS", "BHES"),
        ("TD", "SD", "SE"),
        ("BHTD", "BSD", "BSE"),  # keys that all heads share
        ("BTHD", "SD", "ES"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operands_as_they_lie(dtype, orders):
    inputs = operands(dtype, 24, 16, orders)
    compare(attended(*inputs), inputs, LENGTHS[1:6:2], CLOSE[dtype])
    swapped = product(
        inputs[2],
        geon.softmax(product(inputs[1], inputs[0], "D"), normalization_axes=S),
        "S",
    )
    compare(swapped, inputs, LENGTHS[1:2], 2 * CLOSE[dtype])


def around(dtype):
    """Attention with something computed around each of its parts, and its inputs."""
    q, k, v = operands(dtype, 16, 16)
    bias = geon.placeholder([H, T, S], dtype, name="bias")
    scores = product(geon.relu(q), k * 2, "D") + bias
    made = geon.tanh(product(geon.softmax(scores, normalization_axes=S), v + 1, "S")) * 3
    return made, [q, k, v, bias]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_computed_around_it_is_in_it(dtype):
    """Scores of halves are float32 in it, so results are those of float32 but for a rounding."""
    (graph, inputs), (exact, exact_inputs) = around(dtype), around("float32")
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        f = cuda.computation(graph, *inputs)
        g = numpy.computation(exact, *exact_inputs)
        assert kinds(f) == ["blocked"]
        for each in LENGTHS[1:6:2]:
            given = numbers(inputs, each)
            found = np.asarray(f(*given)).astype(np.float64)
            expected = g(*[x.astype(np.float32) for x in given])
            close = CLOSE[dtype]
            np.testing.assert_allclose(found, expected, atol=close, rtol=close, err_msg=str(each))


@pytest.mark.parametrize("stages", [3, 4])
def test_keys_come_ahead_in_stages(stages):
    """Three stages or four, of fewer tiles of keys, as many and more."""
    device = in_stages(stages)
    inputs = operands("bfloat16", 16, 16)
    exact = operands("float32", 16, 16)
    with transformer_on(device) as cuda, geon.NumPyTransformer() as numpy:
        f = cuda.computation(attended(*inputs), *inputs)
        g = numpy.computation(attended(*exact), *exact)
        for tiles in range(1, 7):
            given = numbers(inputs, (1, 2, attention_text.TILE_KEYS * tiles - tiles % 2))
            found = np.asarray(f(*given)).astype(np.float64)
            expected = g(*[x.astype(np.float32) for x in given])
            np.testing.assert_allclose(found, expected, rtol=CLOSE["bfloat16"], atol=1e-2)


def test_scores_that_are_not_finite():
    q, k, v = operands(deep=4, wide=8)
    added = geon.placeholder([T, S], name="added")
    scores = product(q, k, "D") + added
    graph = product(geon.softmax(scores, normalization_axes=S), v, "S")
    given = numbers([q, k, v, added], (1, 9, 150))
    given[3][0], given[3][1, :100], given[3][2, 70:] = -np.inf, -np.inf, -np.inf
    given[3][3, 5], given[3][4, 140], given[3][5, 70] = np.nan, np.inf, -np.inf
    given[3][6], given[3][7, :64] = np.inf, np.nan
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        f, g = (each.computation(graph, q, k, v, added) for each in (cuda, numpy))
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(f(*given), g(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_is_that_of_what_goes_in_and_comes_out(dtype):
    inputs = operands(dtype)
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(attended(*inputs), *inputs)
        size = inputs[0].dtype.itemsize
        lengths = {B: 1, T: 1 << 16, S: 1 << 20}
        assert f.peak_bytes(lengths) == 2 * (1 << 16) * 64 * size


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_long_rows_of_equal_weights(dtype):
    inputs = operands(dtype, 16, 16, ("TD", "SD", "SE"))
    with geon.make_transformer("cuda-on-host") as cuda:
        f = cuda.computation(attended(*inputs), *inputs)
        length = 20000
        q = np.zeros((1, 16), dtype)
        v = np.full((length, 16), 0.1, dtype)
        found = f(q, np.ones((length, 16), dtype), v)
        np.testing.assert_allclose(found, v[:1], rtol=1e-6 if dtype == "float32" else 1e-3)
        np.testing.assert_array_equal(found, f(q, np.ones((length, 16), dtype), v))


def test_what_is_not_it_is_computed_as_ever():
    wide = operands(deep=8, wide=attention.MAX_ROW_RESULTS + 1)
    q, k, v = operands()
    scores = product(q, k, "D")
    weights = geon.softmax(scores, normalization_axes=S)
    others = {
        "wide results": (attended(*wide), wide),
        "weights are asked for": ([weights, product(weights, v, "S")], [q, k, v]),
        "no softmax": (product(geon.exp(scores - geon.mean(scores, S)), v, "S"), [q, k, v]),
        "slope": (geon.deriv(geon.sum(attended(q, k, v)), q), [q, k, v]),
    }
    with geon.make_transformer("cuda-on-host") as cuda, geon.NumPyTransformer() as numpy:
        for name, (graph, inputs) in others.items():
            f, g = cuda.computation(graph, *inputs), numpy.computation(graph, *inputs)
            assert "blocked" not in kinds(f), name
            given = numbers(inputs, (1, 5, 7))
            for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (f(*given), g(*given))),
                            strict=True):  # fmt: skip
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_it_has_no_races(dtype):
    for wide in (24, attention.MAX_PART_RESULTS + 5):
        inputs = operands(dtype, 40, wide)
        compare(attended(*inputs, True), inputs, LENGTHS[3:4], CLOSE[dtype], "races")
