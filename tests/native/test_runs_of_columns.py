"""Sums and extremes along the first axis of few columns are right, whatever fills the vectors."""

import numpy as np
import pytest

import geon

COLUMNS = [1, 2, 3, 4, 5, 7, 12, 16, 31, 42, 63, 64, 65]
TURNS = [1, 7, 63, 64, 65, 257, 1023, 2049, 40001]


def is_divided(f):
    """Whether tasks have parts of the terms of columns, in a loop tree."""
    return "parts of columns" in f.explain("schedule")


def folded(x, axis):
    """What is folded along the first axis: of what lies in memory, and of what is computed."""
    near = geon.minimum(x, 3)
    sums = [geon.sum(x, reduction_axes=[axis]), geon.sum(near * x, reduction_axes=[axis])]
    return [*sums, geon.max(near, reduction_axes=[axis]), geon.min(x, reduction_axes=[axis])]


def wanted(a):
    """The same with NumPy, of whole numbers."""
    wide, near = a.astype(np.float64), np.minimum(a, 3).astype(np.float64)
    return [wide.sum(0), (near * wide).sum(0), near.max(0), wide.min(0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_folds_of_few_columns_are_right(dtype):
    generator = np.random.default_rng(7)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        for number, columns in enumerate(COLUMNS):
            axis, other = geon.Axis("N"), geon.Axis("M", columns)
            x = geon.placeholder([axis, other], dtype=dtype)
            made = [
                one.computation(folded(x, axis), x),
                two.computation(folded(x, axis), x),
                two.computation(folded(x, axis), x, plan=False),
            ]
            for turns in TURNS[number % 2 :: 2]:
                a = generator.integers(-9, 9, size=(turns, columns)).astype(dtype)
                for f in made:
                    for found, value in zip(f(a), wanted(a), strict=True):
                        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_folds_of_columns_of_open_number_are_right(dtype):
    """One of them, too, whose turns are then a run of elements; and none."""
    generator = np.random.default_rng(9)
    axis, other = geon.Axis("N"), geon.Axis("M")
    x = geon.placeholder([axis, other], dtype=dtype)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        made = [each.computation(folded(x, axis), x) for each in (one, two)]
        for number, columns in enumerate([0, *COLUMNS]):
            for turns in TURNS if columns == 1 else TURNS[number % 2 :: 2]:
                a = generator.integers(-9, 9, size=(turns, columns)).astype(dtype)
                a[-1:, :1] = 9
                first, second = (f(a) for f in made)
                for found, again, value in zip(first, second, wanted(a), strict=True):
                    np.testing.assert_array_equal(found, value)
                    assert found.tobytes() == again.tobytes()


def test_the_order_of_sums_is_that_of_any_number_of_threads():
    generator = np.random.default_rng(8)
    axis, other = geon.Axis("N", 100003), geon.Axis("M", 3)
    x = geon.placeholder([axis, other])
    a = generator.normal(size=(100003, 3)).astype(np.float32)
    found = []
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            found.append(transformer.computation(folded(x, axis), x)(a))
    for other_values in found[1:]:
        for value, first in zip(other_values, found[0], strict=True):
            assert value.tobytes() == first.tobytes()
    np.testing.assert_allclose(found[0][0], a.astype(np.float64).sum(0), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("columns", [2, 5, 63])
def test_states_of_few_columns_are_right_for_any_number_of_threads(columns):
    """Positions of open and of known lengths, the first of equal elements or the first NaN, and
    a variance, whose parts meet in one order."""
    found = []
    for threads in (1, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            for axis in (geon.Axis("N"), geon.Axis("N", 30011)):
                x = geon.placeholder([axis, geon.Axis("M", columns)])
                made = [geon.argmax(x, [axis]), geon.argmin(x * 2, [axis])]
                f = transformer.computation([*made, geon.variance(x, [axis])], x)
                for turns in [1, 31, 1023, 30011] if axis.length is None else [30011]:
                    a = np.random.default_rng(turns).integers(-9, 9, size=(turns, columns))
                    a = a.astype(np.float32)
                    a[turns // 2 :: 7, columns // 2] = np.nan if turns > 31 else 9
                    largest, least, spread = f(a)
                    np.testing.assert_array_equal(largest, a.argmax(0))
                    np.testing.assert_array_equal(least, a.argmin(0))
                    np.testing.assert_allclose(spread, a.astype(float).var(0), rtol=1e-5)
                    found.append(spread.tobytes())
    half = len(found) // 2
    assert found[:half] == found[half:]


def test_a_nan_and_the_sign_of_zero_reach_their_column_alone():
    axis, other = geon.Axis("N", 1000), geon.Axis("M", 5)
    x = geon.placeholder([axis, other])
    a = np.ones((1000, 5), np.float32)
    a[998, 2], a[3, 4], a[:, 1] = np.nan, -np.inf, -0.0
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(
            [
                geon.max(x, reduction_axes=[axis]),
                geon.min(x, reduction_axes=[axis]),
                geon.sum(x, reduction_axes=[axis]),
            ],
            x,
        )
        largest, least, total = f(a)
    np.testing.assert_array_equal(np.isnan(largest), [False, False, True, False, False])
    np.testing.assert_array_equal(np.isnan(least), np.isnan(largest))
    np.testing.assert_array_equal(np.isnan(total), np.isnan(largest))
    assert least[4] == -np.inf and total[4] == -np.inf
    assert largest[1] == 0 and least[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float16", "float32", "float64", "bool"])
def test_reordered_axes_of_any_sides_are_right(dtype):
    generator = np.random.default_rng(9)
    with geon.NativeTransformer(threads=2) as transformer:
        for rows in (1, 3, 4, 7, 8, 9, 15, 16, 17, 26, 31, 64, 65, 154):
            axes = [geon.Axis("N", 301), geon.Axis("M", rows)]
            x = geon.placeholder(axes, dtype=dtype)
            a = generator.integers(0, 2 if dtype == "bool" else 100, size=(301, rows))
            f = transformer.computation(geon.reorder(x, axes[::-1]), x)
            given = a.astype("float32" if dtype == "bfloat16" else dtype)
            np.testing.assert_array_equal(np.asarray(f(given)).astype(int), a.T)


@pytest.mark.parametrize("columns", [3, None])
def test_folds_along_several_open_axes_are_one_kernel(columns):
    first, second = geon.Axis("N"), geon.Axis("K")
    other = geon.Axis("M") if columns is None else geon.Axis("M", columns)
    x, y = geon.placeholder([first, other]), geon.placeholder([second, other])
    both = geon.sum(x, reduction_axes=[first]) - geon.sum(y, reduction_axes=[second])
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(both, x, y)
        for turns in [(1, 2049), (65, 7), (2049, 1023)]:
            a, b = (np.arange(n * 3, dtype=np.float32).reshape(n, 3) % 7 for n in turns)
            np.testing.assert_array_equal(f(a, b), a.sum(0) - b.sum(0))


def of_columns(x, b, axis):
    """What is folded and stored of elements and of values that a column has for all of them."""
    largest = geon.max(x, reduction_axes=[axis])
    scaled = (x - largest) * b
    total = geon.sum(scaled * x, reduction_axes=[axis])
    return [total, scaled + total, geon.min(x * b - total, reduction_axes=[axis]), largest]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_values_of_a_column_go_on_as_its_turns_do(dtype, known):
    generator = np.random.default_rng(9)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        for number, columns in enumerate(COLUMNS):
            lengths = [3, 33, 130, 2050] if known else [None]
            for length in lengths:
                axis, outer = geon.Axis("N", length), geon.Axis("B", 2)
                other = geon.Axis("M", columns if known else None)
                x = geon.placeholder([outer, axis, other], dtype=dtype)
                b = geon.placeholder([other], dtype=dtype)
                made = [t.computation(of_columns(x, b, axis), x, b) for t in (one, two)]
                for turns in [length] if known else TURNS[number % 2 : -1 : 2]:
                    a = generator.integers(-3, 4, size=(2, turns, columns)).astype(dtype)
                    factors = generator.integers(-2, 3, size=columns).astype(dtype)
                    largest = a.max(1)
                    scaled = (a - largest[:, None]) * factors
                    total = (scaled * a).sum(1)
                    less = (a * factors - total[:, None]).min(1)
                    wanted = [total, scaled + total[:, None], less, largest]
                    for f in made:
                        for found, value in zip(f(a, factors), wanted, strict=True):
                            np.testing.assert_array_equal(found, value)


def normed(x, gain, axes):
    """Elements less the mean of their column, by its deviation, cut at 0, and their sum."""
    mean = geon.mean(x, reduction_axes=axes)
    off = x - mean
    deviation = geon.sqrt(geon.mean(off * off, reduction_axes=axes) + 1e-3)
    y = geon.maximum(off / deviation * gain, 0)
    return [y, geon.sum(y * x, reduction_axes=axes)]


def of_numpy(a, gain):
    """The same with NumPy."""
    a = a.astype(np.float64)
    off = a - a.mean((0, 1))
    y = np.maximum(off / np.sqrt((off * off).mean((0, 1)) + 1e-3) * gain, 0)
    return [y, (y * a).sum((0, 1))]


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 32, 62, 63, 64, 65, 300, 511, 513])
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_few_columns_that_have_values_for_themselves_are_divided(columns, known):
    """Whole turns are of one thread each, in kernels that store and in those that fold."""
    generator = np.random.default_rng(9)
    for turns in (1, 64, 409, 4001):
        axes = [geon.Axis("N", turns if known else None), geon.Axis("H", 5)]
        other = geon.Axis("M", columns)
        x, gain = geon.placeholder([*axes, other]), geon.placeholder([other])
        a = generator.normal(size=(turns, 5, columns)).astype(np.float32)
        g = generator.normal(size=columns).astype(np.float32)
        found = []
        for threads in (1, 2, 3):
            with geon.NativeTransformer(threads=threads) as transformer:
                f = transformer.computation(normed(x, gain, axes), x, gain)
                found.append(f(a, g))
        for others in found[1:]:
            for value, first in zip(others, found[0], strict=True):
                assert value.tobytes() == first.tobytes()
        for value, right in zip(found[0], of_numpy(a, g), strict=True):
            np.testing.assert_allclose(value, right, rtol=2e-4, atol=2e-4 * turns**0.5)
        if 1 < columns < 64 and turns > 409:
            assert f.explain("schedule").count("parts of columns") >= 2


@pytest.mark.parametrize("columns", [63, 64, 65, 100, 256, 511, 512])
@pytest.mark.parametrize("turns", [1023, 1024, 1025, 30_000])
def test_sums_of_columns_that_fill_vectors_are_divided_along_turns(columns, turns):
    generator = np.random.default_rng(10)
    axis, other = geon.Axis("N"), geon.Axis("M", columns)
    x = geon.placeholder([axis, other])
    a = generator.normal(size=(turns, columns)).astype(np.float32)
    y = [geon.sum(x * x, reduction_axes=[axis]), geon.sum(x, reduction_axes=[axis])]
    found = []
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(y, x)
            found.append(f(a))
    assert is_divided(f)
    for others in found[1:]:
        for value, first in zip(others, found[0], strict=True):
            assert value.tobytes() == first.tobytes()
    wide = a.astype(np.float64)
    for value, right in zip(found[0], [(wide * wide).sum(0), wide.sum(0)], strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-6, atol=1e-5 * turns**0.5)


def strided(x):
    """A sum over each column of what is strided, and what is cut off at its ends, and its slope."""
    part, inner = x[:, ::2], x[:, 1:-2]
    both = geon.sum(geon.square(part)) + geon.sum(geon.square(inner) * inner)
    slope = geon.deriv(both, x)
    columns = x.axes[-1]
    return [geon.sum(slope * x, out_axes=[columns]), geon.max(slope, out_axes=[columns]), slope]


@pytest.mark.parametrize("columns", [2, 3, 15, 16, 17, 63, 64])
def test_few_columns_of_several_loops_are_divided(columns):
    """Turns that no one run of elements has: every second is read elsewhere, some are cut off."""
    generator = np.random.default_rng(11)
    for turns in (1, 7, 1025):
        axes = [geon.Axis("N"), geon.Axis("T", 9), geon.Axis("M", columns)]
        x = geon.placeholder(axes)
        a = generator.normal(size=(turns, 9, columns)).astype(np.float32)
        slope = np.zeros((turns, 9, columns))
        slope[:, ::2] += 2 * a[:, ::2]
        slope[:, 1:-2] += 3 * a[:, 1:-2].astype(float) ** 2
        found = []
        for threads in (1, 2, 3):
            with geon.NativeTransformer(threads=threads) as transformer:
                f = transformer.computation(strided(x), x)
                found.append(f(a))
        assert is_divided(f)
        for others in found[1:]:
            for value, first in zip(others, found[0], strict=True):
                assert value.tobytes() == first.tobytes()
        wanted = [(slope * a).sum((0, 1)), slope.max((0, 1)), slope]
        for value, right in zip(found[0], wanted, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-4 * turns**0.5)


def test_short_sums_of_known_columns_are_not_divided():
    for turns, divided in ((100, False), (10_025, True)):
        axis, other = geon.Axis("N", turns), geon.Axis("M", 128)
        x = geon.placeholder([axis, other])
        with geon.NativeTransformer(threads=2) as transformer:
            f = transformer.computation(geon.sum(x, reduction_axes=[axis]), x)
            assert is_divided(f) == divided


def test_sums_whose_partial_states_are_too_many_are_not_divided():
    axis, other = geon.Axis("N"), geon.Axis("M", 2048)
    x = geon.placeholder([axis, other])
    for count, divided in ((4, True), (5, False)):
        y = [geon.sum(geon.maximum(x, k), reduction_axes=[axis]) for k in range(count)]
        with geon.NativeTransformer(threads=2) as transformer:
            f = transformer.computation(y, x)
            assert is_divided(f) == divided
            found = f(np.ones((3000, 2048), np.float32))
        for k, value in enumerate(found):
            np.testing.assert_array_equal(value, np.full(2048, 3000 * max(1, k)))
