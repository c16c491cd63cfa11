"""Folds over what lies on both sides of kept axes: two, or rows that are taken in each turn."""

import numpy as np
import pytest

import geon
from geon.transformers.lowering.rules.split_reductions import (
    FAST_RUN_ELEMENTS,
    MIN_SPLIT_ELEMENTS,
    MIN_SPLIT_RUNS,
)

FOLDS = {"sum": (geon.sum, np.sum), "max": (geon.max, np.max), "min": (geon.min, np.min)}


def kernels(f):
    """How many kernels a computation has."""
    return len(f.stages().plan.schedule.kernels)


def in_turn(makes, *arrays):
    """The results of one, two and three threads, which are the same bits."""
    found = []
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = makes(transformer)
            found.append(np.asarray(f(*arrays)))
    assert all(other.tobytes() == found[0].tobytes() for other in found[1:])
    return f, found[0]


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "float16"])
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_folds_over_both_sides_are_right(fold, dtype, known):
    generator = np.random.default_rng(3)
    mine, right = FOLDS[fold]
    for turns, kept, run in [(64, 21, 13), (65, 2, 127), (300, 64, 2), (257, 5, 49), (64, 512, 3)]:
        sizes = [turns if known else None, kept, run]
        axes = [geon.Axis(name, n) for name, n in zip("NMK", sizes, strict=True)]
        x = geon.placeholder(axes, dtype=dtype)
        a = generator.integers(-9, 10, size=(turns, kept, run)).astype(dtype)

        def make(transformer, x=x, axes=axes):
            return transformer.computation(mine(x + x, out_axes=[axes[1]]), x)

        f, found = in_turn(make, a)
        assert kernels(f) == 2
        wide = a.astype(np.float64) * 2
        np.testing.assert_array_equal(found.astype(np.float64), right(wide, axis=(0, 2)))


@pytest.mark.parametrize(
    ("turns", "kept", "run", "split"),
    [
        (MIN_SPLIT_RUNS, 21, 13, True),
        (MIN_SPLIT_RUNS - 1, 21, 13, False),
        (None, 21, 13, True),
        (1024, 4, FAST_RUN_ELEMENTS - 1, True),
        (1024, 4, FAST_RUN_ELEMENTS, False),
        (MIN_SPLIT_ELEMENTS // 16, 4, 4, True),
        (MIN_SPLIT_ELEMENTS // 16 - 1, 4, 4, False),
        (1024, 1, 40, False),
        (1024, 40, 1, False),
        (1024, None, 40, False),
        (1024, 40, None, False),
    ],
)
def test_where_folds_are_two(turns, kept, run, split):
    axes = [geon.Axis(name, n) for name, n in zip("NMK", (turns, kept, run), strict=True)]
    x = geon.placeholder(axes)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(geon.sum(x, out_axes=[axes[1]]), x)
        a = np.ones([n or 70 for n in (turns, kept, run)], np.float32)
        np.testing.assert_array_equal(f(a), a.sum((0, 2)))
        assert kernels(f) == 1 + split


def test_nan_and_infinities_reach_their_row_alone():
    axes = [geon.Axis("N"), geon.Axis("M", 6), geon.Axis("K", 5)]
    x = geon.placeholder(axes)
    a = np.ones((100, 6, 5), np.float32)
    a[99, 1, 4], a[0, 2, 0], a[50, 3, 2], a[51, 3, 2] = np.nan, np.inf, np.inf, -np.inf
    a[:, 4] = -0.0
    with geon.NativeTransformer(threads=2) as transformer:
        folds = [geon.sum(x, out_axes=[axes[1]]), geon.max(x, out_axes=[axes[1]])]
        f = transformer.computation([*folds, geon.min(x, out_axes=[axes[1]])], x)
        for found, right in zip(f(a), (np.sum, np.max, np.min), strict=True):
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(found, right(a, axis=(0, 2)))


@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
@pytest.mark.parametrize(
    ("kept", "run"), [(64, 16), (128, 16), (129, 16), (4, 15), (4, 17), (100, 20), (2, 130)]
)
def test_rows_between_turns_are_taken_in_each(kept, run, known):
    """Variances, whose second sums need the mean of each row."""
    generator = np.random.default_rng(4)
    for turns in (1, 31, 32, 33, 700):
        sizes = [turns if known else None, kept, run]
        axes = [geon.Axis(name, n) for name, n in zip("NMK", sizes, strict=True)]
        x, b = geon.placeholder(axes), geon.placeholder([axes[1]])
        a = generator.normal(size=(turns, kept, run)).astype(np.float32)
        shift = generator.normal(size=kept).astype(np.float32)

        def make(transformer, x=x, b=b, axes=axes):
            spread = geon.sum(geon.square(x - b), out_axes=[axes[1]])
            return transformer.computation(spread * b, x, b)

        f, found = in_turn(make, a, shift)
        if not known and kept * run <= 2048 and run == 16:
            assert "parts of columns" in f.explain("schedule")
        wide = ((a.astype(np.float64) - shift[:, None]) ** 2).sum((0, 2)) * shift
        np.testing.assert_allclose(found, wide, rtol=1e-5)
