"""Optimisers, clipping and schedules beside PyTorch's; groups of parameters."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import schedules
from tests.places import placed

from .references import close, reference

A, B = geon.Axis("A", 2), geon.Axis("B", 3)

OPTIMISERS = {
    "sgd": lambda: neon.SGD(0.1),
    "momentum": lambda: neon.SGD(0.1, 0.9, decay=0.01),
    "nesterov": lambda: neon.SGD(0.1, 0.9, nesterov=True),
    "rmsprop": lambda: neon.RMSProp(0.01, 0.9, 0.5, decay=0.01),
    "adagrad": lambda: neon.Adagrad(0.1, decay=0.01),
    "adadelta": lambda: neon.Adadelta(decay=0.01),
    "adam": lambda: neon.Adam(0.1, decay=0.01),
    "adamw": lambda: neon.AdamW(0.1, decay=0.1),
}


def stepped(transformer, optimiser, first, slopes):
    """The weight after each step of a cost with these slopes."""
    w = geon.Variable([A, B], initial_value=first, name="w")
    g = geon.placeholder([A, B], name="g")
    f = transformer.computation(optimiser(geon.sum(w * g)), g)
    return np.array([f(slope) or transformer.get(w) for slope in slopes])


@pytest.mark.parametrize("case", OPTIMISERS)
def test_the_path_of_a_weight(transformer, case):
    arrays = reference(f"optimiser_{case}")
    slopes = reference("slopes")["both"]
    close(stepped(transformer, OPTIMISERS[case](), arrays["first"], slopes), arrays["path"])


def test_adam_in_float64_is_exact(transformer):
    """The first steps show 1 - 0.999 ** count, of which float32 has but four digits."""
    slopes = reference("slopes")["both"].astype("float64")
    w = geon.Variable([A, B], "float64", initial_value=0, name="w")
    g = geon.placeholder([A, B], "float64", name="g")
    f = transformer.computation(neon.Adam(0.25)(geon.sum(w * g)), g)
    value, m, v = (np.zeros((2, 3)) for _ in range(3))
    for count, slope in enumerate(slopes, 1):
        f(slope)
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        value -= 0.25 * m / (1 - 0.9**count) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
        np.testing.assert_allclose(transformer.get(w), value, rtol=1e-12)


def test_lion_goes_along_signs(transformer):
    """As its paper writes it out: PyTorch has none."""
    slopes = reference("slopes")["both"].astype("float64")
    first = reference("optimiser_sgd")["first"]
    found = stepped(transformer, neon.Lion(0.1, 0.8, 0.9, decay=0.5), first, slopes)
    w, m, path = first.astype("float64"), 0, []
    for slope in slopes:
        w = w - 0.1 * (np.sign(0.8 * m + 0.2 * slope) + 0.5 * w)
        m = 0.9 * m + 0.1 * slope
        path.append(w)
    close(found, np.array(path))


def test_weights_of_a_half_format_are_moved_in_float32(transformer):
    w = geon.Variable([A], "float16", initial_value=1, name="w")
    optimiser = neon.Adam(0.25)
    transformer.computation(optimiser(geon.sum(geon.cast(w, "float32"))))()
    assert {leaf.dtype.name for leaf in optimiser.variables.values()} == {"float32", "int64"}
    np.testing.assert_allclose(transformer.get(w), [0.75, 0.75], rtol=1e-3)


def test_a_step_moves_what_the_cost_depends_on_or_what_is_asked(transformer):
    v = geon.Variable([A], initial_value=1, name="v")
    w = geon.Variable([A], initial_value=1, name="w")
    cost = geon.sum(v * w)
    transformer.computation(neon.SGD(0.5)(cost))()
    transformer.computation(neon.SGD(0.5)(cost, [v]))()
    assert (transformer.get(v)[0], transformer.get(w)[0]) == (0.25, 0.5)
    with pytest.raises(geon.ArgumentError, match="take geon.mean"):
        neon.SGD(0.5)(v * w)


def test_what_is_kept_beside_weights_is_named_and_persistent(transformer):
    w = geon.Variable([A], initial_value=1, name="net.w")
    transformer.computation(neon.Adam()(geon.sum(w)))
    transformer.computation(neon.SGD(1.0, 0.5, name="other")(geon.sum(w)))
    assert set(transformer.values()) == {
        "net.w", "optimiser.steps", "optimiser.net.w.m", "optimiser.net.w.v",
        "other.steps", "other.net.w.momentum",
    }  # fmt: skip


def test_an_optimiser_called_twice_goes_on(transformer):
    w = geon.Variable([A], initial_value=0, name="w")
    optimiser = neon.SGD(1.0, 0.5)
    one = transformer.computation(optimiser(geon.sum(w)))
    two = transformer.computation(optimiser(geon.sum(2 * w)))
    one(), two()
    assert transformer.get(w)[0] == -1 - (0.5 + 2)
    assert transformer.get("optimiser.steps") == 2


def test_nesterov_needs_a_momentum():
    with pytest.raises(geon.ArgumentError, match="give momentum="):
        neon.SGD(0.1, nesterov=True)


# Clipping ------------------------------------------------------------------------------------


def clipped(transformer, clip, slopes):
    leaves = [geon.placeholder([geon.Axis(f"{k}{n}", s) for k, s in enumerate(a.shape)])
              for n, a in enumerate(slopes)]  # fmt: skip
    return transformer.computation(clip(leaves), *leaves)(*slopes)


def test_clipping_by_value_and_by_the_common_norm(transformer):
    for case, clip in (
        ("clip_value", neon.ByValue(0.5)),
        ("clip_global_norm", neon.ByGlobalNorm(1.0)),
    ):
        arrays = reference(case)
        found = clipped(transformer, clip, [arrays["in2"], arrays["in1"]])
        for array, dims in zip(found, (2, 1), strict=True):
            close(array, arrays[f"out{dims}"])


@pytest.mark.parametrize("by", [neon.ByNorm, neon.ByGlobalNorm])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float16", 30000), ("bfloat16", 3e30), ("float32", 3e20), ("float32", 3e-30)],
)
def test_slopes_of_any_size_are_clipped(transformer, by, dtype, size):
    """The squares of these are out of the range of their dtype."""
    x = geon.placeholder([A], dtype)
    largest = min(size, 1.0)
    (found,) = transformer.computation(by(largest)([x]), x)([size, size])
    np.testing.assert_allclose(found.astype(float), largest * np.sqrt(0.5), rtol=1e-2)


def test_clipping_by_the_norm_of_each(transformer):
    small, large = np.array([0.3, 0.4], "float32"), np.array([3.0, 4.0], "float32")
    found = clipped(transformer, neon.ByNorm(1.0), [small, large])
    np.testing.assert_array_equal(found[0], small)
    np.testing.assert_allclose(found[1], large / 5, rtol=1e-6)
    assert neon.ByGlobalNorm(1.0)([]) == []


def test_an_optimiser_clips_first(transformer):
    w = geon.Variable([A], initial_value=0, name="w")
    transformer.computation(neon.SGD(1.0, clip=neon.ByValue(0.25))(geon.sum(w)))()
    np.testing.assert_array_equal(transformer.get(w), [-0.25, -0.25])


# Schedules -----------------------------------------------------------------------------------


def rates(transformer, schedule, count=8):
    step = geon.placeholder([geon.Axis("S")], name="step")
    return transformer.computation(schedule(step) + 0 * step, step)(np.arange(count))


@pytest.mark.parametrize(
    ("case", "schedule"),
    [
        ("step", schedules.Step(0.1, 3, 0.5)),
        ("exponential", schedules.Exponential(0.1, 0.9)),
        ("polynomial", schedules.Polynomial(0.1, 8, 2.0)),
        ("cosine", schedules.Cosine(0.1, 8, 0.01)),
        ("one_cycle", schedules.OneCycle(0.1, 10, last=100)),
    ],
)
def test_schedules_as_pytorch_has_them(transformer, case, schedule):
    wanted = reference(f"schedule_{case}")["rates"]
    np.testing.assert_allclose(rates(transformer, schedule), wanted, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        (schedules.Fixed(0.5), [0.5] * 5),
        (schedules.Inverse(1.0, 0.5, 2.0), [(1 + 0.5 * k) ** -2 for k in range(5)]),
        (schedules.Given([3, 1, 2]), [3, 1, 2, 2, 2]),
        (schedules.WarmUp(2, schedules.Given([4, 1, 0.5])), [2, 4, 4, 1, 0.5]),
        (schedules.Polynomial(1.0, 2), [1, 0.5, 0, 0, 0]),
        (schedules.Cosine(1.0, 2, 0.5), [1, 0.75, 0.5, 0.5, 0.5]),
        (schedules.OneCycle(1.0, 5, rise=0.2, first=2, last=5), [1, 0.868198, 0.55, 0.231802, 0.1]),
    ],
    ids=["fixed", "inverse", "given", "warm_up", "polynomial", "cosine", "short_rise"],
)
def test_schedules_by_their_formulas(transformer, schedule, wanted):
    np.testing.assert_allclose(rates(transformer, schedule, 5), wanted, rtol=1e-6, atol=1e-7)


def test_a_list_of_no_rates_is_refused():
    with pytest.raises(geon.ArgumentError, match="at least one"):
        schedules.Given([])


def test_an_optimiser_follows_its_schedule_and_a_placeholder(transformer):
    w = geon.Variable([], initial_value=0, name="w")
    f = transformer.computation(neon.SGD(schedules.Given([1, 10, 100]))(2 * w))
    for wanted in (-2, -22, -222, -422):
        f()
        assert transformer.get(w) == wanted
    rate = geon.placeholder(name="rate")
    transformer.computation(neon.SGD(rate)(2 * w), rate)(11)
    assert transformer.get(w) == -444


# Groups --------------------------------------------------------------------------------------


def test_groups_go_by_name_and_by_tag(transformer):
    leaves = {
        name: geon.Variable([], initial_value=0, name=name, tags=tags)
        for name, tags in (("a.w", "w"), ("a.b", "b"), ("b.w", "w"), ("b.b", "b"), ("c.w", "w"))
    }
    optimiser = neon.Groups(
        {"b.*": neon.SGD(2.0), neon.Tag("b"): neon.SGD(3.0, 0.5, name="mine"), "c.*": None},
        rest=neon.SGD(1.0),
    )
    f = transformer.computation(optimiser(sum(leaves.values())))
    f()
    found = [float(transformer.get(leaf)) for leaf in leaves.values()]
    assert found == [-1, -3, -2, -2, 0]
    states = set(transformer.values()) - set(leaves)
    assert states == {"optimiser.0.steps", "mine.steps", "optimiser.3.steps", "mine.a.b.momentum"}


def test_groups_are_clipped_together(transformer):
    v, w = (geon.Variable([], initial_value=0, name=name) for name in "vw")
    optimiser = neon.Groups({"v": neon.SGD(1.0)}, neon.SGD(1.0), clip=neon.ByGlobalNorm(1.0))
    transformer.computation(optimiser(3 * v + 4 * w))()
    np.testing.assert_allclose([transformer.get(v), transformer.get(w)], [-0.6, -0.8], rtol=1e-6)


def test_where_every_group_is_frozen_nothing_moves(transformer):
    w = geon.Variable([], initial_value=1, name="w")
    f = transformer.computation([neon.Groups({}, None)(2 * w), w + 0])
    f()
    assert transformer.get(w) == 1


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: neon.SGD(-0.1), r"SGD: rate=-0.1; give a finite number of at least 0"),
        (lambda: neon.Adam(float("nan")), r"Adam: rate=nan"),
        (lambda: neon.SGD("0.1"), r"SGD: rate='0.1'"),
        (lambda: neon.SGD(geon.Variable([A])), r"SGD: .*test_optimisers.py:\d+.*no scalar.*Groups"),
        (lambda: neon.Adam(first=1.0), r"Adam: first=1.0; .*at least 0 and less than 1"),
        (lambda: neon.AdamW(second=1), r"AdamW: second=1;"),
        (lambda: neon.RMSProp(smoothing=2), r"RMSProp: smoothing=2;"),
        (lambda: neon.Adadelta(smoothing=-1), r"Adadelta: smoothing=-1;"),
        (lambda: neon.Lion(second=1.0), r"Lion: second=1.0;"),
        (lambda: neon.Muon(momentum=1.0), r"Muon: momentum=1.0;"),
        (lambda: neon.Muon(steps=0), r"Muon: steps=0;"),
        (lambda: neon.SGD(0.1, -3.0), r"SGD: momentum=-3.0;"),
        (lambda: neon.Adagrad(epsilon=-1), r"Adagrad: epsilon=-1;"),
        (lambda: neon.SGD(0.1, decay=float("inf")), r"SGD: decay=inf;"),
        (lambda: neon.LBFGS(decay=-1), r"LBFGS: decay=-1;"),
        (lambda: neon.SGD(0.1, clip=1.0), r"SGD: clip=1.0 .*neon.ByGlobalNorm\(1.0\)"),
        (lambda: neon.ByValue(-1), r"ByValue: largest=-1; give a finite number above 0"),
        (lambda: neon.ByNorm(0), r"ByNorm: largest=0;"),
        (lambda: neon.ByGlobalNorm(float("inf")), r"ByGlobalNorm: largest=inf;"),
        (lambda: neon.Averaged(0.1), r"Averaged: 0.1 is no optimiser"),
        (lambda: neon.Groups({"w": 0.1}, rest=None), r"Groups: 0.1 of 'w' is no optimiser"),
        (lambda: neon.Groups({}, rest=0.1), r"Groups: 0.1 of 'rest' is no optimiser"),
        (lambda: schedules.Fixed(-1), r"Fixed: rate=-1;"),
        (lambda: schedules.Step(0.1, 0), r"Step: every=0;"),
        (lambda: schedules.Exponential(0.1, -1), r"Exponential: factor=-1;"),
        (lambda: schedules.Inverse(0.1, -1), r"Inverse: factor=-1;"),
        (lambda: schedules.Polynomial(0.1, 0), r"Polynomial: steps=0;"),
        (lambda: schedules.Cosine(0.1, 0), r"Cosine: steps=0; give a finite number above 0"),
        (lambda: schedules.WarmUp(-1, schedules.Fixed(1)), r"WarmUp: steps=-1;"),
        (lambda: schedules.WarmUp(3, 0.1), r"WarmUp: then=0.1 .*Fixed\(0.1\)"),
        (lambda: schedules.OneCycle(0.1, 0), r"OneCycle: steps=0;"),
        (lambda: schedules.OneCycle(0.1, 9, rise=1.5), r"OneCycle: rise=1.5 .*from 0 to 1"),
        (lambda: schedules.Given([0.1, "a"]), r"Given: rates\[1\]='a';"),
    ],
)
def test_numbers_that_would_make_weights_nan_are_refused(build, what):
    with pytest.raises(geon.ArgumentError, match=placed(what)):
        build()


def test_schedules_at_the_ends_of_their_ranges(transformer):
    rising = rates(transformer, schedules.OneCycle(0.1, 5, rise=1))
    np.testing.assert_allclose([rising[0], *rising[4:6]], [0.004, 0.1, 4e-7], rtol=1e-5)
    np.testing.assert_allclose(rates(transformer, schedules.WarmUp(0, schedules.Fixed(0.1))), 0.1)
