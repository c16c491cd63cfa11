"""Windows that tiles read where they overlap: in memory, and in bands of what some rows show, or
some summed indices of a slope of filters."""

import re

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import variable
from geon.op_graph.axes.index_map import InRange
from geon.transformers.kernels.ir.nest import Loop
from geon.transformers.native.products import product_analysis
from geon.transformers.native.products.implicit_im2col import contiguous_run, find_band, run_offsets
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.sizes.product_blocks import (
    MAX_BAND_BYTES,
    MAX_BAND_ROWS,
    MAX_WINDOW_RUNS,
    MIN_WINDOW_RUN_ELEMENTS,
    ROWS_PER_GROUP,
    shape,
)
from tests import window_cases as cases

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def along(k, length, size, pad=1, stride=1, dilation=1, is_open=False):
    """Windows along one axis."""
    pads = pad if isinstance(pad, tuple) else (pad, pad)
    return cases.Along("HWD"[k], "RST"[k], length, size, stride, dilation, pads, is_open)


def square(high, wide, **more):
    return [along(0, high, 3, **more), along(1, wide, 3, **more)]


# What windows lie along, images, channels and filters.
SHAPES = {
    "a band and its rest": (square(13, 15), 1, 8, 8),
    "few channels of many places": (square(70, 61), 5, 8, 8),
    "few filters of many places": (square(50, 61), 3, 20, 3),
    "many images in one": (square(4, 5), 11, 8, 9),
    "images one line high": (square(1, 7), 30, 16, 16),
    "one column": (square(60, 1), 4, 8, 8),
    "an axis longer than a band": ([along(0, 2 * MAX_BAND_ROWS + 5, 3)], 2, 6, 17),
    "open lengths": (square(14, 9, is_open=True), 3, 8, 7),
    "depth of some blocks": (square(9, 8), 3, 70, 20),
    "filters packed in parts": (square(14, 14), 3, 120, 250),
    "three axes": ([along(0, 5, 3), along(1, 4, 2), along(2, 6, 3)], 2, 8, 8),
    "steps": (square(15, 14, stride=2), 3, 8, 16),
    "steps past what windows show": (square(15, 14, stride=4), 3, 8, 8),
    "apart": (square(12, 13, pad=2, dilation=2), 2, 8, 8),
    "steps and apart": (square(17, 16, pad=(2, 3), stride=3, dilation=2), 2, 8, 8),
    "a border along one": ([along(0, 9, 3, 0), along(1, 10, 3, 1)], 2, 8, 8),
    "a border along the other": ([along(0, 9, 3, 1), along(1, 10, 3, 0)], 2, 8, 8),
    "no border": (square(16, 18, pad=0), 2, 8, 12),
    "no border, deep": (square(9, 9, pad=0), 3, 50, 12),
    "a border wider than images": (square(2, 3, pad=4), 5, 8, 8),
    "as many runs as there may be": (
        [along(0, 12, 8, 3, 1, 2), along(1, 13, 8, 3, 1, 2)], 2, 5, 8),
    "one more": ([along(0, 12, 5, 3, 1, 2), along(1, 30, 13, 3, 1, 2)], 2, 5, 8),
    "runs just too short": (square(9, 9, dilation=2), 2, 4, 8),
    "three channels": (square(11, 12), 2, 3, 17),
    "three channels, images in parts": (square(96, 90), 2, 3, 16),
    "channels that fill no vectors": (square(10, 9), 2, 21, 13),
    "more columns than a block has": (square(7, 9), 3, 72, 11),
    "more rows than a group has": (square(6, 7), 2, 32, ROWS_PER_GROUP + 3),
    "one place": (square(1, 1), 1, 16, 8),
    "no border, whole vectors": (square(16, 18, pad=0), 2, 16, 12),
    "one vector": ([along(0, 20, 2)], 3, 8, 21),
    "two vectors": ([along(0, 20, 2)], 3, 16, 9),
    "four vectors": ([along(0, 20, 4, 2)], 3, 16, 21),
    "five vectors": ([along(0, 20, 5, 2)], 3, 16, 6),
    "an axis as long as a block of places": ([along(0, 384, 3)], 2, 16, 9),
    "an axis longer than one": ([along(0, 385, 3)], 2, 16, 7),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SHAPES)
