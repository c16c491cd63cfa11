"""Optimisers around optimisers, and Muon, beside PyTorch and written-out NumPy."""

import numpy as np
import pytest

import geon
from geon.frontends import neon

from .references import close, reference

A, B, N = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("N")


def stepped(transformer, optimiser, slopes, first=0.0, axes=(A, B), dtype="float32"):
    """The weight after each step of a cost with these slopes."""
    w = geon.Variable(axes, dtype, initial_value=first, name="w")
    g = geon.placeholder(axes, name="g")
    f = transformer.computation(optimiser(geon.sum(geon.cast(w, "float32") * g)), g)
    return np.array([f(slope) or transformer.get(w) for slope in slopes])


SLOPES = np.random.default_rng(0).integers(-4, 5, size=(12, 2, 3)).astype("float32")


# Several batches a step ------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(
    "inner",
    [
        lambda: neon.SGD(0.5, 0.5, decay=0.25),
        lambda: neon.AdamW(neon.schedules.Step(0.1, 2), decay=0.1),
        lambda: neon.Adam(clip=neon.ByGlobalNorm(1.0)),
    ],
    ids=["sgd", "adamw", "clipped"],
)
def test_some_batches_are_one_step_down_their_mean(transformer, make, inner, count):
    """Bit for bit: sums of these slopes, and their parts, have no rounding."""
    small = stepped(transformer, neon.Accumulated(inner(), count), SLOPES)
    means = SLOPES.reshape(-1, count, 2, 3).mean(1)
    large = stepped(make(), inner(), means)
    np.testing.assert_array_equal(small[count - 1 :: count], large)
    before = np.concatenate([np.zeros((1, 2, 3)), large])
    for k in range(count - 1):
        np.testing.assert_array_equal(small[k::count], before[: len(large)])


def test_small_batches_of_a_cost_are_a_large_one(transformer, make):
    def training(made, optimiser):
        w = geon.Variable([A, B], initial_value=reference("slopes")["both"][0], name="w")
        x, t = geon.placeholder([N, A], name="x"), geon.placeholder([N, B], name="t")
        cost = geon.mean(neon.costs.squared_error(geon.dot(x, w), t))
        return w, made.computation([cost, optimiser(cost)], x, t)

    random = np.random.default_rng(1)
    x, t = random.normal(size=(24, 2)), random.normal(size=(24, 3))
    w, small = training(transformer, neon.Accumulated(neon.Adam(0.1), 3))
    other = make()
    v, large = training(other, neon.Adam(0.1))
    for begin in range(0, 24, 4):
        small(x[begin : begin + 4], t[begin : begin + 4])
    for begin in range(0, 24, 12):
        large(x[begin : begin + 12], t[begin : begin + 12])
    close(transformer.get(w), other.get(v))


# Averages --------------------------------------------------------------------------------------


def test_averages_of_weights(transformer):
    optimiser = neon.Averaged(neon.SGD(0.5), 0.75)
    path = stepped(transformer, optimiser, SLOPES, first=1.0)
    wanted = np.ones((2, 3))
    for w in path:
        wanted = 0.75 * wanted + 0.25 * w
    close(transformer.get("optimiser.w.average"), wanted)


@pytest.mark.parametrize("outside", [True, False], ids=["averages_outside", "averages_inside"])
def test_averages_move_where_weights_move(transformer, outside):
    if outside:
        optimiser = neon.Averaged(neon.Accumulated(neon.SGD(0.5), 3), 0.75)
    else:
        optimiser = neon.Accumulated(neon.Averaged(neon.SGD(0.5), 0.75), 3)
    path = stepped(transformer, optimiser, SLOPES, first=1.0)
    wanted = np.ones((2, 3))
    for w in path[2::3]:
        wanted = 0.75 * wanted + 0.25 * w
    close(transformer.get("optimiser.w.average"), wanted)


