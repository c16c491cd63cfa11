"""Contractions: operands as they lie where BLAS reads them so, copied where it cannot."""

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from tests.kinds import numpy_only

from ..op_graph.computing import compute

B, H, K, M, N, T = (geon.Axis(name) for name in "BHKMNT")
LENGTHS = {"B": 2, "H": 3, "K": 4, "M": 5, "N": 6, "T": 7}

# label, axes of x, axes of y, summed axes; all are read as they lie.
AS_THEY_LIE = [
    ("a weight and columns", [H, K], [K, N], [K]),
    ("rows and a weight", [N, K], [K, H], [K]),
    ("rows and a transposed weight", [N, K], [H, K], [K]),
    ("both transposed", [K, N], [H, K], [K]),
    ("the gradient of a weight", [N, K], [N, H], [N]),
    ("a vector", [K], [K, N], [K]),
    ("two vectors", [K], [K], [K]),
    ("all axes", [M, K], [M, K], [M, K]),
    ("attention scores", [B, H, T, K], [B, H, M, K], [K]),
    ("attention values", [B, H, T, M], [B, H, M, K], [M]),
    ("a batch and one weight", [B, T, K], [K, H], [K]),
    ("two summed axes", [N, H, K], [H, K, M], [H, K]),
    ("kept axes on both sides", [B, T, K], [K, H, M], [K]),
]
IRREGULAR = [
    ("summed axes apart", [H, N, K], [K, H, M], [H, K]),
    ("summed axes in another order", [N, H, K], [K, H, M], [H, K]),
    ("a batch axis last", [T, K, B], [K, M, B], [K]),
    ("a batch axis in between", [T, B, K], [M, B, K], [K]),
    ("batch axes in another order", [B, H, T, K], [H, B, M, K], [K]),
    ("kept axes around", [T, K, H], [K, M], [K]),
    ("summed outside and inside", [K, T, M], [M, N, K], [K, M]),
    ("no kept axis, a batch", [B, K], [K, B], [K]),
    ("everything", [B, T, K, H, M], [M, N, B, K], [K, M]),
]


def arrays_of(*axes_lists, dtype=np.float32):
    random = np.random.default_rng(0)
    shapes = [[LENGTHS[a.name] for a in axes] for axes in axes_lists]
    return [random.normal(size=shape).astype(dtype) for shape in shapes]


def check(transformer, ops, leaves, arrays):
    f = transformer.computation(ops, *leaves)
    expected = compute(ops, dict(zip(leaves, arrays, strict=True)), LENGTHS)
    for got, right in zip(f(*arrays), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    return f


def copies(f):
    return [k for k in f.plan.schedule.kernels if k.op.primitive.name == "copy"]


@numpy_only
@pytest.mark.parametrize(("label", "x", "y", "over"), AS_THEY_LIE)
def test_operands_are_read_as_they_lie(transformer, label, x, y, over):
    leaves = [geon.placeholder(axes) for axes in (x, y)]
    f = check(transformer, [geon.dot(*leaves, over=over)], leaves, arrays_of(x, y))
    assert not copies(f), f.source
    assert "copyto" not in f.source


@pytest.mark.parametrize(("label", "x", "y", "over"), AS_THEY_LIE + IRREGULAR)
def test_values(transformer, label, x, y, over):
    leaves = [geon.placeholder(a) for a in (x, y)]
    products = [geon.dot(*leaves, over=over), geon.dot(*leaves[::-1], over=over)]
    check(transformer, products, leaves, arrays_of(x, y))


@pytest.mark.parametrize(("label", "x", "y", "over"), AS_THEY_LIE + IRREGULAR)
def test_values_of_computed_operands(transformer, label, x, y, over):
    leaves = [geon.placeholder(a) for a in (x, y)]
    left = geon.tanh(geon.reorder(leaves[0], x[::-1]))
    right = leaves[1] * 2
    check(transformer, [geon.tanh(geon.dot(left, right, over=over))], leaves, arrays_of(x, y))


def views(x):
    """Looks at ``x`` that BLAS may not read as they lie."""
    last = x.axes[len(x.axes) - 1]
    yield "flipped", geon.flip(x, last)
    yield "stepped", geon.concat([x, x], last)[{last: slice(0, None, 2)}]
    yield "flipped outside", geon.flip(x, x.axes[0])
    yield "broadcast", geon.broadcast(geon.sum(x, last), x.axes)
    yield "broadcast outside", geon.broadcast(geon.sum(x, x.axes[0]), x.axes)
    yield "a part", geon.concat([x, x, x], last)[{last: slice(1, 1 + last.expression)}]


@pytest.mark.parametrize(("label", "x", "y", "over"), AS_THEY_LIE + IRREGULAR)
def test_values_of_looks(transformer, label, x, y, over):
    leaves = [geon.placeholder(a) for a in (x, y)]
    products = []
    for (_, left), (_, right) in zip(views(leaves[0]), views(leaves[1]), strict=True):
        products.append(geon.dot(left, right, over=over))
        products.append(geon.dot(left, leaves[1], over=over))
    check(transformer, products, leaves, arrays_of(x, y))


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("name", "BHKMNT")
def test_lengths_0_and_1(name, length, transformer):
    lengths = {**LENGTHS, name: length}
    x, y = geon.placeholder([B, T, K, M]), geon.placeholder([K, B, N, M])
    op = geon.dot(x, y, over=[K, M])
    random = np.random.default_rng(0)
    arrays = [
        random.normal(size=[lengths[a.name] for a in leaf.axes]).astype(np.float32)
        for leaf in (x, y)
    ]
    f = transformer.computation(op, x, y)
    expected = compute(op, {x: arrays[0], y: arrays[1]}, lengths)
    np.testing.assert_allclose(f(*arrays), expected, rtol=1e-4, atol=1e-5)


@numpy_only
def test_attention_copies_nothing_but_the_order_of_its_result(transformer):
    q, k, v = (geon.placeholder([B, H, axis, K]) for axis in (T, M, M))
    scores = geon.softmax(geon.dot(q, k, over=K), normalization_axes=M)
    out = geon.dot(scores, v, over=M)
    f = transformer.computation(out, q, k, v)
    assert not copies(f), f.source


@numpy_only
def test_a_layer_and_its_gradients_copy_nothing(transformer):
    x, w = geon.placeholder([N, K]), geon.Variable([K, H], initial_value=1)
    loss = geon.sum(geon.square(geon.dot(x, w)))
    f = transformer.computation([loss, *geon.deriv(loss, [x, w])], x)
    assert not copies(f), f.source


def test_halves_round_once(transformer):
    x, y = geon.placeholder([M, K], "float16"), geon.placeholder([K, N], "float16")
    ones = np.ones((5, 4), np.float16), np.full((4, 6), 2048, np.float16)
    f = transformer.computation(geon.dot(x, y), x, y)
    got = f(*ones)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.full((5, 6), 8192))


