"""Uniform and normal values made from bits: exact grids, accuracy, moments, and allowed ops."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from geon.op_graph.random.normal import normal_from_bits, uniform_from_bits

PINNED_SINGLE = "c0ad7082 c0a70b29 bfbbd931 b3a06c99 33a06c99 3f901499".split()
PINNED_DOUBLE = "c02095b059d67c4a c02052484c516593 bff77b26344b88f6 3ff20293484ba835".split()
FORMS = [("float32", np.uint32, 24), ("float64", np.uint64, 53)]


class RecordingOps:
    """NumPy under the names that the formulas may use; `used` collects those asked for."""

    def __init__(self):
        self.used = set()

    def __getattr__(self, name):
        self.used.add(name)
        if name == "cast":
            return lambda x, dtype: x.astype(dtype)
        return getattr(np, name)


OPS = RecordingOps()


def bits_of(indices, width):
    """Return bit patterns whose highest `width` bits are `indices`."""
    kind, unused = (np.uint32, 8) if width == 24 else (np.uint64, 11)
    return np.asarray(indices, dtype=np.uint64).astype(kind) << kind(unused)


def grid_probability(indices, width):
    """Return the smaller tail probability, exactly, and the sign of the normal value."""
    indices = np.asarray(indices, dtype=np.uint64)
    upper = indices >= np.uint64(1 << (width - 1))
    folded = np.where(upper, np.uint64((1 << width) - 1) - indices, indices)
    return (2 * folded.astype(np.float64) + 1) * 2.0 ** -(width + 1), np.where(upper, 1, -1)


def check_against_scipy(indices, width, dtype, ulps):
    got = normal_from_bits(bits_of(indices, width), dtype, OPS)
    assert got.dtype == np.dtype(dtype)
    p, sign = grid_probability(indices, width)
    expected = -special.ndtri(p) * sign
    error = np.abs(got - expected) / np.spacing(np.abs(expected).astype(dtype))
    assert error.max() <= ulps


@pytest.mark.slow
def test_float32_is_within_9_1_ulp_on_the_whole_grid():
    with np.errstate(all="raise"):
        check_against_scipy(np.arange(1 << 24), 24, "float32", 9.1)


def test_float64_is_within_12_ulp_of_scipy():
    random = np.random.default_rng(3)
    tail = (2.0 ** random.uniform(0, 52, 100_000)).astype(np.uint64)
    indices = np.concatenate(
        [
            random.integers(0, 1 << 53, 100_000, dtype=np.uint64),
            tail,
            np.uint64((1 << 53) - 1) - tail,
            np.arange(1000, dtype=np.uint64),
        ]
    )
    with np.errstate(all="raise"):
        check_against_scipy(indices, 53, "float64", 12)


def test_float64_is_within_8_ulp_of_the_exact_value():
    """SciPy is a few ulp off itself: the error is that of the probability over its density."""
    random = np.random.default_rng(4)
    middle = random.integers(0, 1 << 52, 1500, dtype=np.uint64)
    tail = (2.0 ** random.uniform(0, 52, 1500)).astype(np.uint64)
    indices = np.unique(np.concatenate([middle, tail, np.arange(100, dtype=np.uint64)]))
    found = normal_from_bits(bits_of(indices, 53), "float64", OPS)
    assert (found < 0).all()
    with mpmath.workprec(200):
        for index, x in zip(indices.tolist(), found.tolist(), strict=True):
            wanted = mpmath.mpf(2 * index + 1) / 2**54
            value = mpmath.mpf(x)
            missed = (mpmath.erfc(-value / mpmath.sqrt(2)) / 2 - wanted) / mpmath.npdf(value)
            assert abs(missed) <= 8 * np.spacing(-x), (index, x)


@pytest.mark.parametrize(("dtype", "kind", "width"), FORMS)
def test_extremes_are_finite_and_symmetric(dtype, kind, width):
    top = (1 << width) - 1
    ends = normal_from_bits(bits_of([0, top], width), dtype, OPS)
    exact = -special.ndtri(2.0 ** -(width + 1))
    np.testing.assert_allclose(ends, [-exact, exact], rtol=10 * np.finfo(dtype).eps)
    middle = normal_from_bits(bits_of([top // 2, top // 2 + 1], width), dtype, OPS)
    step = 2.0 ** -(width + 1) * math.sqrt(2 * math.pi)
    np.testing.assert_allclose(middle, [-step, step], rtol=10 * np.finfo(dtype).eps)
    bits = np.random.default_rng(1).integers(0, np.iinfo(kind).max, 10_000, dtype=kind)
    mirrored = normal_from_bits(~bits, dtype, OPS)
    np.testing.assert_array_equal(mirrored, -normal_from_bits(bits, dtype, OPS))


@pytest.mark.parametrize(("dtype", "kind", "width"), FORMS)
def test_unused_low_bits_change_nothing(dtype, kind, width):
    bits = np.random.default_rng(2).integers(0, np.iinfo(kind).max, 1000, dtype=kind)
    low = kind((1 << (8 * bits.itemsize - width)) - 1)
    for function in (normal_from_bits, uniform_from_bits):
        values = function(bits, dtype, OPS)
        np.testing.assert_array_equal(values, function(bits | low, dtype, OPS))


@pytest.mark.parametrize(("dtype", "kind", "width"), FORMS)
def test_fixed_bits_are_distributed_normally(dtype, kind, width):
    bits = np.random.default_rng(7).integers(0, np.iinfo(kind).max, 400_000, dtype=kind)
    values = normal_from_bits(bits, dtype, OPS).astype(np.float64)
    count = values.size
    assert abs(values.mean()) < 4 / math.sqrt(count)
    assert abs(values.var() - 1) < 4 * math.sqrt(2 / count)
    assert abs((values**3).mean()) < 4 * math.sqrt(15 / count)
    assert abs((values**4).mean() - 3) < 4 * math.sqrt(96 / count)
    assert stats.kstest(values, "norm").pvalue > 0.001


@pytest.mark.parametrize(("dtype", "kind", "width"), FORMS)
def test_uniform_values_are_the_grid(dtype, kind, width):
    indices = np.array([0, 1, 2, (1 << width) // 3, (1 << width) - 1], dtype=np.uint64)
    got = uniform_from_bits(bits_of(indices, width), dtype, OPS)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, [int(i) / (1 << width) for i in indices])
    assert got.max() < 1


def test_only_exactly_specified_ops_are_used():
    ops = RecordingOps()
    for dtype, kind, _ in FORMS:
        normal_from_bits(np.arange(5, dtype=kind), dtype, ops)
        uniform_from_bits(np.arange(5, dtype=kind), dtype, ops)
    assert ops.used == {"right_shift", "cast", "absolute", "sqrt", "where"}


def test_values_are_pinned_bit_for_bit():
    bits = np.array([0, 1 << 8, 0x12345678, 0x7FFFFFFF, 0x80000000, 0xDEADBEEF], np.uint32)
    words = np.array([0, 1 << 11, 0x123456789ABCDEF0, 0xDEADBEEFCAFEBABE], np.uint64)
    single = normal_from_bits(bits, "float32", OPS).view(np.uint32)
    double = normal_from_bits(words, "float64", OPS).view(np.uint64)
    assert [f"{value:08x}" for value in single] == PINNED_SINGLE
    assert [f"{value:016x}" for value in double] == PINNED_DOUBLE
