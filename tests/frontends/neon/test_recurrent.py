"""Layers along time beside PyTorch's; states, masks and directions."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import close, computed, reference

N, T = ax.N, ax.T
C, H = geon.Axis("C", 4), geon.Axis("H", 3)
x = geon.placeholder([T, N, C], name="x")


def product(array, count):
    """Weights of PyTorch, (gates H, C), as weights over C, gates and H."""
    made = array.reshape(count, 3, -1).transpose(2, 0, 1)
    return made[:, 0] if count == 1 else made


def sums(array, count):
    """A bias of PyTorch over gates and H."""
    return array if count == 1 else array.reshape(count, 3)


def biases(arrays, kind, count, end=""):
    """The biases of a layer: what both of PyTorch's give."""
    both = [sums(arrays[f"bias_{k}_l0{end}"], count) for k in ("ih", "hh")]
    if kind is not neon.GRU:
        return {"b": both[0] + both[1]}
    summed = both[0] + both[1] * np.array([[1], [1], [0]])
    return {"b": summed, "bu": both[1][2]}


def set_weights(transformer, layer, arrays, end=""):
    count = len(layer.gates)
    values = {
        "w": product(arrays[f"weight_ih_l0{end}"], count),
        "u": product(arrays[f"weight_hh_l0{end}"], count),
        **biases(arrays, type(layer), count, end),
    }
    assert values.keys() == layer.variables.keys()
    for place, value in values.items():
        transformer.set(layer.variables[place], value)


KINDS = {"rnn": neon.Recurrent, "lstm": neon.LSTM, "gru": neon.GRU}


@pytest.mark.parametrize("case", KINDS)
def test_values_and_derivatives(transformer, case):
    arrays = reference(case)
    layer = KINDS[case](H, 0.0)
    y = layer(x)
    set_weights(transformer, layer, arrays)
    own, count = layer.variables, len(layer.gates)
    inputs = [x, own["w"], own["u"], own["b"]]
    found, slopes = computed(transformer, y, [T, N, H], inputs, {x: arrays["x"], "g": arrays["g"]})
    close(found, arrays["y"])
    close(slopes[x], arrays["dx"])
    close(slopes[own["w"]], product(arrays["dweight_ih_l0"], count))
    close(slopes[own["u"]], product(arrays["dweight_hh_l0"], count))
    close(slopes[own["b"]], sums(arrays["dbias_ih_l0"], count))
    last = KINDS[case](H, 0.0, last=True)
    z = last(x)
    set_weights(transformer, last, arrays)
    close(transformer.computation(z, x)(arrays["x"]), arrays["last"][0])


def test_a_layer_from_each_end(transformer):
    arrays = reference("bi_rnn")
    layer = neon.BiRNN(neon.LSTM(H, 0.0), neon.LSTM(H, 0.0, reverse=True), name="both")
    y = layer(x)
    assert y.axes is geon.Axes(T, N, geon.Axis("H", 6))
    set_weights(transformer, layer.ahead, arrays)
    set_weights(transformer, layer.back, arrays, "_reverse")
    found, slopes = computed(transformer, y, y.axes, [x], {x: arrays["x"], "g": arrays["g"]})
    close(found, arrays["y"])
    close(slopes[x], arrays["dx"])
    names = [leaf.name for leaf in layer.all_variables()]
    assert names == [f"both.{end}.{place}" for end in ("ahead", "back") for place in "wub"]


def random_layer(kind, **options):
    stream = geon.Random(0)
    return kind(H, neon.Glorot(stream), neon.Orthogonal(stream), **options)


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_a_state_goes_on_where_it_ended(transformer, kind, length):
    layer = random_layer(kind)
    z = geon.placeholder([N, C, geon.Axis("S")], name="z")
    whole, _ = layer.unrolled(x)
    _, state = layer.unrolled(x)
    again = random_layer(kind, along="S")
    again.variables = layer.variables
    rest, _ = again.unrolled(z, state)
    f = transformer.computation([whole, rest], x, z)
    data = np.random.default_rng(length).normal(size=(length + 5, 2, 4)).astype("float32")
    after = data[length:].transpose(1, 2, 0)
    both = f(data[:length], after)
    assert rest.axes.names == ("N", "S", "H")
    np.testing.assert_allclose(
        np.concatenate([both[0], both[1].transpose(1, 0, 2)]),
        transformer.computation(whole, x)(data),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("reverse", [False, True])
def test_a_mask_leaves_the_state_as_it_was(transformer, kind, reverse):
    layer = random_layer(kind, reverse=reverse, last=True)
    lengths = geon.placeholder([N], "int64", name="lengths")
    mask = geon.outer(geon.greater, lengths, geon.iota(T))
    y = layer(x, mask=mask)
    slope = geon.deriv(geon.sum(geon.square(y)), x)
    f = transformer.computation([y, slope], x, lengths)
    data = np.random.default_rng(0).normal(size=(6, 3, 4)).astype("float32")
    counts = [6, 2, 0]
    found, slopes = f(data, counts)
    alone = transformer.computation(layer(x), x)
    for number, count in enumerate(counts):
        wanted = alone(data[:count, number : number + 1])[0]
        np.testing.assert_allclose(found[number], wanted, rtol=1e-5, atol=1e-6)
        assert not slopes[count:, number].any()


def test_several_axes_and_a_name_of_both_sides(transformer):
    G = geon.Axis("G", 2)
    z = geon.placeholder([N, T, geon.Axis("H", 5)], name="z")
    layer = neon.GRU([G, H], neon.Glorot(geon.Random(0)))
    y = layer(z)
    assert y.axes is geon.Axes(N, T, G, H)
    assert layer.variables["w"].axes.names == ("H'", "gate", "G", "H")
    assert layer.variables["u"].axes.names == ("G'", "H'", "gate", "G", "H")
    found = transformer.computation(y, z)(np.ones((2, 3, 5)))
    assert found.shape == (2, 3, 2, 3) and np.isfinite(found).all()


def test_the_bias_of_the_gate_that_forgets(transformer):
    layer = neon.LSTM(H, 0.0, bias=neon.ForgetBias(2.0))
    transformer.computation(layer(x), x)
    wanted = np.zeros((4, 3))
    wanted[1] = 2
    np.testing.assert_array_equal(transformer.get(layer.variables["b"]), wanted)


def test_an_activation_of_ones_own(transformer):
    layer = neon.Recurrent(H, 1.0, 0.0, 1.0, geon.relu)
    found = transformer.computation(layer(x), x)(np.ones((2, 1, 4)))
    np.testing.assert_array_equal(found, np.full((2, 1, 3), 5))


def test_what_does_not_fit_is_refused():
    lstm = neon.LSTM(H, 0.0)
    with pytest.raises(geon.ArgumentError, match="give what unrolled returned"):
        lstm(x, state=[0.0])
    with pytest.raises(geon.AxisError, match="give one that is"):
        lstm(x, mask=geon.placeholder([N], "bool"))
    with pytest.raises(geon.AxisError, match="'T'"):
        lstm(geon.placeholder([N, C]))
    for layers in ((lstm, lstm), (neon.LSTM(H, 0.0, reverse=True),) * 2):
        with pytest.raises(geon.ArgumentError, match="reverse=True"):
            neon.BiRNN(*layers)
    with pytest.raises(geon.AxisError, match="axis="):
        neon.BiRNN(neon.GRU([H, C], 0.0), neon.GRU([H, C], 0.0, reverse=True))
