"""The compiler that ``pip install 'geon[native]'`` brings makes the same programs."""

import importlib.util
import sys

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed"
)
N, M = geon.Axis("N"), geon.Axis("M")
FUNCTIONS = (
    """tanh sigmoid exp softplus sin cos erf gelu silu expm1 sinh atan round floor""".split()
)
OF_POSITIVE = "log log1p sqrt rsqrt".split()


@pytest.fixture
def zig(monkeypatch):
    """A transformer that compiles with it."""
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    assert find_toolchain().family == "zig"
    with geon.NativeTransformer(threads=2) as transformer:
        yield transformer


def test_memory_may_be_of_one_type_after_another(zig):
    assert "-fno-strict-aliasing" in zig.toolchain().flags


def elementary(x):
    """Each function of long rows, and of half of them, which are of an open length."""
    positive = geon.absolute(x) + 0.5
    found = [getattr(geon, name)(x) for name in FUNCTIONS]
    found += [getattr(geon, name)(positive) for name in OF_POSITIVE]
    return [*found, geon.mod(x, 2.5), x // 1.5, geon.power(positive, 1.3)]


def reductions(x):
    """Alone and in one pass, where a compiler has accumulators for some and not for others."""
    both = [geon.sum(x, M), geon.max(x, M), geon.min(x), geon.sum(x), geon.argmax(x, M)]
    return [*both, geon.softmax(x, M), geon.logsumexp(x, N), geon.cumsum(x, M), geon.cumsum(x, N)]


def halves(x):
    """Casts there and back, in strips and in columns, and what is computed between."""
    half, brain = geon.cast(x, "float16"), geon.cast(x, "bfloat16")
    turned = geon.reorder(half, [M, N])
    return [half, brain, half * 2, geon.sum(turned * 2, M), geon.cast(brain, "float32"), turned]


def moves(x):
    """Transposes, joins, borders, lookups and sorts."""
    back = geon.rename(-1 - geon.iota(M), {M: "R"})
    wide = geon.rename(geon.concat([x, geon.exp(x)], M), {M: "J"})
    pair = geon.reorder(x, [M, N]) * 2
    sorts = [geon.sort(x, M), geon.argsort(x, N), geon.sort(geon.cast(x * 9, "int8"), M)]
    return [pair, wide, geon.pad(x, {M: (1, 2)}), geon.gather(x, back, M), *sorts]


def products(x):
    """Of floats and of integers, with a computed operand, and a derivative."""
    y = geon.rename(x, {N: "K"})
    square = geon.sum(geon.square(geon.dot(x, geon.tanh(y))))
    small = geon.cast(x * 3, "int32")
    return [geon.dot(x, y), geon.dot(small, geon.rename(small, {N: "K"})), geon.deriv(square, x)]


PROGRAMS = [elementary, reductions, halves, moves, products]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("made", PROGRAMS)
def test_values_are_those_of_numpy(zig, made, dtype):
    x = geon.placeholder([N, M], dtype=dtype)
    f = zig.computation(made(x), x)
    numpy = geon.NumPyTransformer().computation(made(x), x)
    within = 1e-5 if dtype == "float32" else 1e-11
    for shape in ((3, 5), (33, 257), (70, 1031)):
        data = np.random.default_rng(5).normal(size=shape).astype(dtype)
        for found, wanted in zip(f(data), numpy(data), strict=True):
            a, b = found.astype("float64"), wanted.astype("float64")
            width = (
                found.dtype.itemsize
                if found.dtype.kind == "f" or "float" in str(found.dtype)
                else 0
            )
            rough = 2e-2 if width == 2 else within
            np.testing.assert_allclose(a, b, rough, rough * np.abs(b).max(initial=1))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_short_rows_are_filled_to_their_ends(zig, dtype):
    """What is repeated for the elements of a row is written as other types than it is read."""
    results, given, data = [], [], []
    for length in (2, 3, 4, 5, 7, 8, 9, 16, 17):
        for rows in (37, 64):
            n, m = geon.Axis("N", rows), geon.Axis("M", length)
            x, row = geon.placeholder([n, m], dtype=dtype), geon.placeholder([n], dtype=dtype)
            given += [x, row]
            results += [x * row, *([geon.softmax(x, m)] if dtype == "float32" else [])]
            generator = np.random.default_rng(length)
            data += [generator.integers(-4, 5, s).astype(dtype) for s in ((rows, length), rows)]
    wanted = geon.NumPyTransformer().computation(results, *given)(*data)
    for found, expected in zip(zig.computation(results, *given)(*data), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("length", [255, 256, 257, 1023, 4096])
def test_sums_are_right_whatever_else_a_pass_reduces(zig, length):
    """Equal terms are the worst; an extreme of floats keeps this compiler from vectors."""
    for is_open in (True, False):
        m = M if is_open else M.with_length(length)
        x = geon.placeholder([N, m])
        f = zig.computation([geon.sum(geon.square(x), m), geon.max(geon.square(x), m)], x)
        data = np.full((3, length), 0.7, np.float32)
        wanted = np.square(data).astype("float64").sum(1)
        np.testing.assert_allclose(f(data)[0], wanted, rtol=1e-6)
