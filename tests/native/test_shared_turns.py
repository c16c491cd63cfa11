"""Sums of a few rows over the same turns are right, whatever rows and turns there are."""

import numpy as np
import pytest

import geon
from geon.transformers.loops.rules.columns import MAX_PART_STATES, MIN_COLUMN_PARTS

FEW = MAX_PART_STATES // MIN_COLUMN_PARTS // 9  # maximum channels whose terms are divided
missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


def slopes(images, high, wide, channels, size, known=False, stride=1, dtype="float32"):
    """The slope of a filter for each channel by itself, and arrays for it."""
    N, H, W, C = (
        geon.Axis("N", images if known else None),
        geon.Axis("H", high),
        geon.Axis("W", wide),
        geon.Axis("C", channels),
    )
    R, S = geon.Axis("R", size), geon.Axis("S", size)
    x = geon.placeholder([N, H, W, C], dtype)
    w = geon.placeholder([R, S, C], dtype)
    pad = (size // 2, size // 2)
    windows = {axis: geon.Window(k, stride=stride, pad=pad) for axis, k in ((H, R), (W, S))}
    y = geon.convolution(x, w, windows, [])
    g = geon.placeholder(y.axes, dtype)
    generator = np.random.default_rng(3)
    a = generator.normal(size=(images, high, wide, channels)).astype(dtype)
    left = [(n + 2 * pad[0] - size) // stride + 1 for n in (high, wide)]
    sides = {"N": images, "H": left[0], "W": left[1], "C": channels}
    b = generator.normal(size=[sides[name] for name in y.axes.names]).astype(dtype)
    return geon.deriv(y, w, seed=g), (x, g), (a, b)


def by_numpy(a, b, size, stride):
    """The same with NumPy, and the sums of magnitudes."""
    pad = size // 2
    wide = np.pad(a.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    shown = np.lib.stride_tricks.sliding_window_view(wide, (size, size), (1, 2))
    shown = shown[:, ::stride, ::stride]
    return [
        np.einsum("nhwcrs,nhwc->rsc", f(shown), f(b.astype(np.float64))) for f in (np.array, abs)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
@pytest.mark.parametrize(
    ("images", "high", "wide", "channels", "size", "stride"),
    [
        (7, 9, 11, 16, 3, 1),
        (40, 9, 11, 15, 3, 1),
        (33, 7, 8, 17, 3, 2),
        (33, 12, 14, 17, 3, 2),
        (17, 6, 6, 128, 3, 1),
        (5, 20, 21, 227, 3, 1),
        (5, 20, 21, FEW // 16 * 16, 3, 1),
        (5, 20, 21, FEW // 16 * 16 + 16, 3, 1),
        (5, 10, 10, 40, 5, 1),
        (300, 6, 7, 20, 2, 1),
    ],
)
def test_slopes_of_filters_are_right(images, high, wide, channels, size, stride, known, dtype):
    slope, places, arrays = slopes(images, high, wide, channels, size, known, stride, dtype)
    found = []
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(slope, *places)
            found.append(f(*arrays))
    assert len({value.tobytes() for value in found}) == 1
    if size % 2:
        right, most = by_numpy(*arrays, size, stride)
        bound = {"float32": 3e-6, "float64": 3e-14}[dtype]
        assert np.all(np.abs(found[0] - right) <= bound * most + bound)


@pytest.mark.parametrize("turn", [31, 32, 33])
@pytest.mark.parametrize("turns", [1, 2, 15, 16, 17, 1000])
def test_turns_below_at_and_above_a_block(turn, turns):
    slope, places, arrays = slopes(turns, 1, turn, 32, 3)
    with geon.NativeTransformer(threads=2) as transformer:
        found = transformer.computation(slope, *places)(*arrays)
    right, most = by_numpy(*arrays, 3, 1)
    assert np.all(np.abs(found - right) <= 3e-6 * most)


def test_no_turns_give_zeros():
    slope, places, (a, b) = slopes(2, 9, 9, 32, 3)
    with geon.NativeTransformer(threads=2) as transformer:
        assert np.all(transformer.computation(slope, *places)(a[:0], b[:0]) == 0)
