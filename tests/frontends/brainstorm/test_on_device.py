"""Networks whose passes leave their values on a device, here the processor in its place."""

import numpy as np
import pytest

import geon
from geon.frontends.brainstorm import layers
from geon.frontends.brainstorm.data_iterators import Undivided
from geon.frontends.brainstorm.handlers import Handler, NumpyHandler
from geon.frontends.brainstorm.hooks import StopAfterEpoch
from geon.frontends.brainstorm.initializers import Gaussian
from geon.frontends.brainstorm.structure.construction import ConstructionWrapper
from geon.frontends.brainstorm.training import MomentumStepper, SgdStepper, Trainer
from geon.frontends.brainstorm.value_modifiers import ClipValues
from geon.transformers.pycuda.launches.memory import DeviceMemory

from .test_buffers import shared
from .test_network import OldSquareLayerImpl, batch, classifier, hidden


def on_device():
    return Handler("float32", 1, geon.make_transformer("cuda-on-host"))


def on_host():
    return NumpyHandler("float32", 1)


@pytest.fixture
def fetched(monkeypatch):
    """The shapes of all arrays that were copied from the device."""
    found, copy_out = [], DeviceMemory.copy_out

    def noting(self, value):
        found.append(value.shape)
        return copy_out(self, value)

    monkeypatch.setattr(DeviceMemory, "copy_out", noting)
    return found


def passes(net, context=None):
    net.forward_pass(True, context=context)
    net.backward_pass()


def assert_same(net, other, tolerance=2e-5):
    """Compare all buffers."""
    assert net.buffer.keys() == other.buffer.keys()
    for one, two in zip(net._buffers.buffers, other._buffers.buffers, strict=True):
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def test_values_stay_there_between_layers(fetched):
    net = classifier(hidden(), layers.Recurrent(4), handler=on_device())
    copies = net.handler.on_device
    given = 2 + sum(len(layer.parameter_shapes) for layer in net.layers.values())
    contexts = 1
    net.forward_pass(True)
    assert len(copies.copies) - len(copies.newer) == given + contexts
    net.backward_pass()
    assert len(copies.copies) - len(copies.newer) <= given + contexts
    assert not fetched
    found = net.get("Hidden.outputs.default")
    assert fetched == [found.shape]
    net.get("Hidden.outputs.default")
    assert fetched == [found.shape]
    assert net.get_loss_values()["total_loss"] > 0
    assert fetched == [found.shape, (1,)]
    assert net.buffer.Hidden.output_deltas.default.any() and len(fetched) > 10
    assert not copies.copies


def runs(handler):
    """A network in which inputs are runs of one array, and one is a copy."""
    net = shared("ab", "bc", "cd", "abd")
    assert net.layout["@copies"]
    net.set_handler(handler)
    net.initialize(Gaussian(0.5), seed=1)
    net.provide_external_data({"default": np.random.RandomState(0).randn(2, 3, 2)})
    return net


MAKERS = {
    "layers": lambda handler: classifier(
        hidden(), layers.BatchNorm(), layers.Recurrent(4), handler=handler
    ),
    "runs": runs,
    "an own layer": lambda handler: classifier(
        hidden(), ConstructionWrapper.create(OldSquareLayerImpl), handler=handler
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_equal_values(name):
    net, other = MAKERS[name](on_device()), MAKERS[name](on_host())
    for each in (net, other):
        passes(each)
        passes(each, each.get_context())
    assert_same(net, other)


def test_what_the_host_writes_counts():
    nets = [classifier(hidden(), handler=make()) for make in (on_device, on_host)]
    for net in nets:
        passes(net)
        net.buffer.Hidden.parameters.W[:] *= 2
        net.buffer.parameters[-1] = 1
        net.forward_pass(True)
        net.buffer.Hidden.outputs.default[0] = 0.5
        net.backward_pass()
        net.provide_external_data(batch(7, 2, seed=3))
        passes(net)
        net.provide_external_data(batch(2, 2, seed=4))
        passes(net)
    assert_same(*nets)


def test_trainings_are_equal():
    nets = [classifier(hidden(), layers.BatchNorm(), handler=h()) for h in (on_device, on_host)]
    for net in nets:
        net.set_gradient_modifiers({"Hidden": ClipValues(-0.1, 0.1)})
        net.set_weight_modifiers({"Hidden": ClipValues(-0.8, 0.8)})
        trainer = Trainer(MomentumStepper(0.1, 0.9), verbose=False)
        trainer.add_hook(StopAfterEpoch(3))
        trainer.train(net, Undivided(**batch()))
        net.compile(SgdStepper(0.1))()
        passes(net)
    assert_same(*nets)


def test_a_network_moves_to_another_handler():
    net, other = (classifier(hidden(), handler=make()) for make in (on_device, on_host))
    passes(net)
    passes(other)
    net.set_handler(on_host())
    assert_same(net, other)
    net.set_handler(on_device())
    passes(net)
    passes(other)
    assert_same(net, other)
