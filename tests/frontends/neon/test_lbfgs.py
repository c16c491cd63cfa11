"""L-BFGS beside PyTorch's and the same steps written out in NumPy, and what it reaches."""

import numpy as np
import pytest

import geon
from geon.frontends import neon

from .references import reference
from .test_averaged_model import everything
from .test_training import examples, model, same

A, B, N = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("N")


def banana(x, y, where=np):
    """Rosenbrock's function, 0 at (1, 1)."""
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def written_out(f, slope, w, steps, history=10, searches=20, rate=1.0):
    """The weights after each step in float64."""
    pairs, path, fresh, last = [], [], True, None
    for _ in range(steps):
        g = slope(w)
        if last is not None:
            s, y = w - last[0], g - last[1]
            if s @ y > 1e-8 * np.sqrt((s @ s) * (y @ y)):
                pairs, fresh = [*pairs, (s, y)][-history:], False
        last = w, g
        q, shares = g, []
        for s, y in reversed(pairs):
            shares.append(s @ q / (s @ y))
            q = q - shares[-1] * y
        size = min(1, 1 / np.linalg.norm(g)) if fresh else pairs[-1][0] @ pairs[-1][1]
        q = q * (size if fresh else size / (pairs[-1][1] @ pairs[-1][1]))
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            q = q + (share - y @ q / (s @ y)) * s
        for k in range(searches):
            new = w - rate / 2**k * q
            if f(new) <= f(w) - 1e-4 * rate / 2**k * (g @ q) and g @ q > 0:
                w = new
                break
        else:
            pairs, fresh = [], True
        path.append(w)
    return np.array(path)


@pytest.mark.parametrize("history", [1, 3, 10])
def test_steps_as_written_out(transformer, history):
    w = geon.Variable([A], "float64", initial_value=np.array([-1.2, 1.0]), name="w")
    cost = banana(w[0], w[1])
    f = transformer.computation([cost, neon.LBFGS(history=history)(cost)])
    path = np.array([f() and transformer.get(w) for _ in range(12)])

    def slope(w):
        x, y = w
        return np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)])

    wanted = written_out(lambda w: banana(*w), slope, np.array([-1.2, 1.0]), 12, history)
    np.testing.assert_allclose(path, wanted, rtol=1e-6)


@pytest.mark.parametrize("history", [1, 3])
def test_steps_of_pytorch_where_none_is_too_long(transformer, history):
    """It searches no length; here the first one serves always."""
    arrays = reference(f"lbfgs_{history}")
    c = geon.Axis("C", 3)
    w = geon.Variable([c], "float64", initial_value=0, name="w")
    points = geon.placeholder([N, c], "float64", name="points")
    truths = geon.placeholder([N], "float64", name="truths")
    cost = geon.mean(neon.costs.binary_cross_entropy(geon.dot(points, w), truths))
    cost = cost + 0.05 * geon.sum(geon.square(w))
    f = transformer.computation([cost, neon.LBFGS(history=history)(cost)], points, truths)
    path = [f(arrays["points"], arrays["truths"]) and transformer.get(w) for _ in range(8)]
    np.testing.assert_allclose(path, arrays["path"], rtol=1e-6, atol=1e-7)


