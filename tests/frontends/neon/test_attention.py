"""Attention beside PyTorch's; masks, shared keys, and what it refuses."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import agrees, close, computed, reference

N, T = ax.N, ax.T
HEAD, KEY = geon.Axis("head", 3), geon.Axis("key", 2)
E = geon.Axis("E", 6)
x = geon.placeholder([N, T, E], name="x")
SEEN = T.prime
PLACES = ("query", "key", "value")


def split(array):
    """Weights of PyTorch, (heads times keys, E), over E, heads and keys; biases over the two."""
    return array.T.reshape(*array.shape[1:], 3, 2)


@pytest.mark.parametrize("case", ["attention", "attention_masked"])
def test_values_and_derivatives(transformer, case):
    arrays, beside, options = reference(case), [], {}
    if case == "attention_masked":
        beside = [geon.placeholder([N, T, SEEN], "bool", name="seen")]
        options = {"mask": beside[0]}
    layer = neon.MultiHeadAttention(HEAD, KEY, E, 0.0, 0.0)
    y = layer(x, **options)
    own = layer.variables
    wanted = {}
    for number, place in enumerate(PLACES):
        for new, old in ((place, "in_proj_weight"), (f"{place}_bias", "in_proj_bias")):
            parts = [split(arrays[f"{d}{old}"][6 * number : 6 * number + 6]) for d in ("", "d")]
            transformer.set(own[new], parts[0])
            wanted[own[new]] = parts[1]
    transformer.set(own["out"], arrays["out_proj.weight"].T.reshape(3, 2, 6))
    transformer.set(own["out_bias"], arrays["out_proj.bias"])
    wanted[own["out"]] = arrays["dout_proj.weight"].T.reshape(3, 2, 6)
    wanted[own["out_bias"]] = arrays["dout_proj.bias"]
    values = {x: arrays["x"], "g": arrays["g"]}
    if beside:
        values[beside[0]] = arrays["seen"]
    assert y.axes is x.axes
    found, slopes = computed(transformer, y, y.axes, [x, *own.values()], values, beside=beside)
    close(found, arrays["y"])
    close(slopes[x], arrays["dx"])
    np.testing.assert_allclose(slopes[own["key_bias"]], 0, atol=1e-4)  # no score's lead changes
    for leaf in wanted.keys() - {own["key_bias"]}:
        close(slopes[leaf], wanted[leaf])


def grouped(init=None, **options):
    """Four heads of queries, two of keys and values."""
    init = neon.Glorot(geon.Random(0)) if init is None else init
    options = {"groups": 2, "causal": True, "rotary": 100.0, **options}
    heads, keys = geon.Axis("head", 4), geon.Axis("key", 4)
    return neon.MultiHeadAttention(heads, keys, geon.Axis("Y", 3), init, **options)


def test_shared_keys_that_are_turned(transformer):
    z = geon.placeholder([N, T, geon.Axis("E", 5)], name="x")
    layer, arrays = grouped(), reference("attention_grouped")
    y = layer(z)
    own = layer.variables
    assert str(own["query"].axes) == "(E:5, head.group:2, head.query:2, key:4)"
    assert str(own["key"].axes) == "(E:5, head.group:2, key:4)"
    for place, leaf in own.items():
        transformer.set(leaf, arrays[place].reshape(transformer.get(leaf).shape))
    turned = {"query": lambda a: a.reshape(5, 2, 2, 4), "out": lambda a: a.reshape(2, 2, 4, 3)}
    agrees(transformer, "attention_grouped", y, y.axes, {"x": z, **own}, turned=turned)


def plain(weights, data, seen, heads, queries):
    """Attention by NumPy, a head at a time, with nothing turned."""
    out = 0
    for head in range(heads):
        q = data @ weights["query"].reshape(5, heads, 4)[:, head]
        k, v = (
            data @ weights[place].reshape(5, heads // queries, 4)[:, head // queries]
            for place in ("key", "value")
        )
        scores = np.where(seen, q @ k.swapaxes(-1, -2) / 2, -np.inf)
        large = scores.max(-1, keepdims=True, initial=-1e30)
        each = np.exp(scores - large)
        each = each / np.maximum(each.sum(-1, keepdims=True), 1e-30)
        out = out + each @ v @ weights["out"].reshape(heads, 4, 3)[head]
    return out


@pytest.mark.parametrize("groups", [None, 1, 2])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_any_length_and_number_of_groups_under_masks(transformer, groups, length):
    random = np.random.default_rng(length)
    z = geon.placeholder([T, geon.Axis("E", 5), N], name="z")
    mask = geon.placeholder([SEEN, N, T], "bool", name="mask")
    layer = grouped(groups=groups, rotary=None)
    y = geon.reorder(layer(z, mask=mask), [N, T, "Y"])
    f = transformer.computation([y, geon.deriv(geon.sum(y), z)], z, mask)
    weights = {place: transformer.get(leaf) for place, leaf in layer.variables.items()}
    for batch in (0, 1, 3):
        data = random.normal(size=(length, 5, batch)).astype("float32")
        seen = random.random((length, batch, length)) < 0.4  # rows that see nothing are among them
        found, slope = f(data, seen)
        wanted = plain(
            weights,
            data.transpose(2, 0, 1).astype("float64"),
            seen.transpose(1, 2, 0) & np.tri(length, dtype=bool),
            4,
            4 // (4 if groups is None else groups),
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert np.isfinite(slope).all()


S = geon.Axis("S")


def test_another_sequence(transformer):
    arrays = reference("attention_between")
    memory = geon.placeholder([N, S, geon.Axis("F", 5)], name="memory")
    real = geon.placeholder([N, S], "bool", name="real")
    layer = neon.MultiHeadAttention(HEAD, KEY, E, 0.0, 0.0, seen=S)
    y = layer(x, memory, mask=real)
    own, wanted = layer.variables, {}
    for number, place in enumerate(PLACES):
        for new, old in ((place, f"{place[0]}_proj_weight"), (f"{place}_bias", "in_proj_bias")):
            rows = slice(6 * number, 6 * number + 6) if "bias" in old else slice(None)
            first, slope = (split(arrays[f"{d}{old}"][rows]) for d in ("", "d"))
            transformer.set(own[new], first)
            wanted[own[new]] = slope
    for place, old in (("out", "out_proj.weight"), ("out_bias", "out_proj.bias")):
        first, slope = (arrays[f"{d}{old}"].T for d in ("", "d"))
        transformer.set(own[place], first.reshape(transformer.get(own[place]).shape))
        wanted[own[place]] = slope.reshape(transformer.get(own[place]).shape)
    values = {x: arrays["x"], memory: arrays["memory"], real: arrays["real"], "g": arrays["g"]}
    assert y.axes is x.axes
    leaves = [x, memory, *own.values()]
    found, slopes = computed(transformer, y, y.axes, leaves, values, beside=[real])
    close(found, arrays["y"])
    close(slopes[x], arrays["dx"])
    close(slopes[memory], arrays["dmemory"])
    np.testing.assert_allclose(slopes[own["key_bias"]], 0, atol=1e-4)
    for leaf in wanted.keys() - {own["key_bias"]}:
        close(slopes[leaf], wanted[leaf])


def test_another_sequence_along_the_same_axis(transformer):
    """It is seen under the name T', as the sequence itself would be."""
    memory = geon.placeholder([N, T, E], name="memory")
    mask = geon.placeholder([T, SEEN], "bool", name="mask")
    layer = neon.MultiHeadAttention(HEAD, KEY, E, neon.Glorot(geon.Random(0)))
    y, itself = layer(x, memory, mask=mask), layer(x, mask=mask)
    data, seen = np.random.default_rng(0).normal(size=(2, 4, 6)), np.tri(4, dtype=bool)
    both = transformer.computation(y, x, memory, mask)(data, data, seen)
    np.testing.assert_allclose(
        both, transformer.computation(itself, x, mask)(data, seen), rtol=1e-5, atol=1e-6
    )


