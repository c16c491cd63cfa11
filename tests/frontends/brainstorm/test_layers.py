"""Layers beside finite differences, in float64."""

from collections import OrderedDict

import numpy as np
import pytest

import geon
from geon.frontends.brainstorm.handlers import NumpyHandler
from geon.frontends.brainstorm.layers import Layer, layer_program
from geon.frontends.brainstorm.layers.base_layer import get_layer_class_from_typename
from geon.frontends.brainstorm.layers.testing import get_test_configurations, run_layer_tests
from geon.frontends.brainstorm.structure.buffer_structure import BufferStructure
from geon.frontends.brainstorm.structure.buffers import BufferManager
from geon.frontends.brainstorm.structure.layout import create_layout
from geon.op_graph.op_graph import post_order

HANDLER = NumpyHandler("float64")
IMAGE = ("T", "B", 5, 6, 2)
ACTIVATIONS = ("rel", "tanh", "sigmoid", "el", "linear")
RECURRENT = ("Recurrent", "Lstm", "Clockwork", "ClockworkLstm")


def case(kind, shapes=(4,), spec=None, **kwargs):
    """The type of a layer, the shapes of its inputs, more of the specification, arguments."""
    if not isinstance(shapes, dict):
        shapes = {"default": shapes}
    full = {k: v if v[:1] == ("T",) or v == () else ("T", "B", *v) for k, v in shapes.items()}
    return kind, full, spec or {}, kwargs


TIMING = {"parameters": {"timing": [1, 2, 3]}}
PROBABILITIES = {"inputs": {"default": 0.3}}
TARGETS = {"default": (3,), "targets": (3,)}
USUAL = [
    case("FullyConnected", size=3, activation="tanh"),
    case("FullyConnected", (2, 3, 2), size=2, activation="sigmoid"),
    case("FullyConnected", ("T", "B"), size=2),
    case("Convolution2D", IMAGE, num_filters=2, kernel_size=(3, 2), activation="tanh"),
    case("Convolution2D", IMAGE, num_filters=1, kernel_size=3, stride=2, padding=1),
    case("Pooling2D", IMAGE, kernel_size=(2, 2), stride=(2, 2)),
    case("Pooling2D", IMAGE, kernel_size=(3, 2), stride=(2, 1), padding=1),
    case("Pooling2D", IMAGE, type="avg", kernel_size=(2, 3), stride=(1, 2), padding=1),
    case("BatchNorm", (3,), epsilon=0.1),
    case("BatchNorm", (2, 2, 3), {"training": False}),
    case("Dropout", (3,), {"training": False}, drop_prob=0.3),
    case("Elementwise", (2, 3), activation="el"),
    case("NoOp", (2, 3)),
    case("Merge", {"inputs_1": (2, 3), "inputs_2": (2, 1)}),
    case("Highway", {"H": (3,), "T": (3,), "x": (3,)}),
    case("Mask", {"default": (3, 2), "mask": (1,)}),
    case("SoftmaxCE", {"default": (3,), "targets": (1,)}),
    case("SoftmaxCE", {"default": (2, 3), "targets": (2, 1)}),
    case("SigmoidCE", TARGETS),
    case("BinomialCrossEntropy", TARGETS, PROBABILITIES),
    case("SquaredError", TARGETS),
    case("SquaredDifference", {"inputs_1": (3,), "inputs_2": (3,)}),
    case("Loss", importance=0.7),
    case("Loss", {"default": ()}),
    case("L1Decay", (2, 2)),
    case("L2Decay", (2, 2)),
    case("Recurrent", size=3),
    case("Lstm", size=2),
    case("Clockwork", (2, 2), TIMING, size=3),
    case("ClockworkLstm", (2,), TIMING, size=3),
]
ACTIVATED = [
    case(kind, IMAGE if kind == "Convolution2D" else (3,), spec, activation=name, **kwargs)
    for kind, spec, kwargs in (
        ("FullyConnected", None, {"size": 2}),
        ("Convolution2D", None, {"num_filters": 2, "kernel_size": 2}),
        ("Elementwise", None, {}),
        *((kind, TIMING if "Clock" in kind else None, {"size": 3}) for kind in RECURRENT),
    )
    for name in ACTIVATIONS
]
SPECS = list(get_test_configurations())