def test_convolutions_and_slopes_are_right(name, dtype):
    axes, n, c, k = SHAPES[name]
    x_axes = "".join(["N", *(each.name for each in axes), "C"])
    w_axes = "".join([*(each.positions for each in axes), "C", "K"])
    case = cases.Case(axes, x_axes, w_axes, "C", {"N": n, "C": c, "K": k, "G": 1}, {"N"})
    random = np.random.default_rng(len(name))
    x, w = (geon.placeholder([case.axis(a) for a in own], dtype) for own in (x_axes, w_axes))
    y = geon.convolution(x, w, case.windows, ["C"])
    g = geon.placeholder(y.axes, dtype)
    xa, wa = (random.normal(size=case.lengths(own)) for own in (x_axes, w_axes))
    ya = cases.convolved(case, xa, wa)
    ga = random.normal(size=ya.shape)
    feeds = [array.astype(dtype) for array in (xa, wa, ga)]
    found = []
    for threads in (1, 2):
        with geon.make_transformer("native", threads=threads) as transformer:
            f = transformer.computation([y, *geon.deriv(y, [x, w], seed=g)], x, w, g)
            found.append(f(*feeds))
    slopes = cases.slope_of_x(case, ga, wa), cases.slope_of_w(case, ga, xa)
    for one, other, wanted in zip(*found, (ya, *slopes), strict=True):
        np.testing.assert_array_equal(one, other)
        bound = (2e-5 if dtype == "float32" else 1e-13) * np.abs(wanted).max()
        np.testing.assert_allclose(one, wanted, 0, bound)


class Network:
    """A convolution of the shape with this name, of images with channels innermost: what it takes,
    its value, and the slope of its filters along ``g``.
    """

    def __init__(self, name, batch=None):
        axes, n, c, k = SHAPES[name]
        sizes = {"N": batch or n, "C": c, "K": k, "G": 1}
        self.case = case = cases.Case(axes, "NHWC", "RSCK", "C", sizes, {"N"})
        self.x, self.w = (geon.placeholder([case.axis(a) for a in own]) for own in ("NHWC", "RSCK"))
        self.y = geon.convolution(self.x, self.w, case.windows, ["C"])
        self.g = geon.placeholder(self.y.axes)
        self.slope = geon.deriv(self.y, self.w, seed=self.g)

    def value_by(self, transformer):
        """The computation of its value."""
        return transformer.computation(self.y, self.x, self.w)

    def slope_by(self, transformer):
        """The computation of its filters' slope."""
        return transformer.computation(self.slope, self.x, self.g)


def said(computation, side):
    """What the first kernel says of one side."""
    own = computation.source.partition("kernel_0")[2]  # behind what products share
    return re.search(rf"^ *\.{side} = .*$", own, re.MULTILINE).group()


def read(computation, side):
    """Where the first kernel's tiles read windows on one side; None where they do not."""
    text = said(computation, side)
    if ".view = " not in text:
        return None
    return "band" if ".band = " in text else "memory"


@needs_compiler
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("a band and its rest", "band"),
        ("open lengths", "band"),
        ("depth of some blocks", "band"),
        ("as many runs as there may be", "band"),
        ("no border", "memory"),
        ("one more", None),
        ("runs just too short", None),
    ],
)
def test_windows_are_read_where_they_overlap(name, where):
    with geon.make_transformer("native", threads=1) as transformer:
        assert read(Network(name).value_by(transformer), "left") == where


@needs_compiler
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("a band and its rest", "band"),
        ("open lengths", "band"),
        ("three channels", "band"),
        ("channels that fill no vectors", "band"),
        ("steps and apart", "band"),
        ("no border, whole vectors", "memory"),
        ("one more", None),
    ],
)
def test_windows_of_slopes_are_read_where_they_overlap(name, where):
    with geon.make_transformer("native", threads=1) as transformer:
        f = Network(name).slope_by(transformer)
        assert read(f, "right") == where
        if name == "three channels":  # along lines, though images are near each other
            assert ".extents = (const int64_t[]){n0, 11, 12}" in f.source


@needs_compiler
def test_what_is_always_read_as_windows_is_not_packed():
    """A band has all summed indices, and of these there are more than a block in deep products."""
    found = {}
    for name in ("a band and its rest", "depth of some blocks", "one column", "three channels"):
        with geon.make_transformer("native", threads=1) as transformer:
            net = Network(name)
            left = said(net.value_by(transformer), "left")
            right = said(net.slope_by(transformer), "right")
            found[name] = [".pack" in left, ".pack" in right]
    assert found == {
        "a band and its rest": [False, False],
        "depth of some blocks": [True, False],
        "one column": [False, False],
        "three channels": [False, False],
    }


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "few channels of many places",
        "few filters of many places",
        "three channels, images in parts",
        "more columns than a block has",
    ],
)
def test_packed_and_placed_windows_give_the_same_bits(name, monkeypatch, tmp_path):
    """Sums of one order: along lines, as images lie apart."""
    net, random = Network(name), np.random.default_rng(3)
    feeds = [random.normal(size=net.case.lengths(own)) for own in ("NHWC", "NHWK")]
    found = []
    for most in (MAX_WINDOW_RUNS, 0):
        monkeypatch.setattr(product_analysis, "MAX_WINDOW_RUNS", most)
        # Programs are kept by what they compute, and these are two of one.
        monkeypatch.setattr("geon.transformers.cache.programs._programs", None)
        monkeypatch.setenv("GEON_CACHE", str(tmp_path / str(most)))
        with geon.make_transformer("native", threads=2) as transformer:
            f = net.slope_by(transformer)
            assert (read(f, "right") is not None) == (most > 0)
            found.append(f(*(feed.astype("float32") for feed in feeds)))
    np.testing.assert_array_equal(*found)


