"""Networks: initial values, modifiers, passes, contexts, files, and layers of users."""

import json
from collections import OrderedDict

import numpy as np
import pytest

import geon
from geon.frontends.brainstorm import Network, create_from_description, get_description
from geon.frontends.brainstorm.errors import InitializationError, NetworkValidationError
from geon.frontends.brainstorm.handlers import DebugHandler, Handler, NumpyHandler
from geon.frontends.brainstorm.initializers import DenseSqrtFanIn, Gaussian, Uniform
from geon.frontends.brainstorm.layers import (
    BatchNorm,
    Clockwork,
    ClockworkLstm,
    DeltasScaling,
    Dropout,
    FullyConnected,
    Input,
    Loss,
    Lstm,
    Recurrent,
    SoftmaxCE,
)
from geon.frontends.brainstorm.layers.base_layer import Layer
from geon.frontends.brainstorm.layers.testing import get_test_configurations, run_layer_tests
from geon.frontends.brainstorm.structure.buffer_structure import BufferStructure, StructureTemplate
from geon.frontends.brainstorm.structure.construction import ConstructionWrapper
from geon.frontends.brainstorm.value_modifiers import (
    ClipValues,
    ConstrainL2Norm,
    L2Decay,
    MaskValues,
)


def classifier(*between, handler=None, seed=1):
    """A network of these layers between its inputs and a cost, with initial values and data."""
    entry = Input({"default": ("T", "B", 4), "targets": ("T", "B", 1)})
    current = entry
    for layer in between:
        current = current >> layer
    cost = current >> FullyConnected(3, "linear", name="Out") >> SoftmaxCE(name="Cost")
    entry - "targets" >> "targets" - cost
    net = Network.from_layer(cost - "loss" >> Loss())
    net.set_handler(handler or NumpyHandler("float64"))
    net.initialize(Gaussian(0.5), seed=seed)
    net.provide_external_data(batch())
    return net


def batch(steps=5, sequences=3, seed=0):
    draw = np.random.RandomState(seed)
    targets = draw.randint(0, 3, (steps, sequences, 1))
    return {"default": draw.randn(steps, sequences, 4), "targets": targets}


def hidden(name="Hidden"):
    return FullyConnected(5, "tanh", name=name)


def passes(net):
    net.forward_pass(training_pass=True)
    net.backward_pass()
    return net.get("gradients")


# Passes -----------------------------------------------------------------------------------------


def test_the_whole_gradient_beside_differences():
    net = classifier(hidden(), Lstm(2), BatchNorm())
    gradients, parameters = passes(net), net.buffer.parameters
    for place in range(0, len(parameters), 3):
        value, losses = parameters[place], []
        for change in (1e-5, -1e-5):
            parameters[place] = value + change
            net.forward_pass(training_pass=True)
            losses.append(net.get_loss_values()["total_loss"])
        parameters[place] = value
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(gradients[place], abs=1e-7)


def test_passes_are_the_same_on_all_transformers(transformer):
    net = classifier(hidden(), Recurrent(3), handler=Handler("float32", 0, transformer))
    reference = classifier(hidden(), Recurrent(3))
    np.testing.assert_allclose(passes(net), passes(reference), rtol=2e-4, atol=1e-6)
    for layer in net.layers:
        for view in ("outputs", "internals", "output_deltas"):
            for name, value in net.buffer[layer][view].items():
                wanted = reference.buffer[layer][view][name]
                np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-6)


def test_passes_by_the_debug_handler():
    net = classifier(hidden(), handler=DebugHandler(NumpyHandler("float64")))
    np.testing.assert_array_equal(passes(net), passes(classifier(hidden())))


def test_losses_are_sums_divided_by_the_number_of_sequences():
    net = classifier(hidden())
    net.forward_pass()
    losses = net.get_loss_values()
    assert list(losses) == ["total_loss", "Loss"]
    assert losses["total_loss"] == pytest.approx(net.get("Cost.outputs.loss").sum() / 3)
    p = net.get("Cost.outputs.predictions")
    targets = batch()["targets"]
    cost = -np.log(np.take_along_axis(p, targets, 2))
    np.testing.assert_allclose(net.get("Cost.outputs.loss"), cost)


def test_the_backward_pass_reads_what_a_user_changed():
    net = classifier(hidden())
    net.forward_pass()
    net.buffer.Hidden.outputs.default[...] = 0
    net.backward_pass()
    assert not net.buffer.Out.gradients.W.any() and net.buffer.Out.gradients.bias.any()
    net.forward_pass()
    net.buffer.Cost.outputs.predictions[...] = 0
    net.backward_pass()
    assert (net.buffer.Out.output_deltas.default <= 0).all()