def test_a_curved_valley_is_followed_to_its_end(transformer):
    w = geon.Variable([A], "float64", initial_value=np.array([-1.2, 1.0]), name="w")
    cost = banana(w[0], w[1])
    f = transformer.computation([cost, neon.LBFGS()(cost)])
    for _ in range(60):
        f()
    np.testing.assert_allclose(transformer.get(w), [1, 1], atol=1e-6)


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float64", "float32")])
def test_a_regression_in_several_weights(transformer, dtypes):
    """The least squares that NumPy finds, with an axis named as the history is."""
    random = np.random.default_rng(0)
    history = geon.Axis("history", 3)
    w = geon.Variable([A, history], dtypes[0], initial_value=0, name="w")
    b = geon.Variable([history], dtypes[1], initial_value=0, name="b")
    x, t = geon.placeholder([N, A], name="x"), geon.placeholder([N, history], name="t")
    cost = geon.mean(geon.square(geon.dot(x, w) + b - t))
    f = transformer.computation([cost, neon.LBFGS(history=5)(cost)], x, t)
    points, targets = random.normal(size=(20, 2)) * [1, 10], random.normal(size=(20, 3))
    costs = [float(f(points, targets)[0]) for _ in range(30)]
    assert all(one <= other * (1 + 1e-6) for one, other in zip(costs[1:], costs, strict=False))
    full = np.concatenate([points, np.ones((20, 1))], 1)
    best = np.linalg.lstsq(full, targets, rcond=None)[0]
    np.testing.assert_allclose(transformer.get(w), best[:2], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(transformer.get(b), best[2], rtol=1e-3, atol=1e-4)


def test_decay_is_part_of_the_cost(transformer):
    w = geon.Variable([A], "float64", initial_value=0, name="w")
    cost = geon.sum(geon.square(w - 1))
    f = transformer.computation(neon.LBFGS(decay=2.0)(cost))
    for _ in range(10):
        f()
    np.testing.assert_allclose(transformer.get(w), [0.5, 0.5], rtol=1e-6)


def test_where_no_length_serves_weights_stay_and_the_history_begins_anew(transformer):
    w = geon.Variable([A], "float64", initial_value=1, name="w")
    g = geon.placeholder([A], "float64", name="g")
    cost = geon.sum(geon.square(w)) + geon.sum(g * w)
    f = transformer.computation([cost, neon.LBFGS(0.25)(cost)], g)
    for _ in range(3):
        f(np.zeros(2))
    before = transformer.get(w)
    assert transformer.get("optimiser.rho").any()
    f(np.array([np.nan, 0]))
    np.testing.assert_array_equal(transformer.get(w), before)
    assert not transformer.get("optimiser.rho").any() and transformer.get("optimiser.size") == 0
    for _ in range(80):
        f(np.zeros(2))
    np.testing.assert_allclose(transformer.get(w), [0, 0], atol=1e-6)


def test_few_searches(transformer):
    w = geon.Variable([], "float64", initial_value=1, name="w")
    cost = geon.cosh(20 * w)
    transformer.computation(neon.LBFGS(rate=100.0, searches=2)(cost))()
    assert transformer.get(w) == 1
    transformer.computation(neon.LBFGS(rate=100.0, searches=9)(cost))()
    assert 0 < abs(transformer.get(w)) < 1


def test_a_model_is_trained_and_goes_on_bit_for_bit(make, tmp_path):
    data = neon.Batches(*examples(), size=50)
    whole, part, rest = (model(make(), neon.LBFGS()) for _ in range(3))
    for made in (whole, part, rest):
        made.layer.parts[3].rate = 0.0
    before = whole.evaluate(data)["cost"]
    whole.fit(data, 12, callbacks=[neon.Checkpoints(tmp_path / "whole")])
    part.fit(data, 5, callbacks=[neon.Checkpoints(tmp_path)])
    rest.fit(
        data, 12, resume=tmp_path / "epoch-5.safetensors", callbacks=[neon.Checkpoints(tmp_path)]
    )
    same(whole.transformer, rest.transformer)
    assert whole.evaluate(data)["cost"] < 0.5 * before


def test_what_lbfgs_cannot_do_is_refused():
    w = geon.Variable([], initial_value=1, name="w")
    for optimiser in (
        neon.Groups({}, rest=neon.LBFGS()),
        neon.Accumulated(neon.LBFGS(), 2),
    ):
        with pytest.raises(geon.ArgumentError, match="call it with the cost"):
            optimiser(w * w)
    for options, what in (
        ({"history": 0}, "history=0"),
        ({"searches": 0}, "searches=0"),
        ({"clip": neon.ByValue(1.0)}, "clip="),
    ):
        with pytest.raises(geon.ArgumentError, match=what):
            neon.LBFGS(**options)


def test_a_stop_at_what_is_not_finite_stops_no_sound_run(make):
    data = neon.Batches(*examples(), size=25)
    for optimiser in (neon.LBFGS(), everything()):
        run = model(make(), optimiser).fit(data, 3, callbacks=[neon.StopOnNaN()])
        assert run.error is None and run.epoch == 3
