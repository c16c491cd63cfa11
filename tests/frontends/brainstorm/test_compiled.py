"""Compiled steps: the same results as those of inspectable networks."""

import numpy as np
import pytest

import geon
from geon.frontends.brainstorm import Network
from geon.frontends.brainstorm.errors import NetworkValidationError, ValidationError
from geon.frontends.brainstorm.handlers import Handler, NumpyHandler
from geon.frontends.brainstorm.initializers import Gaussian
from geon.frontends.brainstorm.layers import (
    BatchNorm,
    FullyConnected,
    Input,
    Loss,
    Lstm,
    Mask,
    NoOp,
    Recurrent,
    SoftmaxCE,
)
from geon.frontends.brainstorm.structure.construction import ConstructionWrapper
from geon.frontends.brainstorm.structure.layout import gather_array_nodes
from geon.frontends.brainstorm.training import (
    AdamStepper,
    MomentumStepper,
    NesterovStepper,
    RMSpropStepper,
    SgdStepper,
    TrainingStepper,
)
from geon.frontends.brainstorm.value_modifiers import ClipValues, L2Decay

from .test_buffers import shared, values
from .test_network import OldSquareLayerImpl, batch, classifier, hidden

KEEP = [
    "Hidden.outputs.default", "gradients", "Hidden.output_deltas", "Lstm.internals.dZa",
    "Out.internals.dH", "Out.gradients.W", "Lstm.inputs.default",
]  # fmt: skip


class NormalisedStepper(TrainingStepper):
    """A rule that looks at the whole vector."""

    vectors = ("last",)

    def update(self, parameters, gradients, state, numbers):
        step = gradients / geon.L2_norm(gradients) + 0.1 * state["last"]
        return parameters - 0.1 * step, {"last": step}


STEPPERS = {
    "sgd": lambda: SgdStepper(0.1),
    "momentum": lambda: MomentumStepper(0.1, 0.9),
    "nesterov": lambda: NesterovStepper(0.1, 0.9),
    "adam": lambda: AdamStepper(0.01),
    "rmsprop": lambda: RMSpropStepper(0.01, momentum=0.5),
    "normalised": NormalisedStepper,
}


def network(handler=None):
    return classifier(hidden(), Lstm(2, name="Lstm"), BatchNorm(name="Norm"), handler=handler)


def both(stepper, make=network, keep=KEEP, tolerance=1e-12, steps=((5, 3), (5, 3), (8, 2))):
    """Train an inspectable and a compiled network, and compare what is kept after each step."""
    first, second = make(), make()
    steppers = [stepper(), stepper()]
    steppers[0].start(first)
    step = second.compile(steppers[1], keep)
    for seed, (length, count) in enumerate(steps):
        for net in (first, second):
            net.provide_external_data(batch(length, count, seed))
        steppers[0].run()
        step()
        assert second.get_loss_values() == pytest.approx(first.get_loss_values(), rel=tolerance)
        for path in ("parameters", "Norm.internals.mu", *keep):
            values = [net.buffer[path] for net in (first, second)]
            if not isinstance(values[0], np.ndarray):
                values = [next(iter(view)) for view in values]
            rows = length if path.startswith("Lstm.internals") else None
            np.testing.assert_allclose(
                values[1][:rows], values[0][:rows], rtol=tolerance, atol=tolerance
            )
    for name in steppers[0].state:
        np.testing.assert_allclose(
            steppers[1].state[name], steppers[0].state[name], rtol=tolerance, atol=1e-5
        )


@pytest.mark.parametrize("name", ["nesterov", "adam", "normalised"])
def test_equal_results(name):
    both(STEPPERS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPPERS)
def test_equal_results_of_all_steppers(name):
    both(STEPPERS[name])


def test_equal_results_on_all_transformers(transformer):
    def make():
        return network(Handler("float32", 0, transformer))

    both(STEPPERS["momentum"], make, ["gradients"], 2e-4, steps=((5, 3), (5, 3)))


