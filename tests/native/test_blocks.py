"""Chains by blocks of rows: the bits of the kernels they are made of, and no square in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.cache import programs
from geon.transformers.kernels.costs.kernel_costs import cost_of
from geon.transformers.kernels.nests import index_set_splitting
from geon.transformers.kernels.products import row_blocking
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked
from geon.transformers.kernels.structural_key import structure
from geon.transformers.lowering.fusion import greedy
from geon.transformers.lowering.planning.plan import place_plan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.sizes.blocks import MAX_BLOCK_ROWS, MIN_BALANCED_BLOCK_ROWS, MIN_BLOCK_ROWS
from tests.kernels.transformer import KernelsTransformer

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

B, H, T, S = (geon.Axis(name) for name in "BHTS")
D, E = geon.Axis("D", 13), geon.Axis("E", 9)
ROWS = sorted({0, 1, 2, 3, 200, 2 * MAX_BLOCK_ROWS + 1} | {
    n + k
    for n in (MIN_BALANCED_BLOCK_ROWS, MIN_BLOCK_ROWS, 2 * MIN_BLOCK_ROWS, MAX_BLOCK_ROWS)
    for k in (-1, 0, 1)
})  # fmt: skip


def chains(f):
    """The chains of a computation."""
    work = [kernel.work for kernel in f.stages().schedule.kernels]
    return [each for each in work if isinstance(each, Blocked)]


def compiled(results, placeholders, threads=1):
    """A computation with a chain."""
    f = geon.NativeTransformer(threads=threads).computation(results, *placeholders)
    assert chains(f)
    verify_plan(f.stages().plan)
    return f


@pytest.fixture
def apart(monkeypatch):
    """Compiles a computation whose kernels stay apart."""

    def make(results, placeholders):
        with monkeypatch.context() as patch:
            patch.setattr(greedy, "by_blocks", lambda laid_out, groups, ops: groups)
            # Short rows of a chain are taken one after another: other orders of their sums.
            patch.setattr(index_set_splitting, "with_short_rows", lambda nest, *_: nest)
            patch.setattr(programs, "_programs", None)
            patch.setenv("GEON_DEBUG", "verify")  # finds no program that was compiled before
            f = geon.NativeTransformer(threads=1).computation(results, *placeholders)
            f._call_for(())
            assert not chains(f)
        return f

    return make


def drawn(placeholders, lengths, dtype=np.float32, seed=0):
    """Values for placeholders where open axes are so long."""
    random = np.random.default_rng(seed)
    return [
        random.standard_normal([lengths.get(axis.name, axis.length) for axis in p.axes]).astype(
            dtype
        )
        for p in placeholders
    ]


def same_bits(x, y):
    """Whether two lists of arrays are equal, NaN and signs of zeros included."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(x, y, strict=True))