def test_a_saturated_softmax_has_a_gradient():
    net = classifier()
    net.buffer.Out.parameters.bias[...] = [0, 200, 0]
    net.provide_external_data(batch() | {"targets": np.zeros((5, 3, 1))})
    net.forward_pass()
    np.testing.assert_allclose(net.get("Cost.outputs.loss"), -np.log(1e-6), rtol=1e-6)
    net.backward_pass()
    assert (net.buffer.Out.output_deltas.default[..., 0] < -0.3).all()


def test_dropout_drops_in_training_only():
    net = classifier(Dropout(0.4, name="Drop"))
    net.provide_external_data(batch(50, 40))
    x = net.get_input("default")
    passes(net)
    mask, deltas = net.get("Drop.internals.mask"), net.get("Drop.input_deltas.default")
    assert set(np.unique(mask)) == {0, 1} and mask.mean() == pytest.approx(0.6, abs=0.03)
    np.testing.assert_allclose(net.get("Drop.outputs.default"), x * mask / 0.6)
    np.testing.assert_allclose(deltas, net.get("Drop.output_deltas.default") * mask / 0.6)
    net.forward_pass(training_pass=True)
    assert (net.get("Drop.internals.mask") != mask).any()
    net.forward_pass()
    np.testing.assert_array_equal(net.get("Drop.outputs.default"), x)


def test_deltas_are_scaled():
    plain, scaled = classifier(hidden()), classifier(hidden(), DeltasScaling(3.0))
    net = [passes(plain), passes(scaled)]
    size = plain.buffer.Hidden.gradients._full_buffer.size
    np.testing.assert_allclose(net[1][:size], 3 * net[0][:size])


def test_batch_norm_keeps_running_figures_among_internals():
    net = classifier(BatchNorm(decay=0.75, epsilon=0.0, name="Norm"))
    x = net.get_input("default").reshape(-1, 4)
    assert list(net.buffer.Norm.parameters.keys()) == ["gamma", "beta"]
    net.buffer.Norm.parameters.gamma[...], net.buffer.Norm.parameters.beta[...] = 1, 0
    net.forward_pass(training_pass=True)
    y = net.get("Norm.outputs.default").reshape(-1, 4)
    np.testing.assert_allclose([y.mean(0), y.std(0)], [[0] * 4, [1] * 4], atol=1e-9)
    np.testing.assert_allclose(net.get("Norm.internals.mu"), 0.25 * x.mean(0))
    sigma = np.sqrt(0.75 + 0.25 * x.var(0))
    np.testing.assert_allclose(net.get("Norm.internals.sigma"), sigma)
    net.provide_external_data(batch(20, 30))  # memory grows
    np.testing.assert_allclose(net.get("Norm.internals.sigma"), sigma)
    net.forward_pass()
    np.testing.assert_allclose(
        net.get("Norm.outputs.default"),
        (net.get_input("default") - net.get("Norm.internals.mu")) / sigma,
    )


@pytest.mark.parametrize("layer", [Recurrent, Lstm, Clockwork, ClockworkLstm])
def test_one_pass_over_20_steps_is_two_over_10(layer):
    net = classifier(layer(3, name="Memory"))
    if "timing" in net.buffer.Memory.parameters:
        net.buffer.Memory.parameters.timing[...] = [1, 2, 5]
    data = batch(20)
    net.provide_external_data(data)
    net.forward_pass()
    whole = net.get("Memory.outputs.default")[:20]
    parts, context = [], None
    for start in (0, 10):
        net.provide_external_data({name: x[start : start + 10] for name, x in data.items()})
        net.forward_pass(context=context)
        context = net.get_context()
        parts.append(net.get("Memory.outputs.default")[:10])
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)


# Initial values and modifiers -------------------------------------------------------------------


def test_initial_values_by_references():
    net = classifier(hidden("Hidden_1"), hidden("Hidden_2"))
    net.initialize(
        {"Hidden*": {"W": 2.0, "default": [1, 2, 3, 4, 5]}, "default": {"W": Uniform(1), "b*": 7}},
        seed=3,
    )
    assert (net.buffer.Hidden_2.parameters.W == 2).all()
    np.testing.assert_array_equal(net.buffer.Hidden_1.parameters.bias, [1, 2, 3, 4, 5])
    assert (net.buffer.Out.parameters.bias == 7).all()
    first = net.get("Out.parameters.W")
    assert len(np.unique(first)) == first.size
    net.initialize(Uniform(1), seed=3)
    np.testing.assert_array_equal(net.get("Out.parameters.W"), first)
    net.initialize({"default": DenseSqrtFanIn(), "fallback": 0.5}, Out={"W": 1, "bias": 2})
    assert (net.buffer.Hidden_1.parameters.bias == 0.5).all()
    assert (net.buffer.Out.parameters.W == 1).all()