def test_buffers_that_are_not_kept_say_so():
    net = network()
    step = net.compile(SgdStepper(0.1), keep="Out.outputs.default")
    step()
    assert net.buffer.Out.outputs.default.any() and net.buffer.Cost.inputs.default.any()
    assert net.buffer.parameters.any() and net.get_input("default").any()
    for read in (
        lambda: net.buffer.Hidden.outputs.default,
        lambda: net.buffer.gradients,
        lambda: net.get("Norm.internals.x_hat"),
        lambda: list(net.buffer.Hidden.gradients),
        lambda: net.buffer.Hidden.outputs[0],
    ):
        with pytest.raises(
            ValidationError, match=r"compiled step did not store the buffer '\w.*': .*keep="
        ):
            read()
    net.forward_pass()
    assert net.buffer.Hidden.outputs.default.any() and net.buffer.gradients is not None


def everything_agrees(first, second):
    """Every buffer of a compiled network that kept all has the value of the inspectable one."""
    step = second.compile(keep=list(second.layers))
    first.forward_pass(training_pass=True)
    first.backward_pass()
    step()
    paths = [p for p, _ in gather_array_nodes(first.layout) if p not in ("gradients", "parameters")]
    for path in paths:
        layer, view, name = path.split(".")
        if layer not in first.loss_layers or view != "output_deltas":
            rows = first.time_size if name in first.buffer[layer][view]._contexts else None
            one, other = first.buffer[path][:rows], second.buffer[path][:rows]
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, err_msg=path)


def test_all_buffers_can_be_kept():
    everything_agrees(network(), network())


def test_copied_inputs_can_be_kept():
    nets = [shared("ab", "bc", "ac", "d") for _ in range(2)]
    for net in nets:
        values(net)
        net.views.gradients[:] = 0
    everything_agrees(*nets)


def masked():
    """A network in which a layer computes a mask, and another reads predictions."""
    entry = Input({"default": ("T", "B", 4), "targets": ("T", "B", 1)})
    body = entry >> FullyConnected(3, "tanh", name="Body")
    mask, cost = Mask(name="Mask"), SoftmaxCE(name="Cost")
    entry >> FullyConnected(1, "sigmoid", name="Weight") >> "mask" - mask
    body >> mask >> cost
    entry - "targets" >> "targets" - cost
    cost - "predictions" >> FullyConnected(2, "tanh", name="More") >> Loss(name="Second")
    net = Network.from_layer(cost - "loss" >> Loss())
    net.set_handler(NumpyHandler("float64"))
    net.initialize(Gaussian(0.5), seed=1)
    net.provide_external_data(batch())
    return net


def test_inputs_and_outputs_without_deltas_stop_them():
    first, second = masked(), masked()
    everything_agrees(first, second)
    assert not first.buffer.Weight.gradients.W.any() and first.buffer.More.gradients.W.any()


def test_parameters_stay_live():
    net = network()
    view = net.buffer.Out.parameters.W
    step = net.compile(SgdStepper(0.0))
    step()
    before = net.get_loss_values()["total_loss"]
    assert net.buffer.Out.parameters.W is view
    view[...] = 0
    net.buffer.Out.parameters.bias[...] = 0
    step()
    assert net.get_loss_values()["total_loss"] == pytest.approx(5 * np.log(3)) != before
    net.provide_external_data(batch(30, 20))  # memory grows
    step()
    net.buffer.Out.parameters.bias[...] = [0, 50, 0]
    step()
    assert net.get_loss_values()["total_loss"] > 30 * np.log(3)
    net.forward_pass(training_pass=True)
    assert net.get_loss_values()["total_loss"] > 30 * np.log(3)


