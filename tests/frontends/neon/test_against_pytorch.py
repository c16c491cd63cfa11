"""Layers and activations beside PyTorch's of the same weights: values and derivatives."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .references import agrees, close, reference

N, C, H, W = ax.N, ax.C, ax.H, ax.W
K, R, S, G = (geon.Axis(name) for name in "KRSG")
WIDE, DEEP = geon.Window(3, pad=1), geon.Window(3)


def first(case, name, *order):
    """An array of a reference as a first value, its dimensions in this order."""
    array = reference(case)[name]
    return array.transpose(order) if order else array


def test_affine(transformer):
    x = geon.placeholder([N, geon.Axis("C", 4)], name="x")
    layer = neon.Affine(
        geon.Axis("K", 3), first("affine", "w"), first("affine", "b"), geon.relu, name="layer"
    )
    y = layer(x)
    leaves = {"x": x, "w": layer.variables["w"], "b": layer.variables["b"]}
    agrees(transformer, "affine", y, [N, K], leaves)


def test_lookup_table(transformer):
    x = geon.placeholder([N, ax.T], "int64", name="x")
    layer = neon.LookupTable(geon.Axis("V", 5), geon.Axis("E", 3), first("lookup", "w"), pad=2)
    y = layer(x)
    agrees(transformer, "lookup", y, y.axes, {"x": x, "w": layer.variables["w"]})
    assert not reference("lookup")["dw"][2].any()


def image(channels):
    return geon.placeholder([N, geon.Axis("C", channels), H, W], name="x")


def test_convolution(transformer):
    x, k = image(4), geon.Axis("K", 3)
    windows = {H: geon.Window(3, 2, 1, 1), W: geon.Window(2, 1, 2)}
    w, b = first("convolution", "w", 2, 3, 1, 0), first("convolution", "b")
    layer = neon.Convolution(windows, k, w, b)
    y = layer(x)
    leaves = {"x": x, "w": layer.variables["w"], "b": layer.variables["b"]}
    turned = {"w": lambda a: a.transpose(2, 3, 1, 0)}
    agrees(transformer, "convolution", y, [N, k, H, W], leaves, turned=turned)


def test_convolution_in_groups(transformer):
    x = geon.placeholder([N, geon.Axis("G", 2), geon.Axis("C", 3), H, W], name="x")
    array = reference("groups")
    w = array["w"].reshape(2, 2, 3, 3, 3).transpose(3, 4, 0, 2, 1)
    layer = neon.Convolution(
        {H: WIDE, W: WIDE}, geon.Axis("K", 2), w, array["b"].reshape(2, 2), over=C, apart=G
    )
    y = geon.reorder(layer(x), [N, G, "K", H, W])
    g = geon.placeholder(y.axes)
    leaves = [x, layer.variables["w"], layer.variables["b"]]
    f = transformer.computation([y, *geon.deriv(y, leaves, seed=g)], x, g)
    found = f(array["x"].reshape(2, 2, 3, 5, 5), array["g"].reshape(2, 2, 2, 5, 5))
    close(found[0].reshape(2, 4, 5, 5), array["y"])
    close(found[1].reshape(2, 6, 5, 5), array["dx"])
    close(found[2].transpose(2, 4, 3, 0, 1).reshape(4, 3, 3, 3), array["dw"])
    close(found[3].reshape(4), array["db"])


def test_convolution_of_each_channel(transformer):
    x = image(3)
    w = first("depthwise", "w")[:, 0].transpose(1, 2, 0)
    layer = neon.Convolution({H: DEEP, W: DEEP}, [], w, apart=C)
    y = layer(x)
    turned = {"w": lambda a: a[:, 0].transpose(1, 2, 0)}
    agrees(transformer, "depthwise", y, [N, C, H, W], {"x": x, "w": layer.variables["w"]},
           turned=turned)  # fmt: skip


def test_deconvolution(transformer):
    x = image(4)
    window = geon.Window(3, 2, pad=1)
    layer = neon.Deconvolution(
        {H: window, W: window},
        geon.Axis("K", 3),
        first("deconvolution", "w", 2, 3, 0, 1),
        first("deconvolution", "b"),
        lengths={H: 6, W: 9},
    )
    y = layer(x)
    leaves = {"x": x, "w": layer.variables["w"], "b": layer.variables["b"]}
    turned = {"w": lambda a: a.transpose(2, 3, 0, 1)}
    agrees(transformer, "deconvolution", y, [N, K, H, W], leaves, turned=turned)


@pytest.mark.parametrize(
    ("case", "layer"),
    [
        ("max_pool", neon.Pooling({H: 2, W: 2})),
        ("average_pool", neon.Pooling(dict.fromkeys([H, W], geon.Window(3, 2, pad=1)), "average")),
        ("norm_pool", neon.Pooling({H: 2, W: 2}, "norm")),
    ],
)
def test_pooling(transformer, case, layer):
    x = image(3)
    agrees(transformer, case, layer(x), [N, C, H, W], {"x": x})


@pytest.mark.parametrize("case", ["batch_norm", "batch_norm_rows"])
def test_batch_norm(transformer, case):
    arrays = reference(case)
    channels = geon.Axis("C", 3)
    x = geon.placeholder([N, channels, H, W][: arrays["x"].ndim], name="x")
    layer, training = neon.BatchNorm(momentum=0.8), neon.Training()
    y = layer(x, training=training)
    own = layer.variables
    transformer.set(own["scale"], arrays["scale"])
    transformer.set(own["shift"], arrays["shift"])
    leaves = {"x": x, "scale": own["scale"], "shift": own["shift"]}
    agrees(transformer, case, y, x.axes, leaves, training)
    transformer.computation([y, *training.updates], x)(arrays["x"] * 2)
    close(transformer.get(own["mean"]), arrays["mean"])
    close(transformer.get(own["variance"]), arrays["variance"])
    close(transformer.computation(layer(x), x)(arrays["x"]), arrays["inference"])


def test_layer_norm(transformer):
    x = geon.placeholder([N, geon.Axis("C", 4), geon.Axis("D", 5)], name="x")
    layer = neon.LayerNorm()
    normed(transformer, "layer_norm", x, layer)


def test_rms_norm(transformer):
    normed(
        transformer, "rms_norm", geon.placeholder([N, geon.Axis("C", 5)], name="x"), neon.RMSNorm()
    )


def test_group_norm(transformer):
    normed(transformer, "group_norm", image(6), neon.GroupNorm(3))


def normed(transformer, case, x, layer):
    y = layer(x)
    for place, leaf in layer.variables.items():
        transformer.set(leaf, reference(case)[place])
    agrees(transformer, case, y, x.axes, {"x": x, **layer.variables})


@pytest.mark.parametrize("name", sorted(set(neon.activations.__all__) - {"identity"}))
def test_activations(transformer, name):
    x = geon.placeholder([N, geon.Axis("C", 7)], name="x")
    y = neon.Activation(getattr(neon.activations, name))(x)
    agrees(transformer, f"activation_{name}", y, x.axes, {"x": x})


def test_identity_is_what_it_is_given():
    x = geon.placeholder([N], name="x")
    assert neon.activations.identity(x) is x
    assert neon.activations.identity(np.float32(2)).axes is geon.Axes()
