"""Sequences that go on in another call, from a cache."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

N, T = ax.N, ax.T
E, HEAD, KEY = geon.Axis("E", 6), geon.Axis("head", 4), geon.Axis("key", 2)
x = geon.placeholder([N, T, E], name="x")


def attention(random, **options):
    options = {"causal": True, "rotary": 10000.0, **options}
    return neon.MultiHeadAttention(HEAD, KEY, E, neon.Glorot(random), 0.1, **options)


def network(groups=None):
    """Attention twice and a recurrent layer, in containers of all kinds."""
    random = geon.Random(0)
    return neon.Sequential(
        [
            neon.Residual(attention(random, groups=groups)),
            neon.Highway(attention(random, rotary=None), neon.Affine(E, neon.Glorot(random))),
            neon.LayerNorm(),
            neon.Parallel([neon.LSTM(E, neon.Glorot(random)), neon.GRU(E, 0.5)], "E"),
        ],
        name="net",
    )


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_step_by_step_is_the_whole(transformer, groups, batch):
    net = network(groups)
    whole, cache = net(x), neon.Cache(geon.Axis("place", 11), name="cache")
    part = net(x, cache=cache)
    assert part.axes is whole.axes
    f = transformer.computation(whole, x)
    go_on = transformer.computation([part, *cache.updates], x)
    data = np.random.default_rng(batch).normal(size=(batch, 11, 6)).astype("float32")
    wanted = f(data)
    for lengths in ([1] * 11, [4, 0, 1, 3, 1], [11]):
        transformer.set(cache.position, 0)
        ends = np.cumsum([0, *lengths])
        parts = [go_on(data[:, a:b])[0] for a, b in zip(ends, ends[1:], strict=False)]
        found = np.concatenate(parts, axis=1)
        np.testing.assert_allclose(found, wanted[:, : ends[-1]], rtol=1e-5, atol=1e-5)
        assert transformer.get(cache.position) == ends[-1]
    with pytest.raises(geon.IndexRangeError, match=r"\.times.* used as positions"):
        go_on(data[:, :1])
    assert transformer.get(cache.position) == 11


def test_what_is_kept_has_names_and_is_not_trained():
    net, cache = network(), neon.Cache(geon.Axis("place", 5), name="cache")
    y = net(x, cache=cache)
    assert set(y.variables()) == set(net.parameters())
    names = {effect.args[0].name for effect in cache.updates}
    assert names == {
        "cache.position",
        *(f"cache.net.{place}.{kept}"
          for place in ("0.layer", "1.layer") for kept in ("key", "value")),
        *(f"cache.net.3.0.state.{number}" for number in range(2)),
        "cache.net.3.1.state.0",
    }  # fmt: skip


def test_it_is_written_in_place(transformer):
    cache = neon.Cache(geon.Axis("place", 1000))
    y = attention(geon.Random(0))(x, cache=cache)
    step = transformer.computation([y, *cache.updates], x, specialize={N: 1, T: 1})
    step(np.ones((1, 1, 6)))
    assert step.peak_bytes() < 2**20 + 4 * 1000 * 8 * 4  # scratch, values and scores: no copy
    written = [line for line in step.explain("plan").splitlines() if "-> variable" in line]
    assert len(written) == 3


def test_values_of_before_do_not_come_back(transformer):
    net, cache = network(), neon.Cache(geon.Axis("place", 8))
    go_on = transformer.computation([net(x, cache=cache), *cache.updates], x)
    data = np.random.default_rng(0).normal(size=(2, 3, 6)).astype("float32")
    first = go_on(data)[0]
    go_on(np.full((2, 5, 6), np.nan))
    transformer.set(cache.position, 0)
    np.testing.assert_array_equal(go_on(data)[0], first)


def test_two_conversations(transformer):
    net, places = network(), geon.Axis("place", 8)
    caches = [neon.Cache(places, name=f"cache{number}") for number in range(2)]
    steps = [transformer.computation([net(x, cache=cache), *cache.updates], x) for cache in caches]
    data = np.random.default_rng(0).normal(size=(2, 1, 8, 6)).astype("float32")
    found = [
        [step(each[:, at : at + 1])[0] for step, each in zip(steps, data, strict=True)]
        for at in range(8)
    ]
    whole = transformer.computation(net(x), x)
    for number in range(2):
        parts = np.concatenate([pair[number] for pair in found], axis=1)
        np.testing.assert_allclose(parts, whole(data[number]), rtol=1e-5, atol=1e-5)


def test_a_prompt_under_a_mask(transformer):
    places = geon.Axis("place", 6)
    mask = geon.placeholder([N, places], "bool", name="mask")
    layer, cache = attention(geon.Random(0), rotary=None), neon.Cache(places)
    go_on = transformer.computation([layer(x, mask=mask, cache=cache), *cache.updates], x, mask)
    data = np.random.default_rng(0).normal(size=(1, 4, 6)).astype("float32")
    padded = np.insert(data, 1, 7.0, axis=1)
    seen = np.array([[True, False, True, True, True, True]])
    go_on(padded[:, :3], seen)
    found = go_on(padded[:, 3:], seen)[0]
    whole = transformer.computation(layer(x), x)(data)
    np.testing.assert_allclose(found, whole[:, 2:], rtol=1e-5, atol=1e-6)


class Forgetful(neon.Layer):
    def __init__(self):
        super().__init__()
        self.inner = attention(geon.Random(0))

    def forward(self, x, training=None):
        return self.inner(x, training=training)


def test_what_is_refused():
    cache = neon.Cache(geon.Axis("place", 4))
    with pytest.raises(geon.ArgumentError, match="give forward a cache="):
        Forgetful()(x, cache=cache)
    random = geon.Random(0)
    ends = [neon.LSTM(E, neon.Glorot(random), reverse=reverse) for reverse in (False, True)]
    with pytest.raises(geon.ArgumentError, match="call it on whole sequences"):
        neon.BiRNN(*ends)(x, cache=cache)
    with pytest.raises(geon.ArgumentError, match="leave cache= out"):
        ends[1](x, cache=cache)
    with pytest.raises(geon.ArgumentError, match="no state= beside it"):
        ends[0](x, cache=cache, state=[0.0, 0.0])
    layer = attention(random)
    layer(x, cache=cache)
    with pytest.raises(geon.ArgumentError, match=r"give each call a neon\.Cache of its own"):
        layer(x, cache=cache)
    assert neon.Linear(E, 0.0)(x, cache=cache).axes is x.axes


def test_other_numbers_of_examples(make):
    """A cache has as many examples as its first call, until its variables are set to others."""
    cache = neon.Cache(geon.Axis("place", 8), name="cache")
    y = neon.GRU(E, 0.1, name="gru")(x, cache=cache)
    transformer = make()
    f = transformer.computation([y, *cache.updates], x)
    f(np.ones((2, 3, 6)))
    with pytest.raises(geon.FeedError, match="or set the variable to an array of the other length"):
        f(np.ones((1, 3, 6)))
    compiled = f.stages().compiled
    fresh = make().computation([y, *cache.updates], x)
    expected = fresh(np.ones((3, 3, 6)))[0]
    for leaf in cache.variables:
        sizes = [3 if axis.name == "N" else axis.length for axis in leaf.axes]
        transformer.set(leaf, np.zeros(sizes, leaf.dtype))
    np.testing.assert_allclose(f(np.ones((3, 3, 6)))[0], expected, rtol=1e-6)
    assert f.stages().compiled is compiled
    second = neon.Cache(geon.Axis("place", 8), name="second")
    again = neon.GRU(E, 0.1, name="again")(x, cache=second)
    g = transformer.computation([again, *second.updates], x)
    for turn in range(2):
        assert g(np.ones((1, 3, 6)))[0].shape == (1, 3, 6), turn
        assert f(np.ones((3, 3, 6)))[0].shape == (3, 3, 6), turn


@pytest.mark.parametrize("kind", [neon.Recurrent, neon.LSTM, neon.GRU])
def test_a_recurrent_layer_goes_on_for_more_times_than_there_are_places(transformer, kind):
    layer, cache = kind(E, 0.3), neon.Cache(geon.Axis("place", 2), name="cache")
    go_on = transformer.computation([layer(x, cache=cache), *cache.updates], x)
    whole = transformer.computation(layer(x), x)
    data = np.random.default_rng(0).normal(size=(2, 7, 6)).astype("float32")
    parts = [go_on(data[:, k : k + 1])[0] for k in range(7)]
    np.testing.assert_allclose(np.concatenate(parts, 1), whole(data), rtol=1e-4, atol=1e-5)
    assert transformer.get(cache.position) == 7