def test_small_integers_are_summed_in_int64(transformer):
    x, y = geon.placeholder([M, K], "int8"), geon.placeholder([K, N], "int8")
    f = transformer.computation(geon.dot(x, y), x, y)
    got = f(np.full((5, 4), 127, np.int8), np.full((4, 6), 127, np.int8))
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, np.full((5, 6), 4 * 127 * 127))


@pytest.mark.parametrize("beside", ["one", "largest", "cosine", "another slice", "nothing"])
def test_terms_beside_a_strided_slice_are_summed(transformer, beside):
    rows, summed, outer = geon.Axis("M", 20), geon.Axis("C"), geon.Axis("F", 10)
    x, w = geon.placeholder([rows, summed]), geon.placeholder([outer, summed])
    y = geon.dot(x, w, over=[summed])
    part = y[{rows: slice(1, None, 3), outer: slice(4, None, 3)}]
    total = geon.sum(part)
    if beside == "one":
        total = total + geon.sum(y)
    elif beside == "largest":
        total = total + geon.sum(geon.maximum(y, 0.5))
    elif beside == "cosine":
        total = geon.sum(geon.cos(part)) - geon.sum(geon.cos(y))
    elif beside == "another slice":
        total = total + 2 * geon.sum(y[{rows: slice(0, None, 2), outer: slice(1, None, 2)}])
    random = np.random.default_rng(0)
    arrays = [random.normal(size=size).astype("float32") for size in ((20, 6), (10, 6))]
    results = list(geon.deriv(total, [x, w]))
    found = transformer.computation(results, x, w)(*arrays)
    wanted = interpret(results, dict(zip([x, w], arrays, strict=True)), {"C": 6})
    for op, array in zip(results, found, strict=True):
        np.testing.assert_allclose(array, wanted[op], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("factor", [np.inf, -np.inf, np.nan, -1.0, 0.0, 3.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["numpy", "native"])
def test_a_sum_of_nothing_is_0_whatever_its_terms_have_in_common(name, dtype, factor, known):
    k, n = geon.Axis("K", 0) if known else geon.Axis("K"), geon.Axis("N", 1)
    x, y = geon.placeholder([k], dtype), geon.placeholder([n], dtype)
    repeated = geon.broadcast(y, [k, n])
    results = [geon.dot(x, repeated), geon.dot(repeated, x), geon.sum(repeated, k)]
    with geon.make_transformer(name) as transformer:
        f = transformer.computation(results, x, y)
        for found in f(np.zeros(0, dtype), np.full(1, factor, dtype)):
            assert found.tolist() == [0] and not np.signbit(found).any()
        if not known:
            for found, wanted in zip(f([2, 1], [factor]), (3, 3, 2), strict=True):
                np.testing.assert_array_equal(found, np.array([wanted * factor], dtype))