def test_contexts_go_from_step_to_step():
    found = []
    data = batch(20)
    for compiled in (False, True):
        net = classifier(Recurrent(3, name="R"), Lstm(2, name="L"))
        step = net.compile(keep=["R.outputs.default"])
        context = None
        for start in (0, 10):
            net.provide_external_data({name: x[start : start + 10] for name, x in data.items()})
            step(context) if compiled else net.forward_pass(True, context=context)
            context = net.get_context()
        found.append((net.get("R.outputs.default")[:10], net.get_loss_values()["total_loss"]))
        found[-1] += tuple(x for x in context if x is not None)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_gradient_modifiers_are_compiled():
    def make():
        net = network()
        net.set_gradient_modifiers({"*": {"W": [L2Decay(0.1), ClipValues(-0.05, 0.05)]}})
        return net

    both(STEPPERS["sgd"], make)


def test_data_that_a_step_reads_where_they_lie():
    net, other = network(), network()
    steps = [each.compile(SgdStepper(0.1), keep="Hidden.outputs") for each in (net, other)]
    for steps_, sequences in ((5, 3), (7, 2), (7, 2)):
        data = batch(steps_, sequences, seed=steps_)
        steps[0](data=data)
        other.provide_external_data(data)
        steps[1]()
        for path in ("parameters", "Hidden.outputs.default"):
            np.testing.assert_array_equal(net.get(path), other.get(path))
        for path in ("Input.outputs.default", "Hidden.inputs.default"):
            with pytest.raises(ValidationError, match=path):
                net.get(path)
            assert other.get(path).any()
    keeping = net.compile(keep="Hidden.inputs.default")
    keeping(data=data)
    np.testing.assert_array_equal(net.get("Input.outputs.default"), data["default"])
    steps[0](data=data)
    with pytest.raises(NetworkValidationError, match="some are missing: 'targets'"):
        steps[0](data={"default": data["default"]})
    with pytest.raises(NetworkValidationError, match="call provide_external_data before a pass"):
        net.forward_pass()
    net.provide_external_data(data)
    assert net.get_input("default").any()
    with pytest.raises(ValidationError, match="Out.outputs.default"):
        net.get("Out.outputs.default")
    steps[0]()
    assert net.get_input("default").any()
    net.forward_pass()


def test_the_step_that_ran_last_says_what_is_kept():
    net = network()
    paths = "Norm.internals.x_hat", "Hidden.internals.H"
    steps = {path: net.compile(keep=path) for path in paths}
    for _ in range(2):
        for path, step in steps.items():
            step()
            assert net.get(path).size
            (other,) = set(steps) - {path}
            with pytest.raises(ValidationError, match=other):
                net.get(other)


def test_two_steps_of_one_network():
    net, other = network(), network()
    steps = [net.compile(SgdStepper(0.1)), net.compile(MomentumStepper(0.1, 0.5))]
    runs = [SgdStepper(0.1), MomentumStepper(0.1, 0.5)]
    for stepper in runs:
        stepper.start(other)
    for step, stepper in zip(2 * steps, 2 * runs, strict=True):
        step()
        stepper.run()
        np.testing.assert_allclose(net.buffer.parameters, other.buffer.parameters, rtol=1e-12)


@pytest.mark.parametrize(
    "message, make, keep",
    [
        ("keep='Foo' names no buffer", network, ["Foo"]),
        ("keep='Hidden.outputs.x' names no buffer", network, "Hidden.outputs.x"),
        ("the layers Square compute their passes with a handler", lambda: classifier(square()), []),
    ],
)
def test_refused(message, make, keep):
    net = make()
    with pytest.raises(NetworkValidationError, match=message):
        net.compile(SgdStepper(0.1), keep)


def square():
    return ConstructionWrapper.create(OldSquareLayerImpl, name="Square")


def test_a_network_without_a_loss():
    net = Network.from_layer(Input({"default": ("T", "B", 4)}) >> NoOp(name="End"))
    with pytest.raises(NetworkValidationError, match="has no layer Loss.*end it with Loss"):
        net.compile(SgdStepper(0.1))