def test_shares_that_are_left_out(transformer):
    arrays = reference("attention_dropped")
    heads, keys = geon.Axis("head", 2), geon.Axis("key", 3)
    z = geon.placeholder([N, T, geon.Axis("E", 4)], name="x")
    kept = geon.placeholder([N, heads, T, SEEN], "bool", name="kept")
    dropout = neon.Activation(lambda shares: geon.where(kept, shares / 0.75, 0))
    layer = neon.MultiHeadAttention(
        heads, keys, geon.Axis("E", 4), 0.0, causal=True, dropout=dropout
    )
    y = layer(z)
    for place, leaf in layer.variables.items():
        transformer.set(leaf, arrays[place])
    leaves = {"x": z, **layer.variables}
    agrees(transformer, "attention_dropped", y, y.axes, leaves, beside={"kept": kept})


@pytest.mark.parametrize("masked", [False, True])
def test_dropout_is_for_training(transformer, masked):
    """With keys of zeros all shares are alike, and of values of 1 their sum is seen."""
    random, times = geon.Random(3), geon.Axis("T", 64)
    mask = np.ones((64, 64), bool) if masked else None
    mask = mask if mask is None else geon.constant(mask, [times, times.prime])

    def layer(dropout):
        return neon.MultiHeadAttention(
            HEAD, KEY, geon.Axis("Y", 1), neon.Constant(0.5), dropout=dropout, name="a"
        )

    z = geon.placeholder([N, times, E], name="z")
    data = np.full((2, 64, 6), 1 / 3, "float32")  # values of 1, and 1 from each head
    dropped = layer(neon.Dropout(0.25, random))
    still = transformer.computation(dropped(z, mask=mask), z)(data)
    np.testing.assert_allclose(still, 3, rtol=1e-5)
    moving = transformer.computation(dropped(z, mask=mask, training=neon.Training()), z)(data)
    counts = moving * 0.75 * 64  # how many shares are kept, in all three heads
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-2)
    assert counts.std() > 2 and abs(counts.mean() / (3 * 64) - 0.75) < 0.02
    assert [place for place, _ in dropped.layers()] == ["dropout"]