@needs_compiler
@pytest.mark.parametrize(("wide", "apart"), [(13, False), (160, True)])
def test_packed_slopes_of_filters_go_along_lines_where_images_lie_apart(wide, apart):
    """Along images else, on which no border is. So many short runs are packed."""
    axes = square(9, wide, pad=2, dilation=2)
    case = cases.Case(axes, "NHWC", "RSCK", "C", {"N": 3, "C": 3, "K": 70, "G": 1}, {"N"})
    random = np.random.default_rng(wide)
    x, w = (geon.placeholder([case.axis(a) for a in own]) for own in ("NHWC", "RSCK"))
    y = geon.convolution(x, w, case.windows, ["C"])
    g = geon.placeholder(y.axes)
    xa, ga = (random.normal(size=case.lengths(own)).astype("f") for own in ("NHWC", "NHWK"))
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation(geon.deriv(y, w, seed=g), x, g)
        wanted = cases.slope_of_w(case, ga.astype("d"), xa.astype("d"))
        np.testing.assert_allclose(f(xa, ga), wanted, 0, 2e-5 * np.abs(wanted).max())
        packs = re.search(r"kernel_0_left\(\n.*?\n}\n", f.source, re.DOTALL).group()
        assert (" == 0 && " in packs) == apart  # whether a border cuts a run


# The size of a band ---------------------------------------------------------------------------


def made(random):
    """Lengths of N, H and W, and the band of windows along H and W with borders."""
    n, h, w = (int(random.integers(1, most)) for most in (9, 40, 300))
    r, s, c = (int(random.integers(1, most)) for most in (5, 5, 90))
    step, apart = int(random.integers(1, 4)), int(random.integers(1, 3))
    rows = [Loop(name, (name,), size) for name, size in zip("nhw", (n, h, w), strict=True)]
    summed = [Loop(name, (name,), size) for name, size in zip("rsc", (r, s, c), strict=True)]
    line = w * c
    strides = {"n": h * line, "h": line * step, "r": line * apart}
    strides |= {"w": c * step, "s": c * apart, "c": 1}
    guards = [
        InRange(variable(a) * step + variable(b) * apart + (-1), 0, size)
        for a, b, size in (("h", "r", h), ("w", "s", w))
    ]
    return (n, h, w), find_band(strides, guards, rows, summed, shape("float", 32))


def filled(band, lengths, start, count):
    """How many elements of a band these rows write, as its text goes through them."""
    _, h, w = lengths
    line = band.positions(w) * band.each * band.count
    place = unused = done = 0
    before = 1
    while done < count:
        at_h, at_w = (start + done) // w % h, (start + done) % w
        run = min(w - at_w, count - done)
        below = done > 0 and before == 0 and at_h > 0 and band.down.step < band.height
        place = place + band.down.step * line if below else unused
        unused = place + band.height * line
        assert ((run - 1) * band.across.step + band.across.span) * band.each <= line
        before = at_w
        done += run
    return unused


def test_a_band_has_room_for_all_that_rows_show():
    random = np.random.default_rng(0)
    shares = []
    for _ in range(2000):
        lengths, band = made(random)
        rows = int(np.prod(lengths))
        if band is None:
            continue
        assert band.elements * 4 <= MAX_BAND_BYTES
        count = min(band.most, rows)
        start = int(random.integers(0, rows - count + 1))
        shares.append(filled(band, lengths, start, count) / band.elements)
    assert len(shares) > 500
    assert 0.5 < max(shares) <= 1


def test_windows_that_show_too_much_come_in_groups_of_rows():
    rows = [Loop("h", ("H",), 99), Loop("w", ("W",), 99)]
    guards = [InRange(variable("w") + variable("s") + (-1), 0, 99)]
    found = []
    for channels in (128, 129, 800, 900):
        summed = [Loop("s", ("S",), 3), Loop("c", ("C",), channels)]
        strides = {"h": 99 * channels, "w": channels, "s": channels, "c": 1}
        band = find_band(strides, guards, rows, summed, shape("float", 64))
        found.append(band.most)
        assert band.elements * 4 <= MAX_BAND_BYTES
        assert contiguous_run(summed, band.known_steps) == 3 * channels
        assert run_offsets(summed, band.steps("line"), 3 * channels) == ["0"]
    assert found == [MAX_BAND_ROWS, MAX_BAND_ROWS, MAX_BAND_ROWS, ROWS_PER_GROUP]


def test_the_numbers_that_shapes_above_go_around():
    assert (MIN_WINDOW_RUN_ELEMENTS, MAX_WINDOW_RUNS) == (5, 64)