def layer_of(kind, shapes, kwargs):
    shapes = {name: BufferStructure(*shape) for name, shape in shapes.items()}
    return get_layer_class_from_typename(kind)("layer", shapes, [], [], **kwargs)


def names(cases):
    return [f"{kind}-{number}" for number, (kind, *_) in enumerate(cases)]


@pytest.mark.parametrize("kind, shapes, more, kwargs", USUAL, ids=names(USUAL))
def test_derivatives(kind, shapes, more, kwargs):
    run_layer_tests(layer_of(kind, shapes, kwargs), {**SPECS[-1], **more}, HANDLER)


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("kind, shapes, more, kwargs", USUAL, ids=names(USUAL))
def test_derivatives_for_all_sizes(kind, shapes, more, kwargs, spec):
    run_layer_tests(layer_of(kind, shapes, kwargs), {**spec, **more}, HANDLER)


@pytest.mark.slow
@pytest.mark.parametrize("kind, shapes, more, kwargs", ACTIVATED, ids=names(ACTIVATED))
def test_derivatives_with_all_activations(kind, shapes, more, kwargs):
    run_layer_tests(layer_of(kind, shapes, kwargs), {**SPECS[-1], **more}, HANDLER)


def loops_of(layer):
    """The loops of a layer's backward pass, True for one that goes from the last step on."""
    results = layer.program(True)._derivatives()
    loops = [op for op in post_order(results.values()) if op.primitive.name == "scan"]
    return [loop.attrs.reverse for loop in loops]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", RECURRENT)
def test_backward_passes_read_the_steps_that_are_stored(kind, activation):
    layer = layer_of(kind, {"default": ("T", "B", 4)}, {"size": 40, "activation": activation})
    layer.set_handler(HANDLER)
    assert loops_of(layer) == [True]


class SumLayerImpl(Layer):
    """Running sums, and products with running sums that are not stored."""

    def setup(self, kwargs, in_shapes):
        shape = ("T", "B", in_shapes["default"].feature_size)
        return OrderedDict(default=BufferStructure(*shape)), OrderedDict(), OrderedDict()

    def forward(self, buffers):
        x = buffers.inputs.default

        def step(carry, x):
            total, power = carry
            return (total + x, power * (1 + x / 9)), (total + x) * power

        first = geon.constant(np.ones(x.axes[-1].length), [x.axes[-1]], dtype=x.dtype)
        first = geon.broadcast(first, list(x.axes)[1:])
        _, values = geon.scan(step, (first * 0, first), x, over=x.axes[0])
        return {"default": values}, {}


def test_steps_that_are_not_stored_are_computed_again():
    layer = layer_of("Sum", {"default": ("T", "B", 2)}, {})
    run_layer_tests(layer, {"time_steps": 4, "batch_size": 2, "seed": 1}, HANDLER)
    assert loops_of(layer) == [False, True]


@pytest.mark.parametrize("kind", RECURRENT)
def test_stored_steps_give_the_derivatives_of_steps_computed_again(kind, monkeypatch):
    found = []
    for name in ("as it is", "computed again"):
        if name == "computed again":
            monkeypatch.setattr(layer_program, "stored_steps", lambda *args: {})
        layer = layer_of(kind, {"default": ("T", "B", 4)}, {"size": 40})
        layer.set_handler(NumpyHandler("float64", seed=0))
        hubs, layout = create_layout({"layer": layer})
        manager = BufferManager(layer.handler, hubs, layout)
        manager.resize(7, 3)
        draw = np.random.RandomState(0)
        for array in manager.buffers:
            array[...] = draw.uniform(-0.3, 0.3, array.shape)
        view = manager.views["layer"]
        if "Clockwork" in kind:
            view.parameters.timing[...] = draw.randint(1, 4, 40)
        layer.forward_pass(view, True)
        layer.backward_pass(view)
        found.append([np.array(array) for array in (*view.gradients, *view.input_deltas)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
