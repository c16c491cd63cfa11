"""Jacobians, Hessians, seeds and tangents of many at once, and derivatives at each place."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.autodiff import jacobians
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import kind
from geon.testing.cases import for_each

from .evaluation import value
from .samples import SAMPLES
from .test_rows import GENERATED

A, B, C, H, K = (geon.Axis(name, n) for name, n in zip("ABCHK", (2, 3, 4, 4, 3), strict=True))
N = geon.Axis("N")
EVERY = [(row, one) for row, found in {**GENERATED, **SAMPLES}.items() for one in found]


def shape_of(axes):
    return [axis.length for axis in axes]


def built(sample):
    """The result of a sample, its inputs, and arrays for them."""
    leaves = [geon.placeholder(axes, "float64") for axes in sample.axes]
    arrays = sample.arrays(np.random.default_rng(4))
    return sample.build(*leaves), leaves, dict(zip(leaves, arrays, strict=True))


def one_by_one(y, x, feeds):
    """The Jacobian as an array over (y, x), by one sweep for each element of ``y``."""
    seed = geon.placeholder(y.axes, "float64")
    g = geon.deriv(y, x, seed=seed, unreached="zero")
    rows = []
    for place in itertools.product(*map(range, shape_of(y.axes))):
        unit = np.zeros(shape_of(y.axes))
        unit[place] = 1
        rows.append(value(g, {**feeds, seed: unit}))
    return np.reshape(rows, [*shape_of(y.axes), *shape_of(x.axes)])


def close(found, expected):
    floor = 1e-9 * (1 + abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=floor)


@for_each(("row", "sample"), EVERY, ids=lambda part: getattr(part, "label", part))
def test_one_sweep_gives_what_single_sweeps_give(row, sample, monkeypatch):
    """The Jacobian both ways, and the derivative at each place, for an example of every row."""
    y, leaves, feeds = built(sample)
    if kind(y.dtype) != "f":
        pytest.skip("not differentiable")
    for x in leaves:
        expected = one_by_one(y, x, feeds)
        for forwards in (False, True):
            monkeypatch.setattr(jacobians, "_is_smaller", lambda x, y, forwards=forwards: forwards)
            try:
                found = geon.jacobian(y, x, unreached="zero")
            except geon.DerivativeError as error:
                assert "has no form" in str(error) or "linear in its cotangent" in str(error)
                assert row in UNSPREAD, (row, sample.label)
                continue
            assert found.axes.names[: len(y.axes)] == y.axes.names
            assert found.axes.lengths[len(y.axes) :] == x.axes.lengths
            close(value(found, feeds), expected)
        check_each(y, x, feeds, expected)


# Rows that some argument of cannot be spread along a further axis.
UNSPREAD = {"pad"}
EACH = []


def check_each(y, x, feeds, expected):
    """Where a derivative at each place is given, it is what the Jacobian has."""
    for axis in y.axes:
        if axis in x.axes:
            continue
        try:
            g = geon.deriv(y, x, per=axis, seed=geon.constant(1.0, y.axes), unreached="zero")
        except geon.DerivativeError as error:
            refused = ("places along", "has no form", "the rule _slope_rule of product_tanh")
            assert any(reason in str(error) for reason in refused)
            continue
        at = y.axes.index(axis)
        others = tuple(k for k in range(len(y.axes)) if k != at)
        assert g.axes.names == (axis.name, *x.axes.names)
        close(value(g, feeds), expected.sum(axis=others))
        EACH.append(axis)


def test_many_rows_have_derivatives_at_each_place():
    """Asked after the examples above: mixing is not seen where there is none."""
    if not EACH:
        pytest.skip("the examples ran elsewhere")
    assert len(EACH) >= 20


# Models -----------------------------------------------------------------------------------------


def layers(random, dtype="float32"):
    """A small network over a batch: its loss for each example, its weights, inputs, arrays."""
    x = geon.placeholder([N, B], dtype, name="x")
    words = geon.placeholder([N], "int64", name="words")
    table = geon.Variable([K, B], dtype, initial_value=random.normal(size=(3, 3)), name="table")
    w = geon.Variable([B, H], dtype, initial_value=random.normal(size=(3, 4)), name="w")
    b = geon.Variable([H], dtype, initial_value=random.normal(size=4), name="b")
    hidden = geon.tanh(geon.dot(x + geon.gather(table, words, K), w, over=B) + b)
    centred = hidden - geon.mean(hidden, H)
    scores = geon.log_softmax(centred / geon.std(hidden, H), H)
    losses = -geon.sum(scores * geon.onehot(words, H), H)
    data = [random.normal(size=(5, 3)).astype(dtype), random.integers(0, 3, 5)]
    return losses, [table, w, b], [x, words], data


def test_gradients_of_each_example_are_those_of_single_examples(transformer):
    losses, weights, inputs, data = layers(np.random.default_rng(0))
    each = geon.deriv(losses, weights, per=N)
    assert [g.axes for g in each] == [geon.Axes(N, w.axes) for w in weights]
    found = transformer.computation(each, *inputs)(*data)
    one = transformer.computation(geon.deriv(geon.sum(losses), weights), *inputs)
    for n in range(5):
        for g, single in zip(found, one(*[d[n : n + 1] for d in data]), strict=True):
            np.testing.assert_allclose(g[n], single, rtol=2e-5, atol=2e-6)
    clipped = [geon.sum(g / geon.maximum(1.0, geon.L2_norm(g, w.axes)), N)
               for g, w in zip(each, weights, strict=True)]  # fmt: skip
    f = transformer.computation([*clipped, geon.sum(losses)], *inputs)
    assert [a.shape for a in f(*data)[:3]] == [(3, 3), (3, 4), (4,)]
    assert f(*[d[:0] for d in data])[1].shape == (3, 4)


def test_gradients_of_each_example_compute_nothing_of_the_model_again():
    losses, weights, inputs, _ = layers(np.random.default_rng(0))
    whole = geon.deriv(geon.sum(losses), weights)
    each = geon.deriv(losses, weights, per=N)
    forward = set(post_order([losses]))
    assert len(set(post_order(each)) - forward) <= 1.2 * len(set(post_order(whole)) - forward)
    simple = geon.NumPyTransformer().computation(each, *inputs).program
    assert not any(
        op.primitive.name == "broadcast" and op.args[0].primitive.name == "variable"
        for op in post_order(simple.roots)
    )


def test_what_puts_examples_together_is_refused_with_its_line():
    losses, weights, _, _ = layers(np.random.default_rng(0))
    mixed = losses - geon.mean(losses)
    with pytest.raises(geon.DerivativeError, match=r"along N: .*test_jacobians.*geon.jacobian"):
        geon.deriv(mixed, weights, per=N)
    with pytest.raises(geon.DerivativeError, match="not a scalar; give seed="):
        geon.deriv(geon.dot(geon.placeholder([N, B]), weights[1]), weights[1], per=N)
    x = geon.placeholder([N])
    with pytest.raises(
        geon.AxisError, match=r"per= \(N\) already.*deriv\(geon.sum\(y, \['N'\]\), x\)"
    ):
        geon.deriv(x * x, x, per="N")
    cured = geon.deriv(geon.sum(x * x, ["N"]), x)
    np.testing.assert_array_equal(geon.NumPyTransformer().computation(cured, x)([1, 3]), [2, 6])
    with pytest.raises(geon.AxisError, match="axis 'Z' is no axis of"):
        geon.deriv(losses, weights, per="Z")


def test_jacobians_of_a_model(transformer):
    losses, weights, inputs, data = layers(np.random.default_rng(1))
    found = transformer.computation(geon.jacobian(losses, weights), *inputs)(*data)
    each = transformer.computation(geon.deriv(losses, weights, per=N), *inputs)(*data)
    for jacobian, single in zip(found, each, strict=True):
        np.testing.assert_allclose(jacobian, single, rtol=2e-5, atol=2e-6)


def test_a_hessian_is_the_hessian(transformer):
    random = np.random.default_rng(2)
    losses, (_, w, b), inputs, data = layers(random, "float64")
    loss = geon.sum(losses)
    table = geon.hessian(loss, [w, b])
    assert [[h.axes.names for h in row] for row in table] == [
        [("B", "H", "B'", "H'"), ("B", "H", "H'")],
        [("H", "B", "H'"), ("H", "H'")],
    ]
    ((ww, wb), (bw, bb)) = table
    found = transformer.computation([ww, wb, bw, bb], *inputs)(*data)
    np.testing.assert_allclose(found[0], found[0].transpose(2, 3, 0, 1), atol=1e-12)
    np.testing.assert_allclose(found[1], found[2].transpose(1, 2, 0), atol=1e-12)
    gradient = transformer.computation(geon.deriv(loss, w), *inputs)
    at, step = transformer.get(w).copy(), 1e-6
    for place in [(0, 0), (2, 3)]:
        moved = []
        for sign in (1, -1):
            there = at.copy()
            there[place] += sign * step
            transformer.set(w, there)
            moved.append(gradient(*data))
        numeric = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(found[0][(..., *place)], numeric, atol=1e-7)
    assert geon.hessian(loss, b).axes == geon.Axes(H, H.prime)
    with pytest.raises(geon.DerivativeError, match="not a scalar"):
        geon.hessian(losses, b)
    assert (
        value(geon.hessian(geon.sum(b), b), {b: np.ones(4)}).tolist() == np.zeros((4, 4)).tolist()
    )


def test_many_seeds_and_many_directions_are_one_sweep():
    losses, weights, _, _ = layers(np.random.default_rng(3))
    many = geon.Axis("many", 30)
    one, thirty = geon.placeholder([N]), geon.placeholder([many, N])
    w = weights[1]
    single, whole = geon.deriv(losses, w, seed=one), geon.deriv(losses, w, seed=thirty)
    assert whole.axes is geon.Axes(many, w.axes)
    assert len(post_order([whole])) <= len(post_order([single])) + 12
    push = geon.jvp(losses, w, geon.placeholder([many, *w.axes]))
    assert push.axes is geon.Axes(N, many)
    assert len(post_order([push])) <= 1.3 * len(
        post_order([geon.jvp(losses, w, geon.placeholder(w.axes))])
    )


def test_many_seeds_and_directions_are_what_single_ones_give(transformer):
    losses, weights, inputs, data = layers(np.random.default_rng(4))
    w, b = weights[1:]
    many = geon.Axis("many")
    seeds, s = geon.placeholder([N, many]), geon.placeholder([N])
    dirs, d = geon.placeholder([*w.axes, many]), geon.placeholder(w.axes)
    random = np.random.default_rng(5)
    loss = geon.sum(geon.square(losses))
    for build, given, one in [
        (lambda s: geon.deriv(losses, w, seed=s), seeds, s),
        (lambda s: geon.vjp(losses, b, s), seeds, s),
        (lambda t: geon.jvp(losses, w, t), dirs, d),
        (lambda t: geon.hvp(loss, w, t), dirs, d),
    ]:
        whole = transformer.computation(build(given), given, *inputs)
        part = transformer.computation(build(one), one, *inputs)
        shape = {seeds: (5, 3), dirs: (3, 4, 3)}[given]
        table = random.normal(size=shape).astype(np.float32)
        found = whole(table, *data)
        at = build(given).axes.index("many")
        for k in range(3):
            expected = part(table[..., k], *data)
            np.testing.assert_allclose(np.take(found, k, axis=at), expected, rtol=1e-4, atol=1e-5)


def test_a_rule_may_use_an_axis_of_any_name():
    """Rules make axes with primes of their own; further axes of these names are kept apart."""
    x = geon.placeholder([H], "float64", name="x")
    numbers = np.array([1.5, 0.0, -2.0, 3.0])
    for function in (lambda x: geon.cumprod(x, H), lambda x: geon.sort(x), geon.softmax):
        y = function(x)
        close(value(geon.jacobian(y, x), {x: numbers}), one_by_one(y, x, {x: numbers}))
        seeds = geon.placeholder([H, H.prime], "float64")
        table = np.random.default_rng(0).normal(size=(4, 4))
        found = geon.deriv(y, x, seed=seeds)
        assert found.axes == geon.Axes(H.prime, H)
        expected = table.T @ one_by_one(y, x, {x: numbers})
        close(value(found, {x: numbers, seeds: table}), expected)


def test_an_axis_for_many_that_a_result_has_is_refused():
    x, y = geon.placeholder([N, B], name="x"), geon.placeholder([B], name="y")
    with pytest.raises(geon.AxisError, match="the result would have it twice; geon.rename one"):
        geon.jvp(x * y, y, geon.placeholder([N, B]))
    with pytest.raises(geon.AxisError, match="for many at once, and x.N, B:3. .*has it too"):
        geon.deriv(geon.sum(x * y), x, seed=geon.placeholder([N]))
    w = geon.placeholder([B], name="w")
    assert geon.hvp(geon.sum(w * w), w, geon.placeholder([N, B])).axes.names == ("B", "N")


def test_jacobians_of_scalars_lists_and_what_is_not_reached():
    x, z = geon.placeholder([A], name="x"), geon.placeholder([B], name="z")
    total = geon.sum(x * x)
    assert geon.jacobian(total, x) is geon.deriv(total, x)
    found = geon.jacobian(x * geon.sum(z), [x, z])
    assert [j.axes.names for j in found] == [("A", "A'"), ("A", "B")]
    with pytest.raises(geon.DerivativeError, match="not reached"):
        geon.jacobian(x * x, z)
    with pytest.raises(geon.DerivativeError, match="not reached"):
        geon.jacobian(z * z, x)
    zeros = geon.jacobian(z * z, x, unreached="zero")
    assert value(zeros, {x: np.ones(2), z: np.ones(3)}).tolist() == np.zeros((3, 2)).tolist()
    with pytest.raises(geon.DerivativeError, match="only float"):
        geon.jacobian(geon.cast(x, "int32"), x)


def test_seeds_and_places_go_together():
    losses, weights, inputs, data = layers(np.random.default_rng(6), "float64")
    w = weights[1]
    many = geon.Axis("many", 2)
    scale = geon.placeholder([many, N], "float64")
    found = geon.deriv(losses, w, seed=scale, per=N)
    assert found.axes.names == ("N", "many", "B", "H")
    feeds = dict(zip(inputs, data, strict=True)) | {
        v: np.asarray(v.initial_value.primitive.reference(v.initial_value)) for v in weights
    }
    each = value(geon.deriv(losses, w, per=N), feeds, {"N": 5})
    weights_of = np.random.default_rng(0).normal(size=(2, 5))
    close(
        value(found, {**feeds, scale: weights_of}, {"N": 5}),
        np.einsum("mn,nbh->nmbh", weights_of, each),
    )


@pytest.mark.parametrize("per", [N, [N], "N", geon.Axis("Q", 9)])
def test_per_of_what_was_reduced_is_refused(per):
    x, w = geon.placeholder([N, B], name="x"), geon.Variable([B], name="w")
    total = geon.sum(geon.tanh(geon.dot(x, w)))
    with pytest.raises(geon.AxisError) as caught:
        geon.deriv(total, w, per=per)
    assert "no axis of sum()" in str(caught.value)
    if not isinstance(per, str):
        name = "Q" if per is not N and per != [N] else "N"
        assert str(caught.value).endswith(
            "which has none; keep it where y is reduced, for example "
            f"geon.sum(..., out_axes={name})"
        )