def test_what_sees_nothing_is_0(transformer):
    mask = geon.placeholder([N, SEEN], "bool", name="mask")
    layer = neon.MultiHeadAttention(HEAD, KEY, E, neon.Glorot(geon.Random(0)))
    f = transformer.computation(layer(x, mask=mask), x, mask)
    found = f(np.ones((2, 3, 6)), [[True, False, True], [False] * 3])
    assert found[0].all()
    np.testing.assert_array_equal(found[1], 0)


def test_axes_of_any_names(transformer):
    place, wide = geon.Axis("place", 4), geon.Axis("key", 5)
    z = geon.placeholder([place, wide, N], name="z")
    layer = neon.MultiHeadAttention(
        HEAD, KEY, geon.Axis("key", 2), neon.Glorot(geon.Random(0)), along="place", name="a"
    )
    y = layer(z)
    assert y.axes is geon.Axes(place, N, KEY)
    assert str(layer.variables["query"].axes) == "(key':5, head:3, key:2)"
    assert str(layer.variables["out"].axes) == "(head:3, key':2, key:2)"
    data = np.random.default_rng(0).normal(size=(4, 5, 2)).astype("float32")
    assert transformer.computation(y, z)(data).shape == (4, 2, 2)


def test_a_sequence_of_no_times_is_refused(transformer):
    layer = neon.MultiHeadAttention(HEAD, KEY, E, 0.0)
    with pytest.raises(geon.GuardError, match="at least one element"):
        transformer.computation(layer(x), x)(np.ones((2, 0, 6)))
    memory = geon.placeholder([N, S, E], name="memory")
    both = neon.MultiHeadAttention(HEAD, KEY, E, 0.0, seen=S)
    f = transformer.computation(both(x, memory), x, memory)
    with pytest.raises(geon.GuardError, match="at least one element"):
        f(np.ones((2, 3, 6)), np.ones((2, 0, 6)))
    assert f(np.ones((2, 0, 6)), np.ones((2, 3, 6))).shape == (2, 0, 6)


def test_what_is_refused():
    with pytest.raises(geon.ArgumentError, match="give an even length"):
        neon.MultiHeadAttention(HEAD, geon.Axis("key", 3), E, 0.0, rotary=10000.0)
    with pytest.raises(geon.ArgumentError, match=r"give geon.Axis\('head', length\)"):
        neon.MultiHeadAttention(geon.Axis("head"), KEY, E, 0.0)
    for groups in (2, 0):
        with pytest.raises(geon.ArgumentError, match="groups= a number that divides"):
            neon.MultiHeadAttention(HEAD, KEY, E, 0.0, groups=groups)
    layer = neon.MultiHeadAttention(HEAD, KEY, E, 0.0)
    with pytest.raises(geon.DTypeError, match="give truth values"):
        layer(x, mask=geon.placeholder([T, SEEN]))
    for axes in ([T], [T, SEEN, geon.Axis("Q")]):
        with pytest.raises(geon.AxisError, match="the times that are seen"):
            layer(x, mask=geon.placeholder(axes, "bool"))
    with pytest.raises(geon.ArgumentError, match="give the layer causal=True"):
        layer(x, cache=neon.Cache(geon.Axis("place", 4)))
    memory = geon.placeholder([N, S, E])
    for options in ({"causal": True}, {"rotary": 100.0}):
        ordered = neon.MultiHeadAttention(HEAD, KEY, E, 0.0, seen=S, **options)
        with pytest.raises(geon.ArgumentError, match="neither causal= nor rotary="):
            ordered(x, memory)
    with pytest.raises(geon.ArgumentError, match="the call no cache="):
        neon.MultiHeadAttention(HEAD, KEY, E, 0.0, seen=S)(
            x, memory, cache=neon.Cache(geon.Axis("place", 4))
        )
    with pytest.raises(geon.AxisError, match="S"):
        neon.MultiHeadAttention(HEAD, KEY, E, 0.0, seen=S)(x, x)
