"""A mixture of experts beside PyTorch's dense one; capacity, balance, and what it refuses."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import agrees, reference

N, T = ax.N, ax.T
EXPERT, HIDDEN, Y = geon.Axis("expert", 5), geon.Axis("hidden", 6), geon.Axis("Y", 2)
x = geon.placeholder([N, geon.Axis("C", 3)], name="x")


def layer_of(case, **options):
    """A layer with the weights of a reference."""
    arrays = reference(case)
    layer = neon.MixtureOfExperts(EXPERT, HIDDEN, Y, 0.0, **options)
    y = layer(x)
    own = layer.variables
    return layer, y, {place: arrays[place] for place in own}


@pytest.mark.parametrize("k", [1, 2])
def test_values_and_derivatives(transformer, k):
    layer, y, weights = layer_of(f"experts_{k}", k=k)
    for place, value in weights.items():
        transformer.set(layer.variables[place], value)
    agrees(transformer, f"experts_{k}", y, [N, Y], {"x": x, **layer.variables})
    training = neon.Training()
    layer(x, training=training)
    (cost,) = training.costs
    found = transformer.computation(cost, x)(reference(f"experts_{k}")["x"])
    np.testing.assert_allclose(found, 0.01 * reference(f"experts_{k}")["balance"], rtol=1e-5)


def plain(arrays, data, k, slots):
    """The mixture by NumPy, row by row; experts take so many rows each."""
    scores = data @ arrays["gate"]
    likely = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    filled, out = np.zeros(5, int), np.zeros((len(data), 2))
    erf = np.vectorize(__import__("math").erf)
    for n, row in enumerate(data):
        which = np.argsort(-likely[n], kind="stable")[:k]
        shares = likely[n, which] / (likely[n, which].sum() if k > 1 else 1)
        for share, e in zip(shares, which, strict=True):
            filled[e] += 1
            if filled[e] > slots:
                continue
            h = row @ arrays["w"][e] + arrays["b"][e]
            h = h * (1 + erf(h / np.sqrt(2))) / 2
            out[n] += share * (h @ arrays["out"][e] + arrays["out_bias"][e])
    return out


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("capacity", [None, 0.1, 0.5, 1.0, 1.25])
def test_experts_take_as_many_rows_as_they_may(transformer, k, capacity):
    layer, y, weights = layer_of("experts_2", k=k, capacity=capacity)
    for place, value in weights.items():
        transformer.set(layer.variables[place], value)
    slope = geon.deriv(geon.sum(y), [x, layer.variables["w"]])
    f = transformer.computation([geon.reorder(y, [N, Y]), *slope], x)
    wide = {place: value.astype("float64") for place, value in weights.items()}
    for rows in (0, 1, 2, 7, 33):
        data = np.random.default_rng(rows).normal(size=(rows, 3)).astype("float32")
        slots = rows if capacity is None else int(np.ceil(round(capacity * rows * k / 5, 9)))
        found, *slopes = f(data)
        wanted = plain(wide, data.astype("float64"), k, slots)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert all(np.isfinite(each).all() for each in slopes)


def test_rows_of_any_axes(transformer):
    z = geon.placeholder([T, geon.Axis("row", 3), N], name="z")
    random = geon.Random(0)
    layer = neon.MixtureOfExperts(
        EXPERT, HIDDEN, geon.Axis("row", 4), neon.Glorot(random), name="m"
    )
    y = layer(z)
    assert y.axes is geon.Axes(T, N, geon.Axis("row", 4))
    assert str(layer.variables["w"].axes) == "(expert:5, row':3, hidden:6)"
    data = np.random.default_rng(0).normal(size=(6, 3, 2)).astype("float32")
    found = transformer.computation(y, z)(data)
    one = transformer.computation(layer(z[{"T": slice(0, 1)}]), z)(data[:1])
    np.testing.assert_allclose(found[:1], one, rtol=1e-5, atol=1e-6)


def test_balance_is_trained(transformer):
    random = geon.Random(0)
    layer = neon.MixtureOfExperts(EXPERT, HIDDEN, Y, neon.Glorot(random), balance=1.0, k=1)
    target = geon.placeholder([N, Y], name="target")
    model = neon.Model(
        layer, x, target, lambda y, t: 0 * neon.costs.squared_error(y, t), neon.Adam(0.05),
        transformer=transformer,
    )  # fmt: skip
    data = np.random.default_rng(0).normal(size=(64, 3)).astype("float32") + 1
    training = neon.Training()
    layer(x, training=training)
    uneven = transformer.computation(training.costs[0], x)
    before = uneven(data)
    model.fit(neon.Batches(data, np.zeros((64, 2)), size=32), 30)
    assert uneven(data) < before


def test_what_is_refused():
    for k in (0, 6):
        with pytest.raises(geon.ArgumentError, match="from 1 to that of the experts"):
            neon.MixtureOfExperts(EXPERT, HIDDEN, Y, 0.0, k=k)
    with pytest.raises(geon.ArgumentError, match="a number above 0, or None"):
        neon.MixtureOfExperts(EXPERT, HIDDEN, Y, 0.0, capacity=0)
    with pytest.raises(geon.ArgumentError, match="MixtureOfExperts: experts is expert"):
        neon.MixtureOfExperts(geon.Axis("expert"), HIDDEN, Y, 0.0)
    with pytest.raises(geon.AxisError, match="give it a batch"):
        neon.MixtureOfExperts(EXPERT, HIDDEN, Y, 0.0)(geon.placeholder([geon.Axis("C", 3)]))


def test_hidden_axes_may_have_the_names_of_those_that_are_made(transformer):
    layer = neon.MixtureOfExperts(EXPERT, Y, Y, neon.Gaussian(geon.Random(0), std=1.0))
    other = neon.MixtureOfExperts(EXPERT, HIDDEN.with_length(2), Y, 0.0)
    same, apart = layer(x), other(x)
    assert [axis.name for axis in layer.variables["out"].axes] == ["expert", "Y'", "Y"]
    for place, variable in layer.variables.items():
        transformer.set(other.variables[place], transformer.get(variable))
    data = np.random.default_rng(0).normal(size=(7, 3))
    found = [transformer.computation(y, x)(data) for y in (same, apart)]
    np.testing.assert_allclose(*found, rtol=1e-6)