def test_each_parameter_has_a_seed_of_its_own_in_sorted_order():
    net = classifier(hidden())
    net.initialize(Gaussian(1), seed=42)
    seeds = np.random.RandomState(42)
    for path in ("Hidden.parameters.W", "Hidden.parameters.bias", "Out.parameters.W"):
        draw = np.random.RandomState(seeds.randint(0, 1000000000))
        np.testing.assert_allclose(net.get(path), draw.randn(*net.get(path).shape), rtol=1e-12)


@pytest.mark.parametrize(
    "error, message, given",
    [
        (NetworkValidationError, "'Foo' matches nothing: there are 'Hidden', 'Out'", {"Foo": 1}),
        (
            NetworkValidationError,
            "'Out.V' matches nothing of Out: there are 'W', 'bias'",
            {"default": 1, "Out": {"V": 1, "default": 1}},
        ),
        (NetworkValidationError, "Hidden.parameters.W has 0 initializers", {"Out": 1}),
        (
            NetworkValidationError,
            "Hidden.parameters.W has 2 initializers",
            {"default": 1, "Hid*": 1, "*den": 2},
        ),
        (NetworkValidationError, "for 1: a key is a name or a pattern", {1: 2}),
        (
            InitializationError,
            r"Hidden.parameters.W of the shape \(5, 4\)",
            {"default": 1, "Hidden": {"W": [1, 2], "bias": 0}},
        ),
    ],
)
def test_wrong_references(error, message, given):
    net = classifier(hidden())
    with pytest.raises(error, match=message):
        net.initialize(given)


def test_modifiers():
    net = classifier(hidden())
    plain = passes(net)
    net.set_gradient_modifiers({"*": {"W": [L2Decay(0.1), ClipValues(-0.05, 0.05)]}})
    passes(net)
    w, start = net.buffer.Hidden, net.buffer.Hidden.gradients.W.size
    wanted = np.clip(plain[:start].reshape(5, 4) + 0.1 * w.parameters.W, -0.05, 0.05)
    np.testing.assert_allclose(w.gradients.W, wanted)
    np.testing.assert_allclose(w.gradients.bias, plain[start : start + 5])
    mask = np.eye(5, 4)
    net.set_weight_modifiers(Hidden={"W": MaskValues(mask)}, Out=ConstrainL2Norm(0.1))
    net.apply_weight_modifiers()
    assert not net.buffer.Hidden.parameters.W[mask == 0].any()
    np.testing.assert_allclose(np.linalg.norm(net.buffer.Out.parameters.W, axis=1), 0.1)
    with pytest.raises(NetworkValidationError, match="modifiers have no 'fallback'"):
        net.set_weight_modifiers({"Hidden": ClipValues(), "fallback": ClipValues()})
    with pytest.raises(NetworkValidationError, match="Hidden.W: 3 is no modifier"):
        net.set_weight_modifiers(Hidden={"W": 3})


# Data, files and descriptions -------------------------------------------------------------------


@pytest.mark.parametrize(
    "message, data",
    [
        ("not 'foo'", {"foo": np.ones((1, 1, 1))}),
        ("missing: 'targets'", {"default": np.ones((1, 1, 4))}),
        (r"the shape \(1, 1, 3\).*\('T', 'B', 4\)", {**batch(1, 1), "default": np.ones((1, 1, 3))}),
        (r"the shape \(1, 4\)", {**batch(1, 1), "default": np.ones((1, 4))}),
        ("T is 2 in the data for 'targets'.*5", {**batch(), "targets": np.ones((2, 3, 1))}),
    ],
)
def test_wrong_data(message, data):
    with pytest.raises(NetworkValidationError, match=message):
        classifier(hidden()).provide_external_data(data)


def test_a_part_of_the_data():
    net = classifier(hidden())
    net.provide_external_data({"default": batch()["default"]}, all_inputs=False)
    np.testing.assert_array_equal(net.get_input("targets"), batch()["targets"])


def test_files(tmp_path):
    net = classifier(hidden(), BatchNorm(name="Norm"))
    net.set_gradient_modifiers(Out=ClipValues(-1, 1))
    net.output_name = "Cost.outputs.predictions"
    passes(net)
    net.save_as_hdf5(tmp_path / "net.hdf5", comment="a test")
    again = Network.from_hdf5(tmp_path / "net.hdf5")
    assert again.architecture == net.architecture and again.output_name == net.output_name
    np.testing.assert_array_equal(again.buffer.parameters, net.buffer.parameters)
    np.testing.assert_array_equal(again.buffer.Norm.internals.mu, net.buffer.Norm.internals.mu)
    for each in (net, again):
        each.provide_external_data(batch(3, 2))
        each.forward_pass()
    assert net.get_loss_values() == again.get_loss_values()
    assert again.gradient_modifiers["Out"]["W"][0].low == -1


