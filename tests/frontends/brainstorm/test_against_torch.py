"""Layers beside PyTorch: values, input deltas and gradients, also with an initial context."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run make test-frameworks")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from geon.frontends.brainstorm.handlers import NumpyHandler  # noqa: E402
from geon.frontends.brainstorm.layers.base_layer import get_layer_class_from_typename  # noqa: E402
from geon.frontends.brainstorm.structure.buffer_structure import BufferStructure  # noqa: E402
from geon.frontends.brainstorm.structure.buffers import BufferManager  # noqa: E402
from geon.frontends.brainstorm.structure.layout import create_layout  # noqa: E402

HANDLER = NumpyHandler("float64")
STEPS, COUNT = 4, 3
ACTIVATIONS = {
    "rel": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "el": F.elu,
    "linear": lambda x: x,
}  # fmt: skip


def layer_with_values(kind, shapes, given=None, **kwargs):
    """A layer's buffers with random values, and the inputs and parameters as PyTorch's tensors."""
    structures = {name: BufferStructure("T", "B", *shape) for name, shape in shapes.items()}
    layer = get_layer_class_from_typename(kind)("layer", structures, [], [], **kwargs)
    layer.set_handler(HANDLER)
    hubs, layout = create_layout({"layer": layer})
    manager = BufferManager(HANDLER, hubs, layout)
    manager.resize(STEPS, COUNT)
    view, draw = manager.views.layer, np.random.RandomState(0)
    for array in (*view.inputs, *view.parameters):
        array[...] = draw.randn(*array.shape)
    for name, value in (given or {}).items():
        view.inputs[name][...] = value
    leaves = {
        name: torch.tensor(array, requires_grad=True)
        for part in (view.inputs, view.parameters)
        for name, array in part.items()
    }
    return layer, view, leaves, draw


def agrees(layer, view, leaves, y, draw, output="default", training=True):
    """Both have the same result, and the same derivatives of a weighted sum of it."""
    layer.forward_pass(view, training)
    found = view.outputs[output][:STEPS]
    np.testing.assert_allclose(found, y.detach().numpy(), rtol=1e-9, atol=1e-12)
    seed = draw.randn(*found.shape)
    view.output_deltas[output][:STEPS] = seed
    layer.backward_pass(view)
    (y * torch.tensor(seed)).sum().backward()
    skipped = {*layer.computes_no_input_deltas_for, *layer.computes_no_gradients_for}
    for part in (view.input_deltas, view.gradients):
        for name, value in part.items():
            if name not in skipped:
                wanted = leaves[name].grad
                np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fully_connected(activation):
    layer, view, t, draw = layer_with_values(
        "FullyConnected", {"default": (2, 3)}, size=4, activation=activation
    )
    y = F.linear(t["default"].reshape(STEPS, COUNT, 6), t["W"], t["bias"])
    agrees(layer, view, t, ACTIVATIONS[activation](y), draw)


def as_torch(x):
    """Images (T, B, H, W, C) as (N, C, H, W)."""
    return x.reshape(-1, *x.shape[2:]).permute(0, 3, 1, 2)


def as_ours(y):
    return y.permute(0, 2, 3, 1).reshape(STEPS, COUNT, *y.shape[2:], y.shape[1])


@pytest.mark.parametrize("stride, padding", [((1, 1), 0), ((2, 1), 1), ((3, 2), 2)])
def test_convolution(stride, padding):
    layer, view, t, draw = layer_with_values(
        "Convolution2D", {"default": (6, 5, 2)}, num_filters=3, kernel_size=(3, 4), stride=stride,
        padding=padding, activation="tanh",
    )  # fmt: skip
    filters = t["W"].permute(0, 3, 1, 2)
    y = F.conv2d(as_torch(t["default"]), filters, t["bias"], stride, padding)
    agrees(layer, view, t, as_ours(torch.tanh(y)), draw)


@pytest.mark.parametrize("kind, function", [("max", F.max_pool2d), ("avg", F.avg_pool2d)])
@pytest.mark.parametrize("stride, padding", [((1, 1), 0), ((2, 2), 1)])
def test_pooling(kind, function, stride, padding):
    layer, view, t, draw = layer_with_values(
        "Pooling2D", {"default": (6, 5, 2)}, kernel_size=(3, 2), type=kind, stride=stride,
        padding=padding,
    )  # fmt: skip
    agrees(layer, view, t, as_ours(function(as_torch(t["default"]), (3, 2), stride, padding)), draw)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training):
    layer, view, t, draw = layer_with_values("BatchNorm", {"default": (2, 3)}, epsilon=0.1)
    view.internals.mu[...], view.internals.sigma[...] = [0.5, 1, 2], [2, 1, 3]
    old = [torch.tensor(np.array(a)) for a in (view.internals.mu, view.internals.sigma**2)]
    x = t["default"].reshape(-1, 3)
    eps = 0.1 if training else 0.0
    y = F.batch_norm(x, *[a.clone() for a in old], t["gamma"], t["beta"], training, eps=eps)
    agrees(layer, view, t, y.reshape(t["default"].shape), draw, training=training)
    if training:
        mean = 0.9 * old[0] + 0.1 * x.mean(0)
        np.testing.assert_allclose(view.internals.mu, mean.detach().numpy())
        spread = 0.9 * old[1] + 0.1 * (x.var(0, correction=0) + 0.1)
        np.testing.assert_allclose(view.internals.sigma, spread.detach().sqrt().numpy())


def test_costs():
    classes = np.random.RandomState(1).randint(0, 5, (STEPS, COUNT, 1))
    layer, view, t, draw = layer_with_values(
        "SoftmaxCE", {"default": (5,), "targets": (1,)}, {"targets": classes}
    )
    wanted = F.cross_entropy(
        t["default"].reshape(-1, 5), torch.tensor(classes.reshape(-1)), reduction="none"
    )
    agrees(layer, view, t, wanted.reshape(STEPS, COUNT, 1), draw, "loss")
    truths = np.random.RandomState(1).randint(0, 2, (STEPS, COUNT, 5))
    shapes = {"default": (5,), "targets": (5,)}
    layer, view, t, draw = layer_with_values("SigmoidCE", shapes, {"targets": truths})
    wanted = F.binary_cross_entropy_with_logits(t["default"], t["targets"], reduction="none")
    agrees(layer, view, t, wanted.sum(2, keepdim=True), draw, "loss")
    layer, view, t, draw = layer_with_values("SquaredError", shapes)
    wanted = 0.5 * F.mse_loss(t["default"], t["targets"], reduction="none").sum(2, keepdim=True)
    agrees(layer, view, t, wanted, draw, "loss")


def with_initial_state(view, draw):
    """Random outputs and cells before the first step, and these as PyTorch's."""
    found = SimpleNamespace(h=draw.randn(COUNT, 3), c=draw.randn(COUNT, 3))
    view.outputs.default[-1] = found.h
    if "Ca" in view.internals:
        view.internals.Ca[-1] = found.c
    return [torch.tensor(x)[None] for x in (found.h, found.c)]