def test_averages_of_half_formats_are_kept_in_float32(transformer):
    slopes = np.ones((400, 2, 3))
    stepped(transformer, neon.Averaged(neon.SGD(2**-10), 0.999), slopes, first=1.0, dtype="float16")
    average = transformer.get("optimiser.w.average")
    weights = 1 - np.arange(401) / 1024
    wanted = weights[0]
    for w in weights[1:]:
        wanted = 0.999 * wanted + 0.001 * w
    assert average.dtype == "float32"
    np.testing.assert_allclose(average, np.full((2, 3), wanted), rtol=1e-5)


# Scales ----------------------------------------------------------------------------------------


def test_a_step_that_overflows_is_left_out_and_the_scale_halved(transformer):
    slopes = SLOPES.copy()
    slopes[3, 1, 2], slopes[4, 0, 0] = np.inf, np.nan
    optimiser = neon.Scaled(neon.Adam(0.1), 8.0, every=2)
    w = geon.Variable([A, B], initial_value=0, name="w")
    g = geon.placeholder([A, B], name="g")
    f = transformer.computation([optimiser(geon.sum(w * g)), geon.sum(g)], g)
    scales, path = [], []
    for slope in slopes:
        f(slope)
        scales.append(float(transformer.get(optimiser.scale)))
        path.append(transformer.get(w))
    assert scales == [8, 16, 16, 8, 4, 4, 8, 8, 16, 16, 32, 32]
    np.testing.assert_array_equal(path[4], path[2])
    assert transformer.get("optimiser.steps") == 10


def test_scaled_steps_are_those_without_where_nothing_overflows(transformer, make):
    """Bit for bit: scales are powers of two."""
    scaled = stepped(transformer, neon.Scaled(neon.AdamW(0.1, decay=0.1), every=3), SLOPES)
    np.testing.assert_array_equal(scaled, stepped(make(), neon.AdamW(0.1, decay=0.1), SLOPES))


def test_slopes_too_small_for_float16_are_kept(transformer):
    """The slope of the first factor, 2 ** -26, is 0 in float16."""
    small = geon.placeholder([A], "float16", name="small")
    w = geon.Variable([A], "float16", initial_value=1, name="w")
    cost = geon.sum(geon.cast(w * small, "float32")) * 2**-13
    slope = geon.deriv(cost, w)
    optimiser = neon.Scaled(neon.SGD(2.0**20))
    f = transformer.computation([slope, optimiser(cost)], small)
    found, _ = f(np.full(2, 2.0**-13))
    assert (found == 0).all()
    np.testing.assert_array_equal(transformer.get(w), np.full(2, 1 - 2.0**-6))


@pytest.mark.parametrize("scaled_outside", [True, False])
def test_an_overflow_in_one_of_several_batches(transformer, scaled_outside):
    """Outside the batch is left out, inside the whole step is, as its sum is not finite."""
    slopes = SLOPES[:6].copy()
    slopes[1, 0, 0] = np.inf
    if scaled_outside:
        optimiser = neon.Scaled(neon.Accumulated(neon.SGD(0.5), 2))
    else:
        optimiser = neon.Accumulated(neon.Scaled(neon.SGD(0.5)), 2)
    path = stepped(transformer, optimiser, slopes)
    groups = [slopes[[0, 2]], slopes[3:5]] if scaled_outside else [slopes[2:4], slopes[4:6]]
    ends = (2, 4) if scaled_outside else (3, 5)
    w = np.zeros((2, 3))
    for group, end in zip(groups, ends, strict=True):
        w = w - 0.5 * group.mean(0)
        np.testing.assert_array_equal(path[end], w)


def test_a_scale_comes_back(transformer):
    slopes = np.full((80, 2, 3), np.nan)
    optimiser = neon.Scaled(neon.SGD(0.5), 1.0, every=1)
    stepped(transformer, optimiser, slopes)
    assert transformer.get("optimiser.scale") == 2.0**-24