def test_descriptions_go_through_json():
    net = classifier(hidden(), Lstm(2))
    net.set_weight_modifiers(ConstrainL2Norm(2.0))
    description = json.loads(json.dumps(get_description(net)))
    again = create_from_description(description)
    assert get_description(again) == description
    assert again.handler.dtype == "float64"


def test_a_network_moves_to_another_handler():
    net = classifier(hidden())
    before = net.get("parameters")
    net.set_handler(NumpyHandler("float32"))
    assert net.buffer.parameters.dtype == np.float32
    np.testing.assert_allclose(net.buffer.parameters, before, rtol=1e-6)
    passes(net)


# Layers of users --------------------------------------------------------------------------------


class SquareLayerImpl(Layer):
    """A layer that is stated as tensors."""

    expected_inputs = {"default": StructureTemplate("T", "B", "...")}
    expected_kwargs = {"factor"}

    def setup(self, kwargs, in_shapes):
        self.factor = kwargs.get("factor", 1.0)
        shape = in_shapes["default"].shape
        parameters = OrderedDict(shift=BufferStructure(*shape[2:]))
        internals = OrderedDict(
            shifted=BufferStructure(*shape), dshifted=BufferStructure(*shape, is_backward_only=True)
        )
        return OrderedDict(default=BufferStructure(*shape)), parameters, internals

    def forward(self, buffers):
        shifted = buffers.inputs.default + buffers.parameters.shift
        return {"default": self.factor * geon.square(shifted)}, {"shifted": shifted}


class OldSquareLayerImpl(SquareLayerImpl):
    """The same layer with passes of its own."""

    def forward_pass(self, buffers, training_pass=False):
        handler, x = self.handler, buffers.inputs.default
        flat = (x.shape[0] * x.shape[1], x.shape[2])
        shifted = buffers.internals.shifted
        handler.add_mv(
            x.reshape(flat), buffers.parameters.shift.reshape(1, -1), shifted.reshape(flat)
        )
        handler.mult_tt(shifted, shifted, buffers.outputs.default)
        handler.mult_st(self.factor, buffers.outputs.default, buffers.outputs.default)

    def backward_pass(self, buffers):
        handler, inner = self.handler, buffers.internals.dshifted
        handler.mult_tt(buffers.internals.shifted, buffers.output_deltas.default, inner)
        handler.mult_st(2 * self.factor, inner, inner)
        handler.add_tt(inner, buffers.input_deltas.default, buffers.input_deltas.default)
        flat = inner.reshape(-1, inner.shape[2])
        total = handler.allocate((1, flat.shape[1]))
        handler.sum_t(flat, 0, total)
        shift = buffers.gradients.shift
        handler.add_tt(total.reshape(shift.shape), shift, shift)


class CarelessLayerImpl(OldSquareLayerImpl):
    """A layer that overwrites its input deltas."""

    def backward_pass(self, buffers):
        super().backward_pass(buffers)
        buffers.input_deltas.default[...] = buffers.internals.dshifted


SHAPES = {"default": BufferStructure("T", "B", 3)}


@pytest.mark.parametrize("cls", [SquareLayerImpl, OldSquareLayerImpl])
@pytest.mark.parametrize("spec", list(get_test_configurations()), ids=str)
def test_layers_of_users(cls, spec):
    run_layer_tests(cls("mine", SHAPES, [], [], factor=0.5), spec)


def test_the_test_of_layers_finds_deltas_that_are_overwritten():
    layer = CarelessLayerImpl("mine", SHAPES, [], [])
    with pytest.raises(geon.GradientError, match="input_deltas.default .* values of 1 before"):
        run_layer_tests(layer)


def test_layers_of_users_join_the_rest():
    found = []
    for cls in (SquareLayerImpl, OldSquareLayerImpl):
        layer = ConstructionWrapper.create(cls, name="Square", factor=0.3)
        net = classifier(hidden(), layer, Lstm(2))
        found.append((passes(net), net.get("Square.internals.dshifted")))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)


class WrongLayerImpl(SquareLayerImpl):
    """A layer whose forward pass has a wrong shape."""

    def forward(self, buffers):
        return {"default": geon.sum(buffers.inputs.default, "F0")}, {}


def test_a_forward_pass_of_a_wrong_shape():
    net = classifier(ConstructionWrapper.create(WrongLayerImpl, name="Bad"))
    with pytest.raises(
        geon.GeonError, match=r"Bad \(Wrong\): outputs.default is computed over .*\('T', 'B', 4\)"
    ):
        net.forward_pass()