def attention(dtype="float32", mask=True):
    """Attention with a scale, a bias and a causal mask, and its placeholders."""
    q = geon.placeholder([B, H, T, D], dtype=dtype)
    k = geon.placeholder([B, H, S, D], dtype=dtype)
    v = geon.placeholder([B, H, S, E], dtype=dtype)
    bias = geon.placeholder([H, S], dtype=dtype)
    scores = geon.dot(q, k, over=[D]) * 0.25 + geon.broadcast(bias, [B, H, T, S])
    if mask:
        late = geon.broadcast(geon.iota(T), [T, S]) < geon.broadcast(geon.iota(S), [T, S])
        scores = geon.where(geon.broadcast(late, [B, H, T, S]), -1e9, scores)
    return geon.dot(geon.softmax(scores, S), v, over=[S]), (q, k, v, bias)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_has_the_bits_of_its_kernels_apart(apart, dtype):
    out, placeholders = attention(dtype)
    plain = apart([out], placeholders)
    fused = [compiled([out], placeholders, threads) for threads in (1, 2, 3)]
    for number, (rows, columns) in enumerate(itertools.product(ROWS, (1, 7, 65, 300))):
        if number % 3:  # every length of rows with one of columns
            continue
        sizes = {"B": 2, "H": 3, "T": rows, "S": columns}
        given = drawn(placeholders, sizes, dtype, number)
        if columns > 1:
            given[0].reshape(-1)[: rows // 2] = np.nan
            given[1].reshape(-1)[:3] = np.inf
        wanted = plain(*given)
        for f in fused:
            assert same_bits(f(*given), wanted), sizes


@pytest.mark.parametrize("count", [0, 1, 2, 33])
def test_batches_of_any_number(apart, count):
    out, placeholders = attention()
    given = drawn(placeholders, {"B": 1, "H": count, "T": 70, "S": 40})
    assert same_bits(compiled([out], placeholders, 2)(*given), apart([out], placeholders)(*given))


def rows_of_products():
    """Programs that reduce a product's rows, by name."""
    x, y = geon.placeholder([T, D]), geon.placeholder([S, D])
    w = geon.placeholder([S])
    product = geon.dot(x, y)
    kernel = geon.exp(0.1 * product)
    squares = geon.broadcast(geon.sum(y * y, D), [T, S])
    yield "log-sum-exp", geon.logsumexp(product, S), (x, y)
    yield "largest", geon.max(product, S), (x, y)
    yield "sum of squares", geon.sum(product * product, S), (x, y)
    yield "sums of columns", geon.max(product, T), (x, y)
    yield "kernel matrix", geon.dot(kernel, w), (x, y, w)
    yield "nearest", geon.argmin(squares - 2 * product, S), (x, y)
    yield "farthest", geon.argmax(product, S), (x, y)
    yield "stored too", [geon.softmax(product, S), geon.max(product, S)], (x, y)


@pytest.mark.parametrize("program", list(rows_of_products()), ids=lambda each: each[0])
def test_other_chains(apart, program):
    _, results, placeholders = program
    plain = apart(results, placeholders)
    fused = [compiled(results, placeholders, threads) for threads in (1, 2)]
    for rows, columns in [(1, 1), (70, 33), (481, 200), (97, 1000), (0, 5)]:
        sizes = {"T": rows, "S": columns}
        given = drawn(placeholders, sizes)
        try:
            wanted = plain(*given)
        except geon.GeonError as error:  # the largest of none
            with pytest.raises(type(error)):
                fused[0](*given)
            continue
        listed = wanted if isinstance(results, list) else [wanted]
        for f in fused:
            found = f(*given)
            assert same_bits(found if isinstance(results, list) else [found], listed), sizes


def joined_scores(axis, steps=1):
    """Attention with a bias of two parts joined along an axis of the scores, and placeholders."""
    heads, t, s = geon.Axis("H", 5), geon.Axis("T", 301), geon.Axis("S", 293)
    rest = geon.Axis("S" if axis == "T" else "T", 293 if axis == "T" else 301)
    parts = [steps * n for n in ((100, 201) if axis == "T" else (100, 193))]
    biases = [geon.placeholder([geon.Axis(axis, n), rest]) for n in parts]
    joined = geon.concat(biases, geon.Axis(axis, sum(parts)))
    if steps > 1:
        whole = geon.Axis(axis, sum(parts))
        joined = joined[{whole: slice(0, None, steps)}]
    q, k = geon.placeholder([heads, t, D]), geon.placeholder([heads, s, D])
    scores = geon.dot(q, k, over=[D]) + geon.broadcast(joined, [heads, t, s])
    return geon.logsumexp(scores, s), (q, k, *biases)


@pytest.mark.parametrize("axis", "TS")
@pytest.mark.parametrize("steps", [1, 2])
def test_what_is_joined_along_rows_or_columns(apart, axis, steps):
    out, placeholders = joined_scores(axis, steps)
    given = drawn(placeholders, {})
    wanted = apart([out], placeholders)(*given)
    for threads in (1, 2):
        assert same_bits(compiled([out], placeholders, threads)(*given), wanted)
    data = KernelsTransformer().computation([out], *placeholders)
    assert chains(data)
    np.testing.assert_allclose(data(*given)[0], wanted[0], rtol=2e-5, atol=1e-6)


def test_a_block_reads_what_the_whole_reads(apart, monkeypatch):
    rows, longer = geon.Axis("T", 301), geon.Axis("T", 652)
    x, y = geon.placeholder([B, rows, D]), geon.placeholder([B, S, D])
    parts = [geon.placeholder([geon.Axis("T", 602)]), geon.placeholder([geon.Axis("T", 50)])]
    first_part = (geon.concat(parts, longer) + 1.0)[{longer: slice(0, 602, 2)}]
    out = geon.max(geon.dot(x, y, over=[D]) + geon.broadcast(first_part, [B, rows, S]), S)
    given = drawn((x, y, *parts), {"B": 2, "S": 33})
    wanted = apart([out], (x, y, *parts))(*given)
    assert same_bits(compiled([out], (x, y, *parts), 2)(*given), wanted)
    monkeypatch.setattr(row_blocking, "same_ops", lambda one, other: False)
    monkeypatch.setattr(programs, "_programs", None)
    monkeypatch.setenv("GEON_DEBUG", "verify")
    f = geon.NativeTransformer(threads=2).computation([out], x, y, *parts)
    assert not chains(f)
    assert same_bits(f(*given), wanted)


def test_what_is_dropped_is_the_same_in_blocks(apart):
    out, placeholders = attention()
    weights = out.args[0]
    dropped = weights * geon.Random(3).bernoulli(list(weights.axes), 0.7)
    out = geon.dot(dropped, placeholders[2], over=[S])
    given = drawn(placeholders, {"B": 2, "H": 2, "T": 131, "S": 67})
    wanted = apart([out], placeholders)(*given)
    for threads in (1, 2):
        assert same_bits(compiled([out], placeholders, threads)(*given), wanted)


def test_no_square_is_in_memory():
    out, placeholders = attention()
    f = compiled([out], placeholders, 2)
    plan = f.stages().plan
    peaks = []
    for length in (2000, 4000, 8000):
        lengths = {"B": 1, "H": 2, "T": length, "S": length}
        placed = place_plan(plan, lengths, 2)
        peaks.append(placed.arena_bytes)
    assert peaks[2] < 2.2 * peaks[1] < 4.4 * peaks[0]
    assert peaks[2] < 8000 * 8000  # a quarter of one square of one head


def test_scratch_is_what_the_plan_says():
    out, placeholders = attention()
    plan = compiled([out], placeholders, 2).stages().plan
    for length in (1, 100, 1000):
        lengths = {"B": 2, "H": 3, "T": length, "S": length}
        for buffer in plan.buffers:
            for scratch in buffer.scratch:
                bound = scratch.most(2)
                most = bound if isinstance(bound, int) else bound.evaluate(lengths)
                assert scratch.bytes(lengths, 2) <= most


def test_long_known_lengths_are_cut_and_short_ones_are_not():
    for length, cut in [(1024, True), (128, False)]:
        t, s = geon.Axis("T", length), geon.Axis("S", length)
        x, y, v = geon.placeholder([t, D]), geon.placeholder([s, D]), geon.placeholder([s, D])
        out = geon.dot(geon.softmax(geon.dot(x, y), s), v, over=[s])
        f = geon.NativeTransformer().computation(out, x, y, v)
        assert bool(chains(f)) is cut


def test_a_value_that_is_needed_is_stored(apart):
    out, placeholders = attention(mask=False)
    scores = out.args[0]
    given = drawn(placeholders, {"B": 2, "H": 2, "T": 100, "S": 50})
    wanted = apart([out, scores], placeholders)(*given)
    assert same_bits(compiled([out, scores], placeholders)(*given), wanted)


def test_derivatives_of_attention(apart):
    out, placeholders = attention()
    slopes = [geon.deriv(geon.sum(out * out), p) for p in placeholders]
    plain = apart(slopes, placeholders)
    given = drawn(placeholders, {"B": 1, "H": 2, "T": 130, "S": 70})
    wanted = plain(*given)
    for threads in (1, 2):
        assert same_bits(compiled(slopes, placeholders, threads)(*given), wanted)


def test_equal_layers_are_printed_once():
    q, k, v = (geon.placeholder([axis, D]) for axis in (T, S, S))

    def layer(x):
        return geon.dot(geon.softmax(geon.dot(x, k, over=[D]), S), v, over=[S])

    f = compiled([layer(layer(layer(q)))], (q, k, v))
    found = chains(f)
    assert len(found) == 3
    assert len({structure(work) for work in found}) == 1
    assert f.source.count("_blocks *a = argument;") == 1


def test_kernels_as_data_mean_the_same():
    out, placeholders = attention()
    f = KernelsTransformer().computation([out], *placeholders)
    assert chains(f)
    for rows, columns in [(1, 3), (60, 20), (0, 4)]:
        sizes = {"B": 2, "H": 2, "T": rows, "S": columns}
        given = drawn(placeholders, sizes)
        wanted = compiled([out], placeholders)(*given)
        np.testing.assert_allclose(f(*given)[0], wanted[0], rtol=2e-5, atol=1e-6)


def test_positions_of_extremes_as_data():
    x, y = geon.placeholder([B, T, D]), geon.placeholder([B, S, D])
    out = geon.argmin(geon.dot(x, y, over=[D]), S)
    f = KernelsTransformer().computation(out, x, y)
    assert chains(f)
    for rows in (1, 60):
        given = drawn((x, y), {"B": 3, "T": rows, "S": 7})
        wanted = compiled(out, (x, y), 2)(*given)
        np.testing.assert_array_equal(f(*given), wanted)
        np.testing.assert_array_equal(np.einsum("btd,bsd->bts", *given).argmin(-1), wanted)


def test_the_schedule_says_what_runs_by_blocks():
    out, placeholders = attention()
    text = compiled([out], placeholders).explain("schedule")
    assert "blocks of T: contraction, then nest by B, H, T, then contraction" in text


def test_the_schedule_says_what_stays_apart_from_steps():
    x, y = geon.placeholder([T, D]), geon.placeholder([S, D])
    out = geon.max(geon.dot(geon.softmax(x, D), y), S)
    first, reason, *_ = compiled([out], (x, y)).explain("schedule").splitlines()
    assert first.startswith("0: ") and reason.strip() == "not with 1: one is a contraction"


def test_what_is_handed_on_is_no_traffic():
    out, placeholders = attention(mask=False)
    (work,) = chains(compiled([out], placeholders))
    lengths = {"B": 2, "H": 2, "T": 500, "S": 500}
    cost = cost_of(work, lengths)
    elements = [500 * 13, 500 * 13, 500 * 9]
    assert cost.read == 4 * (4 * sum(elements) + 2 * 500)
    assert cost.written == 4 * 4 * 500 * 9
    assert cost.rows == {
        key: sum(cost_of(step, lengths).rows.get(key, 0) for step in work.whole)
        for key in cost.rows
    }


def test_a_softmax_takes_the_place_of_what_it_is_of():
    out, placeholders = attention(mask=False)
    (work,) = chains(compiled([out], placeholders))
    assert len(work.cut.memory) == 1


def test_what_is_longer_than_a_product_is_no_step_of_its_blocks():
    """A product laid twice along its own rows has other rows than the blocks of it."""
    c, m, n = geon.Axis("C", 4), geon.Axis("M"), geon.Axis("N")
    x, y = geon.placeholder([c, m], "float64"), geon.placeholder([c, n], "float64")
    product = geon.dot(x, y)
    made = geon.sinh(geon.concat([product, product], m))
    f = geon.make_transformer("native", threads=1).computation(made, x, y)
    random = np.random.default_rng(0)
    left, right = random.normal(size=(4, 200)), random.normal(size=(4, 90))
    whole = np.sinh(left.T @ right)
    np.testing.assert_allclose(f(left, right), np.concatenate([whole, whole]), rtol=1e-12)


def test_windows_over_pixels_of_a_product_are_no_step_of_its_blocks():
    """A block would be a whole image; what the windows read is stored in place of the product."""
    N, C, K = geon.Axis("N"), geon.Axis("C", 8), geon.Axis("K", 96)
    X, Y, R, S = geon.Axis("X", 40), geon.Axis("Y", 40), geon.Axis("R", 3), geon.Axis("S", 3)
    image, w = geon.placeholder([N, C, X, Y]), geon.placeholder([C, K])
    each, bias = geon.placeholder([K, R, S]), geon.placeholder([K])
    hidden = geon.relu(geon.dot(image, w) + bias)
    random = np.random.default_rng(0)
    padded = {X: geon.Window(R, pad=1), Y: geon.Window(S, pad=1)}
    for out, stored in (
        (geon.relu(geon.convolution(hidden, each, padded, over=[])), "maximum"),
        (geon.max_pool(hidden, padded), "maximum"),
        (geon.mean(hidden, [X, Y]), "dot"),  # which reads each pixel once
    ):
        f = geon.NativeTransformer(threads=1).computation(out, image, w, each, bias)
        product, *others = [
            kernel
            for kernel in f.stages().schedule.kernels
            if kernel.op.primitive.name != "copy"  # of weights, for vectors
        ]
        assert isinstance(product.work, Contraction) and not chains(f)
        assert len(others) == 1 and product.results[0].primitive.name == stored
        given = [
            random.normal(size=shape).astype("f4")
            for shape in ((2, 8, 40, 40), (8, 96), (96, 3, 3), (96,))
        ]
        g = geon.make_transformer("numpy").computation(out, image, w, each, bias)
        np.testing.assert_allclose(f(*given), g(*given), rtol=1e-4, atol=1e-4)


def test_windows_compute_an_activation_whose_product_is_stored_for_its_derivative():
    """The derivative reads the product, so storing the activation as well is a second result."""
    N, C, K = geon.Axis("N"), geon.Axis("C", 8), geon.Axis("K", 96)
    X, Y, R, S = geon.Axis("X", 40), geon.Axis("Y", 40), geon.Axis("R", 2), geon.Axis("S", 2)
    image, w = geon.placeholder([N, C, X, Y]), geon.placeholder([C, K])
    pooled = geon.max_pool(
        geon.relu(geon.dot(image, w)), {X: geon.Window(R, stride=2), Y: geon.Window(S, stride=2)}
    )
    slope = geon.deriv(geon.sum(pooled), w)
    f = geon.NativeTransformer(threads=1).computation([pooled, slope], image, w)
    product = f.stages().schedule.kernels[0]
    assert isinstance(product.work, Contraction)
    assert [op.primitive.name for op in product.results] == ["dot"]
    random = np.random.default_rng(0)
    given = [random.normal(size=s).astype("f4") for s in ((2, 8, 40, 40), (8, 96))]
    g = geon.make_transformer("numpy").computation([pooled, slope], image, w)
    for got, expected in zip(f(*given), g(*given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "order, pixels, copied",
    [("NXYC", 40, True), ("NCXY", 40, False), ("NXYC", 3, False)],
)
def test_weights_of_depthwise_convolutions_lie_as_their_vectors_do(order, pixels, copied):
    axes = {"N": geon.Axis("N", 1), "X": geon.Axis("X", pixels), "Y": geon.Axis("Y", pixels)}
    axes["C"] = geon.Axis("C", 48)
    R, S = geon.Axis("R", 3), geon.Axis("S", 3)
    x, w = geon.placeholder([axes[n] for n in order]), geon.placeholder([axes["C"], R, S])
    windows = {"X": geon.Window(R, pad=1), "Y": geon.Window(S, pad=1)}
    out = geon.convolution(x, w, windows, over=[])
    f = geon.NativeTransformer(threads=1).computation(out, x, w)
    kernels = f.stages().schedule.kernels
    layouts = [k.op.attrs.layout for k in kernels if k.op.primitive.name == "copy"]
    assert (("R", "S", "C") in layouts) == copied
    random = np.random.default_rng(0)
    given = [random.normal(size=op.axes.lengths).astype("f4") for op in (x, w)]
    g = geon.make_transformer("numpy").computation(out, x, w)
    np.testing.assert_allclose(f(*given), g(*given), rtol=1e-4, atol=1e-4)
