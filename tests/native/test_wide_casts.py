"""Casts between floats and 64-bit integers: every rounding is that of NumPy, in vectors too."""

import numpy as np
import pytest

import geon

pytestmark = pytest.mark.optimized  # bounds hold for the order of sums that optimised loops have

WIDE = [np.dtype("int64"), np.dtype("uint64")]
FLOATS = [np.dtype("float32"), np.dtype("float64")]
COUNTS = [1, 3, 15, 16, 17, 100_003]  # below, at and above some vectors, and many parts


def integers(dtype, count):
    """Random bits of every length, what is beside powers of two and beside middles of floats."""
    generator = np.random.default_rng(5)
    bits = generator.integers(0, 1 << 63, count, dtype=np.uint64) * 2 + 1
    bits >>= generator.integers(0, 64, count).astype(np.uint64)
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    near = np.concatenate([powers + np.uint64(k) for k in range(3)] + [powers - np.uint64(1)])
    # Middles of two float32 and of two float64, and one more and less.
    middles = np.concatenate([powers[k:] + (powers[k:] >> np.uint64(k)) for k in (24, 53)])
    middles = np.concatenate([middles, middles + np.uint64(1), middles - np.uint64(1)])
    found = np.concatenate([near, middles, ~near, ~middles, bits]).view(dtype)
    return np.resize(found, count) if count < 1000 else found


def floats(dtype, count):
    """Integers of every size as floats, with fractions, ends of ranges, and what is none."""
    generator = np.random.default_rng(6)
    numbers = integers(np.dtype("int64"), 100_003)[:count].astype(dtype)
    parts = generator.choice(np.array([0, 0.25, 0.5, 0.75, -0.5], dtype), len(numbers))
    edges = np.array([0.0, -0.0, 0.9, -0.9, 2.0**31, 2.0**32, 2.0**52, 2.0**53], dtype)
    ends = np.array([2.0**62, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30], dtype)
    ends = np.concatenate([ends, np.nextafter(ends, dtype.type(0)), [np.nan, np.inf, -np.inf]])
    found = np.concatenate([edges, ends, numbers + parts]).astype(dtype)
    return np.resize(found, count) if count < 1000 else found


def cast(data, target):
    x = geon.placeholder([geon.Axis("N", len(data))], dtype=data.dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        return transformer.computation(geon.cast(x, target), x)(data)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("source", WIDE, ids=str)
@pytest.mark.parametrize("target", FLOATS, ids=str)
def test_integers_become_the_nearest_floats(source, target, count):
    data = integers(source, count)
    assert cast(data, target).tobytes() == data.astype(target).tobytes()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("target", WIDE, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_become_integers_by_truncation_held_at_the_ends(source, target, count):
    data = floats(source, count)
    ends = np.iinfo(target)
    wanted = [0 if x != x else ends.max if x >= float(ends.max) else ends.min if x <= ends.min
              else int(x) for x in data.tolist()]  # fmt: skip
    np.testing.assert_array_equal(cast(data, target), np.array(wanted, target))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_integers_become_halves_by_way_of_float32(target):
    data = integers(np.dtype("int64"), 100_003)
    with np.errstate(over="ignore"):
        wanted = data.astype("float32").astype(cast(data[:1], target).dtype)
    assert cast(data, target).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("size", [1 << 10, (1 << 20) + 5])
def test_sums_of_integers_as_floats_are_taken_in_blocks(size):
    """Equal terms are the worst that a sum of floats has."""
    n = geon.Axis("N", size)
    x = geon.placeholder([n], dtype="int64")
    with geon.NativeTransformer(threads=1) as transformer:
        total = transformer.computation(geon.sum(geon.cast(x, "float32") / 3), x)
        found = float(total(np.ones(size, np.int64)))
    wanted = size * float(np.float32(1) / np.float32(3))
    assert abs(found - wanted) <= 1e-6 * wanted