def copied(module, **values):
    """A module with these weights, which keep their history."""
    module = module.double()
    return lambda *args: torch.func.functional_call(module, values, args)


def test_recurrent():
    layer, view, t, draw = layer_with_values("Recurrent", {"default": (2,)}, size=3)
    h, _ = with_initial_state(view, draw)
    net = copied(
        nn.RNN(2, 3), weight_ih_l0=t["W"], weight_hh_l0=t["R"], bias_ih_l0=t["bias"],
        bias_hh_l0=torch.zeros(3).double(),
    )  # fmt: skip
    agrees(layer, view, t, net(t["default"], h)[0], draw)


def test_lstm():
    layer, view, t, draw = layer_with_values("Lstm", {"default": (2,)}, size=3)
    h, c = with_initial_state(view, draw)
    for gate in "ifo":
        view.parameters[f"p{gate}"][...] = 0  # PyTorch has no peepholes
        t[f"p{gate}"].grad = None

    def gates(prefix):
        return torch.cat([t[prefix + gate] for gate in "ifzo"])

    net = copied(
        nn.LSTM(2, 3), weight_ih_l0=gates("W"), weight_hh_l0=gates("R"), bias_ih_l0=gates("b"),
        bias_hh_l0=torch.zeros(12).double(),
    )  # fmt: skip
    layer.computes_no_gradients_for = ("pi", "pf", "po")
    agrees(layer, view, t, net(t["default"], (h, c))[0], draw)


def test_clockwork_of_timing_1_is_recurrent():
    for kind, plain in (("Clockwork", "Recurrent"), ("ClockworkLstm", "Lstm")):
        results = []
        for each in (kind, plain):
            layer, view, _, _ = layer_with_values(each, {"default": (2,)}, size=3)
            if "timing" in view.parameters:
                view.parameters.timing[...] = 1
            view.outputs.default[-1] = 0.5
            layer.forward_pass(view)
            results.append(np.array(view.outputs.default))
        np.testing.assert_allclose(*results, rtol=1e-12)
