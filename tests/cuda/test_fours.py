"""Rows whose lengths are known are read four elements at once, and once for all passes."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.nests import unrolled_reductions
from geon.transformers.loops.rules.gpu_threads import ELEMENTS_PER_VECTOR
from geon.transformers.pycuda.kernels import cooperative_threads, split_reductions
from geon.transformers.pycuda.launches import launch_ir
from geon.transformers.pycuda.runtime import host

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
CHAIN = unrolled_reductions.MAX_SERIAL_TERMS
WARP, BLOCK = (
    ELEMENTS_PER_VECTOR * cooperative_threads.WARP_SIZE,
    ELEMENTS_PER_VECTOR * launch_ir.THREADS_PER_BLOCK,
)
LENGTHS = sorted({
    length
    for n in (WARP, BLOCK, cooperative_threads.MAX_WARP_ROW_ELEMENTS,
              CHAIN * cooperative_threads.WARP_SIZE, 3 * WARP)
    for length in (n - 4, n - 1, n, n + 4, n + 128)
})  # fmt: skip
N = geon.Axis("N")


def graphs(x, c):
    """Kernels of rows that are read by one pass, by several, and after something was kept."""
    softmax = geon.softmax(x, normalization_axes=c)
    off = x - geon.mean(x, c)
    norm = off * geon.rsqrt(geon.mean(geon.square(off), c) + 1e-5)
    most = geon.max(x, reduction_axes=c)
    slope = geon.deriv(geon.sum(geon.square(softmax)), x)
    sums = [geon.sum(x, reduction_axes=c), geon.argmax(x, reduction_axes=c)]
    return [softmax, norm, *sums, slope, x - most]


def compared(results, given, inputs, checks="", **near):
    with geon.make_transformer("cuda-on-host", checks=checks) as transformer:
        found = transformer.computation(results, *inputs)(*given)
        source = transformer.computation(results, *inputs).source
    with geon.make_transformer("numpy") as transformer:
        expected = transformer.computation(results, *inputs)(*given)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), **near)
    return source


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_known_length(length):
    c = geon.Axis("C", length)
    x = geon.placeholder([N, c], name="x")
    random = np.random.default_rng(length)
    rows = random.normal(size=(9, length)).astype(np.float32)
    rows[1, 3] = rows[2, length - 1] = np.inf
    rows[3, length // 2] = np.nan
    with np.errstate(invalid="ignore"):
        source = compared(graphs(x, c), [rows], [x], rtol=2e-5, atol=2e-6)
    assert ("geon_four<float> in" in source) == (length % 4 == 0 and length >= WARP)


def test_a_row_is_read_once():
    """Where it fits the registers of its threads, else by each pass."""
    longest = CHAIN * launch_ir.THREADS_PER_BLOCK
    for length, loads in (
        (cooperative_threads.MAX_WARP_ROW_ELEMENTS, 1),
        (longest, 1),
        (longest + 4, 2),
    ):
        x = geon.placeholder([N, geon.Axis("C", length)], name="x")
        with geon.make_transformer("cuda-on-host") as transformer:
            off = x - geon.mean(x, x.axes[1])
            f = transformer.computation(geon.mean(geon.square(off), x.axes[1]), x)
            own = f.source[f.source.index("extern") :]
            assert own.count("(const geon_four<float> *)(x0") == loads, own
            f(np.ones((2, length)))


@pytest.mark.parametrize("count", [8196, 9001])
def test_elements_of_long_rows_are_kept_in_memory(count):
    c = geon.Axis("C", count)
    x = geon.placeholder([N, c], name="x")
    given = np.random.default_rng(count).normal(size=(3, count)).astype(np.float32)
    source = compared([geon.softmax(x, normalization_axes=c)], [given], [x], rtol=2e-5, atol=2e-6)
    assert "gridDim.x) {" in source, "blocks have slots of scratch memory"
    assert ("*)(y0 + " in source) == (count % 4 == 0)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int64", "bool"])
def test_dtypes(dtype):
    c = geon.Axis("C", 3 * WARP)
    x = geon.placeholder([N, c], dtype, name="x")
    random = np.random.default_rng(0)
    given = (random.normal(size=(5, 3 * WARP)) * 3).astype(x.dtype)
    most = geon.any if dtype == "bool" else geon.max
    results = [geon.sum(geon.cast(x, "float32"), c), most(x, reduction_axes=c)]
    if dtype not in ("bool", "int8", "int64"):
        results += [geon.softmax(x, normalization_axes=c)]
    near = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    compared(results, [given], [x], rtol=near, atol=near)


def test_rows_that_begin_between_fours_are_read_one_by_one():
    c = geon.Axis("C", 2 * WARP)
    x = geon.placeholder([N, geon.Axis("D", 2 * WARP + 2)], name="x")
    row = geon.rename(x[:, 2:], {"D": "C"})
    random = np.random.default_rng(1)
    given = random.normal(size=(6, 2 * WARP + 2)).astype(np.float32)
    results = [geon.softmax(row, normalization_axes=row.axes[1]), geon.sum(row, row.axes[1])]
    source = compared(results, [given], [x], rtol=1e-5, atol=1e-6)
    assert row.axes[1].length == c.length and "*)(x0" not in source


@pytest.mark.parametrize(
    "count", [split_reductions.ELEMENTS_PER_BLOCK + k for k in (-4, -3, 0, 1, 2, 3, 4)]
)
def test_sums_of_all_elements_at_any_end(count):
    x = geon.placeholder([N], name="x")
    given = np.random.default_rng(count).normal(size=count).astype(np.float32)
    results = [geon.sum(x), geon.max(x), geon.argmin(x), geon.sum(geon.cast(x > 0, "int32"))]
    source = compared(results, [given], [x], rtol=1e-5, atol=1e-4)
    assert "geon_read_fours(x0" in source


@pytest.mark.parametrize("checks", ["races"])
@pytest.mark.parametrize("length", [WARP, 3 * WARP, BLOCK + 128])
def test_rows_by_fours_have_no_races(length, checks):
    c = geon.Axis("C", length)
    x = geon.placeholder([N, c], name="x")
    given = np.random.default_rng(0).normal(size=(9, length)).astype(np.float32)
    compared(graphs(x, c), [given], [x], checks, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("ended", [False, True])
def test_carries_that_end_in_parts_of_stacks_are_read_by_single_elements(ended):
    """Turns after the first read a carry where it was written: in a part of an outer stack."""
    t, s = geon.Axis("T"), geon.Axis("S")
    k = geon.Axis("K", 5)
    start, xs = geon.placeholder([k], name="start"), geon.placeholder([t, k], name="xs")
    zs = geon.placeholder([s], name="zs")

    def turn(h, z):
        return geon.cumsum(geon.tanh(h), k) * z

    def inner(first):
        if not ended:
            return geon.scan(lambda h, z: (turn(h, z), geon.sum(h)), first, zs, over=s)[0]
        body = {"h": first, "n": geon.constant(0)}
        return geon.while_loop(
            lambda c: c["n"] < 5, lambda c: {"h": turn(c["h"], 0.9), "n": c["n"] + 1}, body, 9
        )["h"]

    def outer(c, x):
        last = inner(start * c + x)
        return c + geon.sum(last), last

    total, lasts = geon.scan(outer, geon.constant(0.5), xs, over=t)
    random = np.random.default_rng(0)
    given = [random.normal(size=n).astype(np.float32) for n in (5, (4, 5), 5)]
    found = []
    for name in ("numpy", "cuda-on-host"):
        with geon.make_transformer(name) as transformer:
            f = transformer.computation([total, lasts], start, xs, zs)
            found.append(f(*given))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    text = f.source
    reads = text[text.index("/* tanh") :]
    reads = reads[: reads.index("/* cumsum")]
    assert "geon_tanh_f32" in reads and "geon_four" not in reads
