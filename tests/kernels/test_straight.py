"""Reductions over what windows show need no loop, and sums of what strides leave out no terms."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import Remainder
from geon.transformers.kernels.analysis.index_boxes import guards_of
from geon.transformers.kernels.ir.scalar_code import Load, walk
from geon.transformers.kernels.nests.index_set_splitting import stored_values
from geon.transformers.kernels.nests.unrolled_reductions import (
    MAX_SERIAL_TERMS,
    MAX_UNROLLED_ELEMENTS,
)
from tests.golden.emitting import Native

from .transformer import KernelsTransformer

N, H, W, C = (geon.Axis(n, k) for n, k in {"N": 2, "H": 11, "W": 8, "C": 5}.items())
R, S, K = geon.Axis("R", 3), geon.Axis("S", 2), geon.Axis("K", 6)
OPEN = tuple(geon.Axis(name) for name in "NHWC")


def works(f):
    return [kernel.work for kernel in f.plan.schedule.kernels]


def pooled(axes, stride=2, pad=1):
    x = geon.placeholder(axes)
    spec = geon.Window(3, stride=stride, pad=pad)
    return x, geon.max_pool(x, {axes[1]: spec, axes[2]: spec})


def slope(y, x):
    return geon.deriv(geon.sum(y * y), x)


@pytest.mark.parametrize("order", [(N, H, W, C), (N, C, W, H)])
def test_pooling_has_no_loop_over_positions(order):
    x = geon.placeholder(order)
    spec = geon.Window(3, stride=2, pad=1)
    y = geon.max_pool(x, {H: spec, W: spec})
    for work in works(Native().computation([y, slope(y, x)], x)):
        assert not any(step.reductions for step in work.passes)
        for piece in work.pieces:
            assert not list(guards_of(*stored_values(piece)))


def test_neighbours_share_what_they_load():
    """A turn stores four elements of the slope, of four windows that overlap in one."""
    x, y = pooled((N, H, W, C))
    nest = works(Native().computation(slope(y, x), x))[-1]
    widest = max(nest.pieces, key=lambda piece: len(stored_values(piece)))
    assert len(stored_values(widest)) == 4
    offsets = {(n.operand, n.offset) for n in walk(*stored_values(widest)) if isinstance(n, Load)}
    assert len(offsets) < 9 * 2


@pytest.mark.parametrize("axes", [(N, H, W, C), OPEN], ids=["known", "open"])
@pytest.mark.parametrize(("stride", "pad"), list(itertools.product([1, 2, 3], [0, 1])))
def test_pieces_give_what_the_whole_does(axes, stride, pad):
    x, y = pooled(axes, stride, pad)
    g = geon.deriv(geon.sum(y * y), x)
    data = np.random.default_rng(0).integers(-3, 4, (2, 11, 8, 5)).astype("f4")
    found = KernelsTransformer().computation([y, g], x)(data)
    for a, b in zip(found, geon.NumPyTransformer().computation([y, g], x)(data), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count",
    [
        1,
        MAX_SERIAL_TERMS - 1,
        MAX_SERIAL_TERMS,
        MAX_SERIAL_TERMS + 1,
        MAX_UNROLLED_ELEMENTS - 1,
        MAX_UNROLLED_ELEMENTS,
        MAX_UNROLLED_ELEMENTS + 1,
    ],
)
def test_stretches_of_elements(count):
    x = geon.placeholder([geon.Axis("T", 90), C])
    seen = geon.window(x, {x.axes["T"]: geon.Axis("R", count)})
    reductions = (geon.sum, geon.max, geon.argmax, geon.argmin, geon.min)
    y = [reduce(seen, ["R"]) for reduce in reductions]
    data = np.random.default_rng(count).integers(-2, 3, (90, 5)).astype("f4")
    data[::17] = np.nan
    expected = geon.NumPyTransformer().computation(y, x)(data)
    for transformer in (KernelsTransformer(), geon.make_transformer("native", threads=1)):
        for a, b in zip(transformer.computation(y, x)(data), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("side", [9, 10, 11])
@pytest.mark.parametrize("size", [4, 7])
def test_wide_windows_with_borders(side, size):
    """Borders of so many intervals that elements choose in them."""
    axes = [geon.Axis("H", side), geon.Axis("W", side + 1), C]
    x = geon.placeholder(axes)
    spec = geon.Window(size, stride=2, pad=size - 1)
    y = geon.max_pool(x, {axes[0]: spec, axes[1]: spec})
    both = [y, slope(y, x)]
    data = np.random.default_rng(0).integers(-9, 9, (side, side + 1, 5)).astype("f4")
    found = KernelsTransformer().computation(both, x)(data)
    for a, b in zip(found, geon.NumPyTransformer().computation(both, x)(data), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "other", "size", "pad"),
    [(23, 5, 7, (3, 2)), (18, 10, 7, (2, 4)), (None, 5, 4, 3), (None, 5, 6, (4, 5))],
)
def test_borders_that_turns_do_not_divide(side, other, size, pad):
    """What a border has left behind its last whole turn is stored once, and nothing behind it."""
    axes = [geon.Axis("H", side), geon.Axis("W", other), geon.Axis("C", 16)]
    x = geon.placeholder(axes)
    spec = {axes[0]: geon.Window(size, stride=2, pad=pad), axes[1]: geon.Window(2)}
    dx = slope(geon.max_pool(x, spec), x)
    assert side is None or works(Native().computation(dx, x))[-1].pieces
    for length in (side,) if side else (8, 21, 22, 23, 24):
        data = np.random.default_rng(0).integers(-9, 9, (length, other, 16)).astype("f4")
        found = KernelsTransformer().computation(dx, x)(data)
        expected = geon.NumPyTransformer().computation(dx, x)(data)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "of"), [(2, 2), (8, 2), (9, 2), (4, 3), (5, 3)])
def test_windows_side_by_side(size, of):
    """Up to eight elements apart their slope is a sum over up to 64 positions; else flattened."""
    axes = [geon.Axis(n, 2 * size + 1) for n in "HWD"[:of]] + [geon.Axis("C", 3)]
    x = geon.placeholder(axes)
    y = geon.max_pool(x, {axis: geon.Window(size, stride=size) for axis in axes[:of]})
    dx = slope(y, x)
    native = geon.make_transformer("native", threads=1).computation(dx, x)
    names = {kernel.op.primitive.name for kernel in native.plan.schedule.kernels}
    assert ("sum" in names) == (size <= 8)
    data = np.random.default_rng(0).integers(-99, 99, [a.length for a in axes]).astype("f4")
    expected = geon.NumPyTransformer().computation(dx, x)(data)
    np.testing.assert_array_equal(native(data), expected)


def convolved(stride, dilation=1, pad=1):
    x = geon.placeholder([N, H, W, C])
    w = geon.placeholder([R, S, C, K])
    spec = [geon.Window(each, stride=stride, dilation=dilation, pad=pad) for each in (R, S)]
    y = geon.convolution(x, w, {H: spec[0], W: spec[1]})
    g = geon.placeholder(y.axes)
    return geon.deriv(y, x, seed=g), w, g


@pytest.mark.parametrize("stride", [2, 3])
def test_strides_leave_out_no_terms(stride):
    """Each class of elements is a contraction of its own, without remainders in its guards."""
    dx, w, g = convolved(stride)
    (work,) = works(Native().computation(dx, w, g))
    assert len(work.pieces) == stride**2
    terms = 0
    for piece in work.pieces:
        for guard in guards_of(piece.left, piece.right):
            assert not any(isinstance(atom, Remainder) for atom in guard.index.terms)
        loops = (*piece.batch, *piece.rows, *piece.columns, *piece.summed)
        terms += np.prod([loop.extent for loop in loops])
    assert terms <= N.length * C.length * K.length * np.prod(
        [(axis.length / stride + 1) * (r.length) for axis, r in ((H, R), (W, S))]
    )


@pytest.mark.parametrize(
    ("stride", "dilation", "pad"),
    [(2, 1, 1), (2, 2, 0), (3, 1, 2), (4, 2, 1), (4, 1, 0), (5, 1, 0)],
)
def test_classes_of_a_slope(stride, dilation, pad):
    """Also elements that no window shows, whose sums are of nothing."""
    dx, w, g = convolved(stride, dilation, pad)
    rng = np.random.default_rng(1)
    sizes = [
        (length + 2 * pad - (r - 1) * dilation - 1) // stride + 1 for length, r in ((11, 3), (8, 2))
    ]
    values = [rng.standard_normal(shape, "f4") for shape in ((3, 2, 5, 6), (2, *sizes, 6))]
    expected = geon.NumPyTransformer().computation(dx, w, g)(*values)
    found = KernelsTransformer().computation(dx, w, g)(*values)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    for threads in (1, 2):
        native = geon.make_transformer("native", threads=threads)
        made = native.computation(dx, w, g)(*values)
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_what_no_window_shows_is_no_term():
    """A filter that is NaN at one position spoils the elements that are there, and no others."""
    dx, w, g = convolved(2)
    values = [np.ones([axis.length for axis in each.axes], "f4") for each in (w, g)]
    values[0][1, 1] = np.nan
    found = geon.make_transformer("native", threads=1).computation(dx, w, g)(*values)
    assert np.isnan(found[:, ::2, ::2]).any() and np.isfinite(found[:, 1::2]).all()
