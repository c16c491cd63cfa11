"""The order of a layer's axes does not depend on training, masks, caches or other options."""

import itertools

import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

N, T, H = ax.N, ax.T, ax.H
C, G, K = geon.Axis("C", 4), geon.Axis("G", 2), geon.Axis("K", 4)
RANDOM = geon.Random(0, name="random")
INIT = neon.Gaussian(RANDOM)
HEADS, KEYS = geon.Axis("heads", 2), geon.Axis("keys", 2)

# Each layer in forms that differ in arguments which are not to change the order.
LAYERS = {
    "Activation": [lambda: neon.Activation(geon.relu)],
    "Affine": [
        lambda bias=bias: neon.Affine(K, INIT, bias, over=C) for bias in (None, 0.0)
    ],
    "BatchNorm": [lambda: neon.BatchNorm(over=C), lambda: neon.BatchNorm(over=[C, G])],
    "BiRNN": [
        lambda: neon.BiRNN(
            neon.GRU(K, INIT, over=C), neon.GRU(K, INIT, over=C, reverse=True)
        )
    ],
    "Bias": [lambda axes=axes: neon.Bias(axes=axes) for axes in (C, G, [G, C], T)],
    "Convolution": [
        lambda pad=pad, bias=bias: neon.Convolution(
            {T: geon.Window(2, pad=pad)}, K, INIT, bias, over=C
        )
        for pad in (0, 1)
        for bias in (None, 0.0)
    ],
    "Deconvolution": [
        lambda bias=bias: neon.Deconvolution({T: 2}, K, INIT, bias, over=C)
        for bias in (None, 0.0)
    ],
    "Dropout": [
        lambda rate=rate, axes=axes: neon.Dropout(rate, RANDOM, axes)
        for rate in (0.0, 0.5)
        for axes in (None, C, [G, N], [T, G, N, C])
    ],
    "GRU": [lambda: neon.GRU(K, INIT, over=C)],
    "GroupNorm": [lambda: neon.GroupNorm(1, C), lambda: neon.GroupNorm(2, C)],
    "Highway": [
        lambda: neon.Highway(neon.Dropout(0.5, RANDOM, C), neon.Bias(axes=C)),
        lambda: neon.Highway(geon.relu, neon.Dropout(0.5, RANDOM, G)),
    ],
    "LSTM": [lambda: neon.LSTM(K, INIT, over=C)],
    "LayerNorm": [lambda over=over: neon.LayerNorm(over=over) for over in (None, C, [G, N])],
    "Linear": [lambda: neon.Linear(K, INIT, over=C)],
    "LookupTable": [
        lambda pad=pad: neon.LookupTable(geon.Axis("words", 9), K, INIT, pad=pad)
        for pad in (None, 0)
    ],
    "MixtureOfExperts": [
        lambda k=k, capacity=capacity: neon.MixtureOfExperts(
            geon.Axis("E", 3), KEYS, K, INIT, k=k, capacity=capacity, over=C
        )
        for k in (1, 2)
        for capacity in (None, 1.0)
    ],
    "MultiHeadAttention": [
        lambda bias=bias, causal=causal, groups=groups, drop=drop, rotary=rotary: (
            neon.MultiHeadAttention(
                HEADS, KEYS, K, INIT, bias, causal=causal, groups=groups, rotary=rotary, over=C,
                dropout=neon.Dropout(0.5, RANDOM, N) if drop else None,
            )
        )
        for bias in (None, 0.0)
        for causal in (False, True)
        for groups, drop, rotary in ((None, False, None), (1, True, 100.0))
    ],
    "Parallel": [lambda: neon.Parallel([neon.Dropout(0.5, RANDOM, C), geon.relu], C)],
    "Pooling": [
        lambda kind=kind, pad=pad: neon.Pooling({T: geon.Window(2, pad=pad)}, kind)
        for kind in ("max", "average", "norm")
        for pad in (0, 1)
    ],
    "Preprocess": [lambda: neon.Preprocess(lambda x: x / 255)],
    "RMSNorm": [lambda over=over: neon.RMSNorm(over=over) for over in (None, C, [G, N])],
    "Recurrent": [
        lambda reverse=reverse: neon.Recurrent(K, INIT, over=C, reverse=reverse)
        for reverse in (False, True)
    ],
    "Residual": [lambda: neon.Residual(neon.Dropout(0.5, RANDOM, G))],
    "Sequential": [lambda: neon.Sequential([neon.Dropout(0.5, RANDOM, G), neon.Bias()])],
}  # fmt: skip


def forms(layer, x):
    """What a layer makes of ``x`` plainly, and with each option that it takes."""
    yield "plain", layer(x)
    yield "training", layer(x, training=neon.Training())
    seen = geon.Axis("T'")
    for axes in itertools.permutations([T, N, G]):
        options = {}
        if isinstance(layer, neon.MultiHeadAttention):
            options["mask"] = geon.placeholder([seen, *axes], "bool")
        elif isinstance(layer, (neon.Recurrent, neon.LSTM, neon.GRU, neon.BiRNN)):
            options["mask"] = geon.placeholder(axes, "bool")
        else:
            return
        yield "mask", layer(x, **options)
        yield "mask, training", layer(x, training=neon.Training(), **options)
    if isinstance(layer, (neon.Recurrent, neon.LSTM, neon.GRU)):
        carried = [geon.placeholder([K, G, N]) for _ in range(layer.carries)]
        yield "state", layer(x, state=carried)


def test_the_order_of_axes_depends_on_no_option():
    """Of all layers of neon, for inputs in several orders."""
    layers = {
        name
        for name in neon.__all__
        if isinstance(getattr(neon, name), type) and issubclass(getattr(neon, name), neon.Layer)
    }
    assert layers - {"Layer"} == set(LAYERS)
    wrong = []
    for name, builds in LAYERS.items():
        for axes in ([N, T, G, C], [G, C, T, N], [T, C, N, G]):
            if name == "LookupTable":
                x = geon.placeholder(axes[:2], "int64")
            else:
                x = geon.placeholder(axes, name="x")
            found = {}
            for number, build in enumerate(builds):
                layer = build()
                for form, y in forms(layer, x):
                    found.setdefault(y.axes.names, []).append((number, form))
            if len(found) != 1:
                wrong.append((name, axes, found))
    assert not wrong


@pytest.mark.parametrize("form", ["attention", "recurrent"])
def test_a_cache_keeps_the_order(form):
    x = geon.placeholder([geon.Axis("N", 2), geon.Axis("T", 3), C], name="x")
    build = {
        "attention": lambda: neon.MultiHeadAttention(HEADS, KEYS, K, INIT, causal=True, over=C),
        "recurrent": lambda: neon.LSTM(K, INIT, over=C),
    }[form]
    layer = build()
    plain = layer(x)
    cached = layer(x, cache=neon.Cache(geon.Axis("place", 8)))
    assert plain.axes.names == cached.axes.names
