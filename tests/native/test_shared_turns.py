"""Sums of a few rows over the same turns are right, whatever rows and turns there are."""

import numpy as np
import pytest

import geon
from geon.transformers.native.nests.shared_reduction import MAX_VECTOR_ELEMENTS, MIN_TURN_TERMS
from geon.transformers.native.nests.split_reduction import MAX_ROW_SUMS

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))
SHARED = "first_sum"  # is in the text of those that share turns


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
    ("images", "high", "wide", "channels", "size", "stride", "shared"),
    [
        (7, 9, 11, 16, 3, 1, True),
        (2, 9, 11, MAX_VECTOR_ELEMENTS, 3, 1, True),
        (40, 9, 11, MAX_VECTOR_ELEMENTS - 1, 3, 1, False),
        (33, 7, 8, MAX_VECTOR_ELEMENTS + 1, 3, 2, False),  # four by four: a turn is short
        (33, 12, 14, MAX_VECTOR_ELEMENTS + 1, 3, 2, True),
        (17, 6, 6, 128, 3, 1, True),
        (3, 20, 21, MAX_ROW_SUMS // 9, 3, 1, True),
        (3, 20, 21, MAX_ROW_SUMS // 9 + 1, 3, 1, False),
        (5, 10, 10, 40, 5, 1, True),
        (300, 6, 7, 20, 2, 1, True),
    ],
)
def test_slopes_of_filters_are_right(
    images, high, wide, channels, size, stride, shared, known, dtype
):
    slope, places, arrays = slopes(images, high, wide, channels, size, known, stride, dtype)
    found = []
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(slope, *places)
            found.append(f(*arrays))
        is_shared = SHARED in str(f.source)
    assert is_shared == shared
    assert len({value.tobytes() for value in found}) == 1
    if size % 2:
        right, most = by_numpy(*arrays, size, stride)
        bound = {"float32": 3e-6, "float64": 3e-14}[dtype]
        assert np.all(np.abs(found[0] - right) <= bound * most + bound)


@pytest.mark.parametrize("turn", [MIN_TURN_TERMS - 1, MIN_TURN_TERMS, MIN_TURN_TERMS + 1])
@pytest.mark.parametrize("turns", [1, 2, 15, 16, 17, 1000])
def test_turns_below_at_and_above_what_is_worth_it(turn, turns):
    slope, places, arrays = slopes(turns, 1, turn, 32, 3)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(slope, *places)
        shared = SHARED in str(f.source)
        found = f(*arrays)
    assert shared == (turn >= MIN_TURN_TERMS)
    right, most = by_numpy(*arrays, 3, 1)
    assert np.all(np.abs(found - right) <= 3e-6 * most)


def test_no_turns_give_zeros():
    slope, places, (a, b) = slopes(2, 9, 9, 32, 3)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(slope, *places)
        is_shared = SHARED in str(f.source)
        assert is_shared and np.all(f(a[:0], b[:0]) == 0)
