"""Convolutions in native code at sizes beyond a group of rows, on one thread and on two."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.analysis.index_boxes import guards_of
from geon.transformers.kernels.ir.scalar_code import Load, walk
from geon.transformers.kernels.nests.index_set_splitting import stored_values
from tests import window_cases as cases

ORDERS = [("NHWC", "RSCK"), ("NCHW", "KCRS"), ("NGHWC", "GRSCK"), ("CWNH", "SKCR")]


def large_case(seed):
    """Two axes of windows, with lengths below, at and above those that blocks have."""
    random = np.random.default_rng(seed)
    axes = []
    while len(axes) < 2:
        k = len(axes)
        each = cases.Along(
            "HW"[k],
            "RS"[k],
            int(random.choice([1, 5, 13, 30, 47, 50])),
            int(random.integers(1, 6)),
            int(random.choice([1, 1, 1, 2, 3])),
            int(random.choice([1, 1, 1, 2])),
            (int(random.integers(0, 4)), int(random.integers(0, 4))),
            bool(random.integers(0, 2)),
        )
        axes += [each] if each.spare >= 0 else []
    sizes = {
        "N": int(random.choice([1, 2, 3])),
        "C": int(random.choice([1, 3, 8, 16, 17, 40])),
        "K": int(random.choice([1, 7, 16, 33, 64])),
        "G": 2,
    }
    x_axes, w_axes = ORDERS[int(random.integers(0, len(ORDERS)))]
    return cases.Case(axes, x_axes, w_axes, "C", sizes, {"N"} if seed % 2 else set()), random


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_convolutions_and_slopes_are_right_and_equal_on_two_threads(seed, make_native):
    case, random = large_case(seed)
    dtype = ("float32", "float64")[int(random.integers(0, 2))]
    x = geon.placeholder([case.axis(n) for n in case.x_axes], dtype)
    w = geon.placeholder([case.axis(n) for n in case.w_axes], dtype)
    y = geon.convolution(x, w, case.windows, ["C"])
    g = geon.placeholder(y.axes, dtype)
    results = [y, *geon.vjp(y, [x, w], g)]
    xa, wa = (random.normal(size=case.lengths(names)) for names in (case.x_axes, case.w_axes))
    ya = cases.convolved(case, xa, wa)
    ga = random.normal(size=ya.shape)
    wanted = [ya, cases.slope_of_x(case, ga, wa), cases.slope_of_w(case, ga, xa)]
    feeds = [array.astype(dtype) for array in (xa, wa, ga)]
    first = make_native(threads=1).computation(results, x, w, g)(*feeds)
    for options in ({"threads": 2}, {"threads": 1, "plan": False}):
        plan = options.pop("plan", True)
        again = make_native(**options).computation(results, x, w, g, plan=plan)(*feeds)
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(first, wanted, strict=True):
        scale = max(np.abs(other).max(initial=0), 1e-30)
        bound = (2e-5 if dtype == "float32" else 1e-13) * scale
        np.testing.assert_allclose(one, other, 0, bound, err_msg=str(case))


@pytest.fixture
def make_native():
    made = []

    def make(**options):
        made.append(geon.make_transformer("native", **options))
        return made[-1]

    yield make
    for transformer in made:
        transformer.close()


def test_an_activation_is_done_where_the_layer_before_stores(make_native):
    """Two layers are two products; nothing that windows show is computed for each position."""
    n, h, w, c, k = (
        geon.Axis(name, size) for name, size in zip("NHWCK", (2, 9, 8, 5, 6), strict=True)
    )
    r, s = geon.Axis("R", 3), geon.Axis("S", 3)
    x = geon.placeholder([n, h, w, c])
    first, second = geon.placeholder([r, s, c, k]), geon.placeholder([r, s, k, c])
    same = {h: geon.Window(r, pad="same"), w: geon.Window(s, pad="same")}
    y = geon.convolution(geon.relu(geon.convolution(x, first, same)), second, same)
    f = make_native(threads=1).computation(y, x, first, second)
    lines = [line for line in f.explain("schedule").splitlines() if line[0].isdigit()]
    assert [line.split("(")[0] for line in lines] == ["0: maximum", "1: dot"]
    assert all("[contraction]" in line for line in lines)


def test_the_slope_of_pooling_reads_positions_and_divides_nothing(make_native):
    n, h, w, c = (geon.Axis(name, size) for name, size in zip("NHWC", (2, 8, 6, 16), strict=True))
    x = geon.placeholder([n, h, w, c])
    y = geon.max_pool(x, {h: geon.Window(2, stride=2), w: geon.Window(2, stride=2)})
    g = geon.placeholder(y.axes)
    f = make_native(threads=1).computation(geon.vjp(y, x, g), x, g)
    lines = [line for line in f.explain("schedule").splitlines() if line[0].isdigit()]
    assert [line.split("(")[0] for line in lines] == ["0: cast", "1: sum"]
    (slope,) = [k.work for k in f.plan.schedule.kernels if k.op.primitive.name == "sum"]
    positions, cotangents = slope.operands[1:]
    assert positions.dtype == np.int32 and cotangents is g
    for piece in slope.pieces:
        offsets = [node.offset for node in walk(*stored_values(piece)) if isinstance(node, Load)]
        assert not list(guards_of(*stored_values(piece)))
        assert all(isinstance(atom, str) for offset in offsets for atom in offset.terms)