def test_a_scale_stays_finite(transformer):
    """Slopes of 0 overflow never; those that come later still find a scale that is halved."""
    optimiser = neon.Scaled(neon.SGD(1.0), every=1)
    path = stepped(transformer, optimiser, np.zeros((120, 2, 3)))
    assert not path.any() and transformer.get("optimiser.scale") == 2.0**127
    w = geon.Variable((A, B), "float32", initial_value=0, name="v")
    g = geon.placeholder((A, B), name="g")
    other = neon.Scaled(neon.SGD(1.0, name="other"), first=2.0**127, every=1)
    f = transformer.computation(other(geon.sum(w * g)), g)
    for _ in range(6):
        f(np.full((2, 3), 4.0))
    assert transformer.get(w).max() < 0 and np.isfinite(transformer.get("other.scale"))


# Groups ----------------------------------------------------------------------------------------


def test_averages_in_groups_and_names(transformer):
    optimiser = neon.Groups({"w": neon.Averaged(neon.SGD(0.5), 0.5)}, rest=None)
    stepped(transformer, optimiser, SLOPES[:1], first=1.0)
    close(transformer.get("optimiser.0.w.average"), 1 - 0.25 * SLOPES[0])
    assert list(optimiser.averages().values())[0].name == "optimiser.0.w.average"


def test_what_waits_or_skips_goes_around_groups(transformer):
    w = geon.Variable([], initial_value=0, name="w")
    for inner in (neon.Scaled(neon.SGD(0.5)), neon.Accumulated(neon.SGD(0.5), 2)):
        with pytest.raises(geon.ArgumentError, match=r"neon.Groups\(\.\.\.\)"):
            neon.Groups({"w": inner}, rest=None)(2 * w)
    optimiser = neon.Accumulated(neon.Groups({neon.Tag("v"): None}, rest=neon.SGD(0.5)), 2)
    f = transformer.computation(optimiser(2 * w))
    f(), f()
    assert transformer.get(w) == -1


def test_a_pattern_that_fits_no_parameter_is_refused():
    w = geon.Variable([], initial_value=0, name="layer.w")
    for optimiser in (
        neon.Groups({"layr.*": neon.SGD(0.5)}, rest=None),
        neon.Averaged(neon.Groups({"layer.*": None, "*.b": neon.SGD(0.5)}, rest=neon.SGD(0.5))),
    ):
        with pytest.raises(geon.ArgumentError, match="fits none of .* 'layer.w'"):
            optimiser(2 * w)


def test_names_are_those_of_the_inner_optimiser(transformer):
    optimiser = neon.Accumulated(neon.SGD(1.0, 0.5, name="mine"), 2)
    stepped(transformer, optimiser, SLOPES[:1])
    assert set(transformer.values()) == {
        "w", "mine.steps", "mine.batches", "mine.w.sum", "mine.w.momentum"
    }  # fmt: skip


def test_averages_as_pytorch_has_them(transformer):
    arrays = reference("averaged")
    w = geon.Variable([A, B], initial_value=arrays["first"], name="w")
    g = geon.placeholder([A, B], name="g")
    f = transformer.computation(neon.Averaged(neon.Adam(0.1), 0.8)(geon.sum(w * g)), g)
    path = [f(slope) or transformer.get("optimiser.w.average") for slope in arrays["slopes"]]
    close(np.array(path), arrays["path"])


def test_scaled_costs_as_pytorch_has_them(transformer):
    arrays = reference("scaled")
    w = geon.Variable([A, B], initial_value=arrays["first"], name="w")
    g = geon.placeholder([A, B], name="g")
    optimiser = neon.Scaled(neon.Adam(0.1), first=64.0, every=2)
    f = transformer.computation(optimiser(geon.sum(w * g)), g)
    found = [
        f(slope) or (transformer.get(w), transformer.get("optimiser.scale"))
        for slope in arrays["slopes"]
    ]
    close(np.array([weight for weight, _ in found]), arrays["path"])
    assert [scale for _, scale in found] == list(arrays["scales"])


# Muon ------------------------------------------------------------------------------------------


