"""Steppers against their rules in NumPy, and against the optimisers of neon."""

import json

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.handlers import Handler
from geon.frontends.brainstorm.hooks import ModifyStepperAttribute, StopAfterEpoch
from geon.frontends.brainstorm.training import (
    AdamStepper,
    ForwardStepper,
    Linear,
    MomentumStepper,
    NesterovStepper,
    RMSpropStepper,
    SgdStepper,
    Trainer,
    TrainingStepper,
)
from geon.frontends.brainstorm.utils import NetworkValidationError
from geon.frontends.brainstorm.value_modifiers import ConstrainL2Norm, L2Decay
from tests.frontends.brainstorm.small_network import XOR, xor_data, xor_network

STEPS = 5


def gradient_of(net, parameters):
    """The gradients of the network at other parameters."""
    net.buffer.parameters[:] = parameters
    net.provide_external_data(XOR)
    net.forward_pass(training_pass=True)
    net.backward_pass()
    return net.get("gradients")


def momentum(net, rate, share, scale=True, ahead=False):
    """Brainstorm's momentum in NumPy."""
    theta, velocity = net.get("parameters"), 0
    rate = rate * (1 - share) if scale else rate
    for _ in range(STEPS):
        at = theta + share * velocity if ahead else theta
        velocity = share * velocity - rate * gradient_of(net, at)
        theta = theta + velocity
    return theta


def of_neon(net, optimiser):
    """Steps of an optimiser of neon for the vector of parameters."""
    start = net.get("parameters")
    P = geon.Axis("P", start.size)
    w = geon.Variable([P], initial_value=start, name="w")
    g = geon.placeholder([P])
    transformer = geon.NumPyTransformer()
    step = transformer.computation(optimiser.update([w], [g]), g)
    for _ in range(STEPS):
        step(gradient_of(net, transformer.get(w)))
    return transformer.get(w)


CASES = {
    "sgd": (SgdStepper(0.5), lambda net: momentum(net, 0.5, 0.0)),
    "momentum": (MomentumStepper(0.5, 0.9), lambda net: momentum(net, 0.5, 0.9)),
    "unscaled": (MomentumStepper(0.5, 0.9, False), lambda net: momentum(net, 0.5, 0.9, False)),
    "nesterov": (NesterovStepper(0.5, 0.9), lambda net: momentum(net, 0.5, 0.9, ahead=True)),
    "adam": (AdamStepper(0.1, 0.8, 0.95), lambda net: of_neon(net, neon.Adam(0.1, 0.8, 0.95))),
    "rmsprop": (RMSpropStepper(0.1), lambda net: of_neon(net, neon.RMSProp(0.1))),
    "rmsprop with momentum": (
        RMSpropStepper(0.1, momentum=0.9),
        lambda net: of_neon(net, neon.RMSProp(0.1, momentum=0.9)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_follow_their_rules(case):
    stepper, expected = CASES[case]
    stepper = create_from_description(json.loads(json.dumps(get_description(stepper))))
    net = xor_network()
    net.provide_external_data(XOR)
    stepper.start(net)
    for _ in range(STEPS):
        stepper.run()
    assert stepper.count == STEPS
    assert np.allclose(net.get("parameters"), expected(xor_network()), rtol=1e-4, atol=1e-6)


def test_steps_and_modifiers_are_the_same_on_all_transformers(transformer):
    stepper, expected = CASES["nesterov"]
    net = xor_network()
    net.set_handler(Handler("float32", 0, transformer))
    net.provide_external_data(XOR)
    net.set_gradient_modifiers(L2Decay(0.0))
    net.set_weight_modifiers(ConstrainL2Norm(0.75))
    stepper.start(net)
    for _ in range(STEPS):
        stepper.run()
    assert np.allclose(net.get("parameters"), expected(xor_network()), rtol=1e-4, atol=1e-5)
    before = net.get("FullyConnected.parameters.W")
    net.apply_weight_modifiers()
    factors = np.minimum(1, 0.75 / np.linalg.norm(before, axis=1, keepdims=True))
    assert np.allclose(net.get("FullyConnected.parameters.W"), before * factors, rtol=1e-5)


def test_members_are_read_at_each_step():
    """Numbers may change between steps; a changed constant compiles the rule again."""
    net, stepper = xor_network(), MomentumStepper(0.0, 0.5)
    net.provide_external_data(XOR)
    stepper.start(net)
    before = net.get("parameters")
    stepper.run()
    assert (net.get("parameters") == before).all()
    stepper.learning_rate = 1.0
    stepper.run()
    first = before - 0.5 * net.get("gradients")
    assert np.allclose(net.get("parameters"), first, atol=1e-6)
    stepper.momentum, stepper.scale_learning_rate = 0.0, False
    stepper.run()
    assert np.allclose(net.get("parameters"), first - net.get("gradients"), atol=1e-6)
    assert np.allclose(stepper.velocity, -net.get("gradients"), atol=1e-6)


def test_a_schedule_sets_the_rate_of_each_epoch():
    net, stepper, rates = xor_network(), SgdStepper(0.1), []

    class Watch(SgdStepper):
        def begin_step(self):
            rates.append(self.learning_rate)
            return super().begin_step()

    trainer = Trainer(Watch(), verbose=False)
    trainer.add_hook(ModifyStepperAttribute(Linear(1.0, 0.0, 4)))
    trainer.add_hook(StopAfterEpoch(5))
    trainer.train(net, xor_data())
    assert rates == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert stepper.learning_rate == 0.1


def test_the_forward_stepper_returns_the_loss():
    net, stepper = xor_network(), ForwardStepper()
    net.provide_external_data(XOR)
    before = net.get("parameters")
    stepper.start(net)
    assert stepper.run() == net.get_loss_values()["total_loss"] > 0
    assert (net.get("parameters") == before).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(geon.ArgumentError, match="scale_learning_rate=1"):
        MomentumStepper(scale_learning_rate=1)
    with pytest.raises(geon.ArgumentError, match="first=1.5"):
        AdamStepper(beta1=1.5)

    class Empty(TrainingStepper):
        pass

    net, stepper = xor_network(), Empty()
    net.provide_external_data(XOR)
    stepper.start(net)
    with pytest.raises(NetworkValidationError, match="Empty defines no update"):
        stepper.run()
