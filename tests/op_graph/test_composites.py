"""Composites: values against NumPy and SciPy, derivatives against central differences."""

import math
import warnings

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import geon
from geon.op_graph.rewriting.driver import rewrite
from geon.op_graph.rewriting.simplify import simplify_rules
from geon.op_graph.rewriting.stabilise import stabilise
from tests.op_graph.evaluation import leaf, value

A, B, C = geon.Axis("A", 3), geon.Axis("B", 4), geon.Axis("C", 2)
INF, NAN = math.inf, math.nan


def samples(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def at(function, points, dtype="float64"):
    """``function`` of a tensor at these points."""
    points = np.asarray(points, dtype)
    x = leaf(points, geon.Axis("P", len(points)))
    return value(function(x), {x: points})


def slope_at(function, points):
    points = np.asarray(points, np.float64)
    x = leaf(points, geon.Axis("P", len(points)))
    return value(geon.deriv(geon.sum(function(x)), x), {x: points})


# Statistics -------------------------------------------------------------------------------------

STATISTICS = {
    "mean": (geon.mean, np.mean),
    "variance": (geon.variance, np.var),
    "sample variance": (
        lambda x, *a, **k: geon.variance(x, *a, correction=1, **k),
        lambda x, axis: np.var(x, axis, ddof=1),
    ),
    "std": (geon.std, np.std),
    "sample std": (
        lambda x, *a, **k: geon.std(x, *a, correction=1, **k),
        lambda x, axis: np.std(x, axis, ddof=1),
    ),
    "squared_L2": (geon.squared_L2, lambda x, axis: np.sum(x * x, axis)),
    "L2_norm": (geon.L2_norm, lambda x, axis: np.sqrt(np.sum(x * x, axis))),
    "logsumexp": (geon.logsumexp, special.logsumexp),
}


@pytest.mark.parametrize(("ours", "theirs"), STATISTICS.values(), ids=STATISTICS)
def test_statistics_over_named_axes(ours, theirs):
    data = samples(3, 4, 2) + 1
    x = leaf(data, A, B, C)
    cases = [
        (ours(x), theirs(data, (0, 1, 2)), ()),
        (ours(x, reduction_axes=B), theirs(data, 1), ("A", "C")),
        (ours(x, [C, A]), theirs(data, (0, 2)), ("B",)),
        (ours(x, out_axes=[C, A]), theirs(data, 1).T, ("C", "A")),
        (ours(x, out_axes=geon.Axes()), theirs(data, (0, 1, 2)), ()),
    ]
    for op, expected, axes in cases:
        assert op.axes.names == axes
        assert op.dtype == np.float64
        np.testing.assert_allclose(value(op, {x: data}), expected, rtol=1e-13)


@pytest.mark.parametrize(("ours", "theirs"), STATISTICS.values(), ids=STATISTICS)
def test_derivatives_of_statistics(ours, theirs):
    data = samples(3, 4, 2) + 1
    x = leaf(data, A, B, C)
    weights = geon.constant(samples(2, 3, seed=1), axes=[C, A])
    geon.check_gradients(weights * ours(x, out_axes=[C, A]), {x: data}, each=True)
    geon.check_gradients(ours(x), {x: data}, each=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype):
    data = np.full(70_000, 3, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = leaf(data, geon.Axis("L", len(data)))
    for op, expected in [(geon.mean(x), 3), (geon.variance(x), 0), (geon.std(x), 0)]:
        assert op.dtype.name == dtype
        assert value(op, {x: data}) == expected
    wide = np.full(4, 300, data.dtype)
    y = leaf(wide, geon.Axis("L", 4))
    norm = geon.L2_norm(y)
    assert norm.dtype.name == dtype
    assert value(norm, {y: wide}) == np.asarray(600, data.dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64"])
def test_statistics_of_integers_are_float32(dtype):
    data = np.array([0, 1, 100, 100]).astype(dtype)
    x = leaf(data, B)
    exact = data.astype(np.float64)
    for ours, theirs in list(STATISTICS.values())[:5]:
        op = ours(x)
        assert op.dtype == np.float32
        np.testing.assert_allclose(value(op, {x: data}), theirs(exact, 0), rtol=1e-6)
    squared, norm = geon.squared_L2(x), geon.L2_norm(x)
    assert (squared.dtype, norm.dtype) == (np.int64, np.float32)
    assert value(squared, {x: data}) == np.sum(exact**2)
    np.testing.assert_allclose(value(norm, {x: data}), np.sqrt(np.sum(exact**2)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integers_are_floats_before_they_are_added_up(dtype):
    data = np.full(4, np.iinfo(dtype).max // 2 + 1, dtype)
    x = leaf(data, B)
    exact = float(data[0])
    for ours, theirs in [(geon.mean, exact), (geon.std, 0), (geon.L2_norm, 2 * exact)]:
        np.testing.assert_allclose(value(ours(x), {x: data}), theirs, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_norms_scale_before_they_square(dtype):
    """As nrm2 of the BLAS: also the slope, and where nothing, infinities and NaN are."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    limits, near = ml_dtypes.finfo(dtype), 2 * float(ml_dtypes.finfo(dtype).eps)
    largest, least = float(limits.max) / 8, float(limits.smallest_normal) * 8
    for size in (least, 2.0**-30, 1.0, 2.0**50, largest):
        data = np.array([3 * size, 4 * size], dtype)
        x = leaf(data, geon.Axis("L", 2))
        norm = geon.L2_norm(x)
        found = value(norm, {x: data}), value(geon.deriv(norm, x), {x: data})
        np.testing.assert_allclose(float(found[0]), 5 * size, rtol=near)
        np.testing.assert_allclose(found[1].astype(float), [0.6, 0.8], rtol=near)
    for data, wanted in [([], 0), ([math.inf, 1], math.inf), ([math.inf, math.nan], math.nan)]:
        data = np.array(data, dtype)
        x = leaf(data, geon.Axis("L", len(data)))
        np.testing.assert_equal(float(value(geon.L2_norm(x), {x: data})), wanted)


def test_a_far_mean_does_not_spoil_the_variance():
    data = (1e5 + samples(4)).astype(np.float32)
    x = leaf(data, B)
    np.testing.assert_allclose(value(geon.variance(x), {x: data}), np.var(data.astype(float)), 1e-3)


def test_statistics_of_an_open_axis():
    open_axis = geon.Axis("open")
    x = geon.placeholder(axes=[A, open_axis], dtype="float64")
    data = samples(3, 5)
    got = value(geon.variance(x, open_axis, correction=1), {x: data}, {"open": 5})
    np.testing.assert_allclose(got, np.var(data, 1, ddof=1))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("correction", [0, 1, 2, 5, -1])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_no_elements_left_to_estimate_from_give_no_number(count, correction, known):
    """As in NumPy: NaN of no distance, else infinite; never negative, and no 0 of nothing."""
    axis = geon.Axis("R", count) if known else geon.Axis("R")
    x, data = geon.placeholder([axis], "float64"), np.arange(count, dtype=float)
    for make, of in ((geon.variance, np.var), (geon.std, np.std)):
        got = value(make(x, correction=correction), {x: data}, {} if known else {"R": count})
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(got, of(data, ddof=correction))


def test_std_and_norm_have_slope_0_where_they_are_0():
    np.testing.assert_array_equal(slope_at(geon.std, [2.0, 2.0, 2.0]), 0)
    np.testing.assert_array_equal(slope_at(geon.L2_norm, [0.0, 0.0]), 0)
    assert at(geon.L2_norm, [0.0, 0.0]) == 0
    assert np.isnan(at(geon.L2_norm, [0.0, NAN]))


def test_logsumexp_far_out():
    assert at(geon.logsumexp, [1000.0, 1000.0]) == 1000 + math.log(2)
    assert at(geon.logsumexp, [-1000.0, -1000.0]) == -1000 + math.log(2)
    assert at(geon.logsumexp, [-INF, -INF]) == -INF
    assert at(geon.logsumexp, [-INF, 3.0]) == 3
    assert at(geon.logsumexp, [INF, 3.0]) == INF
    assert np.isnan(at(geon.logsumexp, [NAN, 3.0]))
    np.testing.assert_array_equal(slope_at(geon.logsumexp, [1000.0, -1000.0]), [1, 0])


# The softmax family -----------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [[B], [A], [B, C], [A, B, C]], ids=str)
def test_softmax_over_chosen_axes(axes):
    data = 3 * samples(3, 4, 2)
    x = leaf(data, A, B, C)
    along = tuple([A, B, C].index(axis) for axis in axes)
    weights = geon.constant(samples(3, 4, 2, seed=1), axes=[A, B, C])
    pairs = ((geon.softmax, special.softmax), (geon.log_softmax, special.log_softmax))
    for ours, theirs in pairs:
        y = ours(x, normalization_axes=axes)
        assert y.axes is x.axes
        np.testing.assert_allclose(value(y, {x: data}), theirs(data, along), rtol=1e-12)
        geon.check_gradients(weights * y, {x: data}, each=True)


def test_second_derivative_of_softmax():
    data = samples(4)
    x = leaf(data, B)
    weights = geon.constant(samples(4, seed=1), axes=B)
    first = geon.deriv(geon.sum(weights * geon.softmax(x)), x)
    geon.check_gradients(geon.constant(samples(4, seed=2), axes=B) * first, {x: data}, each=True)


def test_softmax_says_what_to_normalise_over():
    x = geon.placeholder(axes=[A, B])
    with pytest.raises(geon.AxisError, match="softmax.*which has 2 axes.*normalization_axes=B"):
        geon.softmax(x)
    with pytest.raises(geon.AxisError, match="log_softmax.*which has 0 axes"):
        geon.log_softmax(geon.placeholder())
    with pytest.raises(geon.AxisError, match="'C' is no axis"):
        geon.softmax(x, C)
    y = geon.placeholder(axes=[B])
    assert geon.softmax(y) is geon.softmax(y, normalization_axes=B)


def test_softmax_of_integers_and_masks():
    np.testing.assert_allclose(at(geon.softmax, [-128, 127], "int8"), [0, 1], atol=1e-30)
    np.testing.assert_array_equal(at(geon.softmax, [-INF, 0.0, 0.0]), [0, 0.5, 0.5])
    assert np.isnan(at(geon.softmax, [-INF, -INF])).all()


def test_the_logarithm_of_a_softmax_becomes_log_softmax():
    x = geon.placeholder(axes=[A, B])
    assert stabilise(geon.log(geon.softmax(x, B))) is geon.log_softmax(x, B)
    assert stabilise(geon.log(geon.softmax(x, [A, B]))) is geon.log_softmax(x, [A, B])


@pytest.mark.parametrize("ours", [geon.log_softmax, lambda x: geon.log(geon.softmax(x))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_of_softmax_far_out(ours, dtype):
    data = np.array([1000.0, -1000.0, 999.0], dtype)
    x = leaf(data, A)
    y = ours(x)
    exact = special.log_softmax(data.astype(np.float64))
    np.testing.assert_allclose(value(stabilise(y), {x: data}), exact, rtol=1e-6)
    slope = value(geon.deriv(geon.sum(y), x), {x: data})
    np.testing.assert_allclose(slope, 1 - 3 * np.exp(exact), rtol=1e-5)
    seed = geon.constant(np.array([0, 1, 0], dtype), axes=A)
    slope = value(geon.deriv(y, x, seed=seed), {x: data})
    np.testing.assert_allclose(slope, [0, 1, 0] - np.exp(exact), rtol=1e-5)


# Activations ------------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": (geon.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (geon.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "leaky_relu 0.3": (lambda x: geon.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    "elu": (geon.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "elu 2": (lambda x: geon.elu(x, 2), lambda x: np.where(x > 0, x, 2 * np.expm1(x))),
    "gelu": (geon.gelu, lambda x: x * special.ndtr(x)),
    "gelu tanh": (
        lambda x: geon.gelu(x, approximate="tanh"),
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (geon.silu, lambda x: x * special.expit(x)),
    "clip": (lambda x: geon.clip(x, -1, 0.7), lambda x: np.clip(x, -1, 0.7)),
    "clip below": (lambda x: geon.clip(x, low=-1), lambda x: np.clip(x, -1, None)),
    "clip above": (lambda x: geon.clip(x, high=0.5), lambda x: np.clip(x, None, 0.5)),
}


@pytest.mark.parametrize(("ours", "theirs"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations(ours, theirs):
    data = 3 * samples(3, 4)
    x = leaf(data, A, B)
    y = ours(x)
    assert y.axes is x.axes
    np.testing.assert_allclose(value(y, {x: data}), theirs(data), rtol=1e-12, atol=1e-15)
    geon.check_gradients(
        geon.constant(samples(3, 4, seed=1), axes=[A, B]) * y, {x: data}, each=True
    )


@pytest.mark.parametrize(("ours", "theirs"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations_keep_nan_and_the_dtype(ours, theirs):
    for dtype in ("float32", "float64"):
        got = at(ours, [NAN, 1.0], dtype)
        assert got.dtype == dtype
        assert np.isnan(got[0])
        np.testing.assert_allclose(got[1], theirs(np.float64(1)), rtol=1e-6)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "gelu", "gelu tanh", "silu"])
def test_activations_and_slopes_far_out(name):
    points = np.array([-1e5, -800.0, 800.0, 1e5])
    ours = ACTIVATIONS[name][0]
    low = {"leaky_relu": 0.01, "elu": 0}.get(name, 0)
    np.testing.assert_allclose(slope_at(ours, points), [low, low, 1, 1], atol=1e-300)
    np.testing.assert_array_equal(at(ours, points)[2:], points[2:])


def test_slopes_at_0():
    got = {name: slope_at(ours, [0.0])[0] for name, (ours, _) in ACTIVATIONS.items()}
    assert (got["relu"], got["leaky_relu"], got["leaky_relu 0.3"]) == (0, 0.01, 0.3)
    assert (got["elu"], got["elu 2"], got["silu"], got["gelu"]) == (1, 2, 0.5, 0.5)


def test_clip_shares_the_slope_at_a_bound_and_high_wins():
    np.testing.assert_array_equal(slope_at(lambda x: geon.clip(x, 0, 1), [-1, 0, 0.5, 1, 2.0]),
                                  [0, 0.5, 1, 0.5, 0])  # fmt: skip
    np.testing.assert_array_equal(at(lambda x: geon.clip(x, 3, 1), [0.0, 2, 5]), 1)
    x = geon.placeholder(axes=[A], dtype="int8")
    assert geon.clip(x, 0, 100).dtype == np.int8
    assert geon.clip(x) is x


def test_clip_with_tensors_as_bounds():
    data, low = samples(3, 4), samples(4, seed=3) - 1
    x, bound = leaf(data, A, B), leaf(low, B)
    y = geon.clip(x, bound, bound + 1)
    np.testing.assert_array_equal(value(y, {x: data, bound: low}), np.clip(data, low, low + 1))
    geon.check_gradients(y, {x: data, bound: low}, each=True)


def test_relu_is_a_maximum_in_the_end():
    x = geon.placeholder(axes=[A])
    assert rewrite([geon.relu(x)], simplify_rules(), {})[0] is geon.maximum(x, 0)
    assert geon.relu(geon.placeholder(axes=[A], dtype="int32")).dtype == np.int32


def test_gelu_has_two_forms():
    with pytest.raises(geon.ArgumentError, match="='erf'; give 'none', the exact form, or 'tanh'"):
        geon.gelu(geon.placeholder(axes=[A]), approximate="erf")


# Combining --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool"])
def test_onehot(dtype):
    data = np.array([1, 0, 1]).astype(dtype)
    x = leaf(data, A)
    y = geon.onehot(x, B)
    assert (y.axes, y.dtype) == (geon.Axes(A, B), np.float32)
    np.testing.assert_array_equal(value(y, {x: data}), np.eye(4)[[1, 0, 1]])
    assert geon.onehot(x, B, "bool").dtype == bool


def test_onehot_outside_the_axis_is_zero_and_long_axes_do_not_wrap():
    data = np.array([-1, 4, 3])
    x = leaf(data, A)
    np.testing.assert_array_equal(value(geon.onehot(x, B), {x: data}).sum(1), [0, 0, 1])
    small = np.array([3, 0, 255], np.uint8)
    y = leaf(small, A)
    got = value(geon.onehot(y, geon.Axis("long", 1000)), {y: small})
    np.testing.assert_array_equal(np.argwhere(got)[:, 1], small)


def test_onehot_refuses_floats_and_an_axis_it_has():
    with pytest.raises(geon.DTypeError, match=r"float32, not an integer dtype.*geon\.cast"):
        geon.onehot(geon.placeholder(axes=[A]), B)
    with pytest.raises(geon.AxisError, match="has the axis 'A' already"):
        geon.onehot(geon.placeholder(axes=[A], dtype="int64"), A)


@pytest.mark.parametrize("op", [geon.multiply, geon.add, geon.atan2, geon.maximum])
def test_outer(op):
    left, right = samples(3), samples(4, seed=1)
    x, y = leaf(left, A), leaf(right, B)
    with pytest.raises(geon.AxisError, match=r"geon\.outer"):
        op(x, y)
    made = geon.outer(op, x, y)
    assert made.axes.names == ("A", "B")
    expected = op.reference(left[:, None], right[None])
    np.testing.assert_allclose(value(made, {x: left, y: right}), expected)
    geon.check_gradients(made, {x: left, y: right}, each=True)


def test_outer_matches_shared_axes_and_takes_more_operands():
    x, y = geon.placeholder(axes=[A, B]), geon.placeholder(axes=[B, C])
    assert geon.outer(geon.multiply, x, y) is x * y
    z = geon.placeholder(axes=[C])
    mask = geon.placeholder(axes=[A], dtype="bool")
    chosen = geon.outer(geon.where, mask, z, 0, name="chosen")
    assert (chosen.axes.names, chosen.name) == (("A", "C"), "chosen")


def test_outer_refuses_what_is_not_elementwise():
    x = geon.placeholder(axes=[A])
    with pytest.raises(geon.ArgumentError, match=r"no elementwise op; write geon\.outer"):
        geon.outer(geon.dot, x, x)
    with pytest.raises(geon.ArgumentError, match="multiply takes 2 operands, not 1"):
        geon.outer(geon.multiply, x)


def test_interpolation():
    left, right, weight = samples(3, 4), samples(3, 4, seed=1), np.array([0, 0.25, 1.0])
    x, y, w = leaf(left, A, B), leaf(right, A, B), leaf(weight, A)
    feeds = {x: left, y: right, w: weight}
    made = geon.interpolation(x, y, w)
    assert made.axes is x.axes
    got = value(made, feeds)
    np.testing.assert_array_equal(got[[0, 2]], [left[0], right[2]])
    np.testing.assert_allclose(got[1], 0.75 * left[1] + 0.25 * right[1])
    geon.check_gradients(made, feeds, each=True)
    np.testing.assert_allclose(value(geon.interpolation(x, y, 2), feeds), 2 * right - left)


@pytest.mark.parametrize(
    "function",
    "mean variance std squared_L2 L2_norm logsumexp softmax log_softmax clip relu leaky_relu elu"
    " gelu silu".split(),
)
def test_composites_take_a_name(function):
    x = geon.placeholder(axes=[geon.Axis(f"for {function}", 3)])
    low = {"low": 0.25} if function == "clip" else {}
    made = getattr(geon, function)(x, name="called", **low)
    assert made.name == "called"
    assert made.filename == __file__