def newton_schulz(x, steps=5):
    """Newton and Schulz's steps in float64."""
    x = x / np.linalg.norm(x)
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 5), (5, 1), (4, 4), (17, 31), (31, 17)])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon(transformer, shape, nesterov):
    slopes = np.random.default_rng(2).normal(size=(4, *shape))
    axes = [geon.Axis("in", shape[0]), geon.Axis("out", shape[1])]
    found = stepped(
        transformer, neon.Muon(0.1, 0.9, nesterov=nesterov, decay=0.5), slopes, axes=axes
    )
    w, m, path = np.zeros(shape), 0, []
    for slope in slopes:
        m = 0.9 * m + 0.1 * slope
        change = newton_schulz(0.9 * m + 0.1 * slope if nesterov else m)
        w = w - 0.1 * (max(1, shape[1] / shape[0]) ** 0.5 * change + 0.5 * w)
        path.append(w)
    np.testing.assert_allclose(found, np.array(path), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", ["wide", "tall", "plain"])
def test_muon_as_pytorch_has_it(transformer, case):
    """A weight of PyTorch is (out, in)."""
    arrays = reference(f"muon_{case}")
    slopes = arrays["slopes"].swapaxes(1, 2)
    axes = [geon.Axis("in", slopes.shape[1]), geon.Axis("out", slopes.shape[2])]
    optimiser = neon.Muon(0.1, 0.9, nesterov=case != "plain", decay=0.5)
    found = stepped(transformer, optimiser, slopes, arrays["first"].T, axes)
    np.testing.assert_allclose(found.swapaxes(1, 2), arrays["path"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("names", [("K'", "K"), ("K", "K'"), ("many", "few"), ("few", "few'")])
def test_muon_with_any_names_and_open_lengths(transformer, make, names):
    slopes = np.random.default_rng(2).normal(size=(2, 4, 3))
    axes = [geon.Axis(names[0], 4), geon.Axis(names[1], 3)]
    plain = [geon.Axis("in", 4), geon.Axis("out", 3)]
    found = stepped(transformer, neon.Muon(0.1), slopes, axes=axes)
    close(found, stepped(make(), neon.Muon(0.1), slopes, axes=plain))
    with geon.lengths({"L": 4, "M": 3}):
        opened = [geon.Axis("L"), geon.Axis("M")]
        close(found, stepped(make(), neon.Muon(0.1), slopes, first=0.0, axes=opened))


def test_muon_leaves_a_matrix_without_a_slope(transformer):
    path = stepped(transformer, neon.Muon(0.1), np.zeros((2, 2, 3)), first=1.0)
    np.testing.assert_array_equal(path, np.ones((2, 2, 3)))


def test_muon_for_matrices_and_another_for_the_rest(transformer):
    w = geon.Variable([A, B], initial_value=0, name="w")
    b = geon.Variable([B], initial_value=0, name="b")
    optimiser = neon.Groups({neon.Matrices(): neon.Muon(0.1)}, rest=neon.SGD(0.5))
    transformer.computation(optimiser(geon.sum(w + b)))()
    wanted = -0.1 * 1.5**0.5 * newton_schulz(np.ones((2, 3)))
    np.testing.assert_allclose(transformer.get(w), wanted, rtol=1e-4)
    np.testing.assert_array_equal(transformer.get(b), [-1, -1, -1])
    with pytest.raises(geon.ArgumentError, match="neon.Matrices"):
        neon.Muon()(geon.sum(w + b))


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_optimiser", "what"),
    [
        (lambda: neon.Accumulated(neon.SGD(1.0), 0), "batches=0"),
        (lambda: neon.Accumulated(neon.SGD(1.0), 2.0), "batches=2.0"),
        (lambda: neon.Averaged(neon.SGD(1.0), 1.0), "smoothing=1.0"),
        (lambda: neon.Scaled(neon.SGD(1.0), 0.0), "first=0.0"),
        (lambda: neon.Scaled(neon.SGD(1.0), every=0), "every=0"),
        (lambda: neon.Accumulated(neon.Averaged(neon.Accumulated(neon.SGD(1.0), 2)), 3), "one of"),
    ],
    ids=["none", "float", "one", "zero", "never", "twice"],
)
def test_numbers_that_make_no_sense_are_refused(make_optimiser, what):
    with pytest.raises(geon.ArgumentError, match=what):
        make_optimiser()
