"""Training: XOR with Brainstorm's seeds, the order of events, logs, and what is refused."""

import json

import numpy as np
import pytest
from brainstorm_characters import Pieces

import geon
from geon.frontends.brainstorm import layers
from geon.frontends.brainstorm.data_iterators import Minibatches
from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.handlers import NativeHandler, NumpyHandler
from geon.frontends.brainstorm.hooks import (
    Hook,
    ModifyStepperAttribute,
    MonitorScores,
    StopAfterEpoch,
    StopOnNan,
)
from geon.frontends.brainstorm.initializers import EchoState, Gaussian
from geon.frontends.brainstorm.randomness import RandomState
from geon.frontends.brainstorm.scorers import Accuracy, MeanSquaredError
from geon.frontends.brainstorm.structure.network import Network
from geon.frontends.brainstorm.tools import create_net_from_spec
from geon.frontends.brainstorm.training import (
    AdamStepper,
    Linear,
    MomentumStepper,
    NesterovStepper,
    RMSpropStepper,
    SgdStepper,
    Trainer,
    TrainingStepper,
)
from geon.frontends.brainstorm.utils import (
    InitializationError,
    IteratorValidationError,
    NetworkValidationError,
    ValidationError,
)
from geon.frontends.brainstorm.value_modifiers import ClipValues, L2Decay
from tests.frontends.brainstorm.small_network import XOR, xor_batches, xor_data, xor_network


def test_first_parameters_have_the_seeds_of_the_original():
    """A seed for each parameter, drawn in the sorted order of layers and of their parameters."""
    net = xor_network(seed=42)
    seeds = np.random.RandomState(42)
    for layer in ("FullyConnected", "OutLayer"):
        for view in ("W", "bias"):
            shape = net.buffer[layer].parameters[view].shape
            draws = np.random.RandomState(seeds.randint(0, 1000000000)).randn(*shape)
            found = net.get(f"{layer}.parameters.{view}")
            assert np.array_equal(found, draws.astype(np.float32)), (layer, view)


def test_xor_is_learned():
    """The integration test of Brainstorm: its network, seed, rate and number of epochs."""
    net = xor_network(seed=42)
    trainer = Trainer(SgdStepper(learning_rate=4.0), verbose=False)
    trainer.add_hook(StopAfterEpoch(300))
    trainer.train(net, xor_data())
    assert np.array_equal(np.round(net.get("OutLayer.outputs.default")), XOR["targets"])
    losses = trainer.logs["rolling_training"]["total_loss"]
    assert len(losses) == 300 and losses[-1] < 0.1 < losses[0]


class Recorder(Hook):
    """Writes down what happens, and stops at a time."""

    def __init__(self, events, stop=None, **options):
        super().__init__(**options)
        self.events, self.stop = events, stop

    def start(self, net, stepper, verbose, named_data_iters):
        self.events.append(("start", sorted(named_data_iters)))

    def finish(self):
        self.events.append("finish")

    def __call__(self, epoch_nr, update_nr, net, stepper, logs):
        self.events.append((self.timescale, epoch_nr, update_nr))
        if (epoch_nr, update_nr) == self.stop:
            raise StopIteration({"inner": {"count": len(self.events)}})
        return {"inner": {"count": len(self.events)}}


def test_the_order_of_events():
    net, events = xor_network(), []
    stepper, forward, modify = SgdStepper(), net.forward_pass, net.apply_weight_modifiers
    net.forward_pass = lambda **options: (events.append("forward"), forward(**options))
    net.apply_weight_modifiers = lambda: (events.append("modify"), modify())
    trainer = Trainer(stepper, verbose=False)
    trainer.add_hook(Recorder(events, name="by update", timescale="update"))
    trainer.add_hook(Recorder(events, (2, 4), name="by epoch"))
    trainer.train(net, xor_batches(2), valid=xor_data())
    start = ("start", ["training_data_iter", "valid"])
    update = ["forward", "modify"]
    assert events == [
        *[start, start, ("update", 0, 0), ("epoch", 0, 0)],
        *[*update, ("update", 1, 1), *update, ("update", 1, 2), ("epoch", 1, 2)],
        *[*update, ("update", 2, 3), *update, ("update", 2, 4), ("epoch", 2, 4)],
        *["finish", "finish"],
    ]
    assert trainer.logs["by update"]["inner"]["count"] == [3, 7, 10, 14, 17]
    assert trainer.logs["by epoch"]["inner"]["count"] == [4, 11, 18]
    assert (trainer.current_epoch_nr, trainer.current_update_nr) == (2, 4)
    assert len(trainer.logs["rolling_training"]["Loss"]) == 2


@pytest.mark.parametrize("timescale", ["update", "epoch"])
def test_a_hook_may_stop_before_and_in_an_epoch(timescale):
    for stop, updates in [((0, 0), 0), ((1, 1), 1 if timescale == "update" else 2)]:
        stop = stop if timescale == "update" or not stop[0] else (1, 2)
        trainer = Trainer(SgdStepper(), verbose=False)
        trainer.add_hook(Recorder([], stop, timescale=timescale))
        trainer.train(xor_network(), xor_batches(2))
        assert trainer.current_update_nr == updates


def test_hooks_are_called_at_their_intervals():
    events, trainer = [], Trainer(SgdStepper(), verbose=False)
    trainer.add_hook(Recorder(events, timescale="update", interval=3))
    trainer.add_hook(StopAfterEpoch(4))
    trainer.train(xor_network(), xor_batches(2))
    assert [e[2] for e in events[1:-1]] == [0, 3, 6]


def test_what_is_printed_and_scored(capsys):
    trainer = Trainer(MomentumStepper(0.5, 0.9))
    trainer.train_scorers = [Accuracy("OutLayer.outputs.default", name="accuracy")]
    trainer.add_hook(MonitorScores("valid", [Accuracy("OutLayer.outputs.default")], "validation"))
    trainer.add_hook(StopAfterEpoch(1))
    trainer.train(xor_network(), xor_batches(2), valid=xor_data())
    text = capsys.readouterr().out
    accuracy = trainer.logs["validation"]["Accuracy"]
    assert len(accuracy) == 2 and set(trainer.logs["validation"]) == {
        "total_loss", "Loss", "Accuracy",
    }  # fmt: skip
    assert set(trainer.logs["rolling_training"]) == {"total_loss", "Loss", "accuracy"}
    for line in (
        "- -  Before Training  - -",
        "- -  Epoch 1  - -",
        "validation\n",
        f"  {'Accuracy':38}: {accuracy[0]}",
        "StopAfterEpoch >> Stopping after the last of 1 epochs",
    ):
        assert line in text
    trainer.verbose = False
    trainer.train(xor_network(), xor_batches(2), valid=xor_data())
    assert capsys.readouterr().out == ""


def test_evaluate_calls_the_hooks_once():
    trainer = Trainer(SgdStepper(), verbose=False)
    trainer.add_hook(MonitorScores("valid", [], name="validation"))
    results = trainer.evaluate(xor_network(), valid=xor_data())
    assert results is trainer.results and len(results["validation"]["total_loss"]) == 1
    assert trainer.logs == {}


def test_weight_modifiers_hold_after_each_update():
    net = xor_network()
    net.set_weight_modifiers(ClipValues(-0.125, 0.125))
    trainer = Trainer(SgdStepper(4.0), verbose=False)
    trainer.add_hook(StopAfterEpoch(1))
    trainer.train(net, xor_data())
    assert abs(net.get("parameters")).max() == 0.125


def test_a_trainer_is_described_with_its_hooks():
    trainer = Trainer(MomentumStepper(0.3, 0.9), verbose=False)
    trainer.add_hook(MonitorScores("valid", [Accuracy("OutLayer.outputs.default")], "validation"))
    trainer.add_hook(StopAfterEpoch(2, name="end"))
    trainer.train(xor_network(), xor_data(), valid=xor_data())
    again = create_from_description(json.loads(json.dumps(get_description(trainer))))
    assert list(again.hooks) == ["validation", "end"] and again.logs == {}
    assert again.stepper.momentum == 0.9 and again.current_epoch_nr == 0
    again.train(xor_network(), xor_data(), valid=xor_data())
    assert again.logs == trainer.logs


def test_an_error_in_a_hook_names_the_hook():
    class Faulty(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            raise ZeroDivisionError("oh")

    trainer, events = Trainer(SgdStepper(), verbose=False), []
    trainer.add_hook(Recorder(events))
    trainer.add_hook(Faulty(name="bad one"))
    with pytest.raises(ZeroDivisionError) as caught:
        trainer.train(xor_network(), xor_data())
    assert caught.value.__notes__ == ["while calling the hook 'bad one'"]
    assert events[-1] == "finish"


def test_what_does_not_fit_is_refused():
    trainer = Trainer(SgdStepper(), verbose=False)
    trainer.add_hook(StopAfterEpoch(1))
    with pytest.raises(ValidationError, match="hook 'StopAfterEpoch' already, a StopAfterEpoch"):
        trainer.add_hook(StopAfterEpoch(2))
    with pytest.raises(IteratorValidationError, match=r"\['data', 'targets'\].*\['default', 'tar"):
        trainer.train(xor_network(), Minibatches(1, data=XOR["default"], targets=XOR["targets"]))


def test_a_fallback_initialises_what_does_not_fit():
    inputs = layers.Input(out_shapes={"default": ("T", "B", 3)})
    net = Network.from_layer(inputs >> layers.FullyConnected(3, name="Out"))
    with pytest.raises(InitializationError, match="Out.*bias"):
        net.initialize(EchoState(0.5), seed=1)
    net.initialize({"default": EchoState(0.5), "fallback": Gaussian(0.1)}, seed=1)
    W = net.get("Out.parameters.W")
    assert np.isclose(abs(np.linalg.eigvals(W)).max(), 0.5)
    seeds = RandomState(1)
    seeds.generate_seed()
    bias = RandomState(seeds.generate_seed()).randn(3) * 0.1
    assert np.allclose(net.get("Out.parameters.bias"), bias)


STEPPERS = [
    SgdStepper(0.5),
    MomentumStepper(0.5, 0.9),
    NesterovStepper(0.5, 0.9),
    AdamStepper(0.05),
    RMSpropStepper(0.02, momentum=0.5),
]


@pytest.mark.parametrize("handler", [NumpyHandler, NativeHandler])
@pytest.mark.parametrize("stepper", STEPPERS, ids=lambda each: type(each).__name__)
def test_a_compiled_training_equals_an_inspectable_one(stepper, handler):
    """With modifiers of both kinds, scorers of the batches, and a rate that falls."""
    found = []
    for compiled in (False, True):
        net = xor_network()
        net.set_handler(handler())
        net.set_gradient_modifiers({"OutLayer": L2Decay(0.01)})
        net.set_weight_modifiers({"Fully*": ClipValues(-2.0, 2.0)})
        trainer = create_from_description(
            get_description(Trainer(stepper, verbose=False, compiled=compiled))
        )
        out = "OutLayer.outputs.default"
        trainer.train_scorers = [Accuracy(out), MeanSquaredError(out)]
        trainer.add_hook(ModifyStepperAttribute(Linear(0.05, 0.01, 3)))
        trainer.add_hook(MonitorScores("valid", [Accuracy(out)], "validation"))
        trainer.add_hook(StopOnNan())
        trainer.add_hook(StopAfterEpoch(4))
        trainer.train(net, xor_batches(3), valid=xor_data())
        found.append((net.get("parameters"), trainer.logs))
    assert np.allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    for kind in ("rolling_training", "validation"):
        for name, values in found[0][1][kind].items():
            assert np.allclose(values, found[1][1][kind][name], rtol=1e-4, atol=1e-5), name


def test_a_compiled_training_carries_contexts_and_keeps_what_is_asked_for():
    found = []
    data = np.random.RandomState(0).randn(12, 3, 2)
    for compiled in (False, True):
        net = create_net_from_spec("regression", 2, 1, "L4")
        net.initialize(Gaussian(0.5), seed=1)
        keep = ["Lstm.outputs.default"]
        trainer = Trainer(
            SgdStepper(0.1), verbose=False, compiled=compiled, keep=keep, carry_context=True
        )
        trainer.add_hook(StopAfterEpoch(2))
        trainer.train(net, Pieces(4, default=data, targets=data[:, :, :1]))
        found.append((net.get("parameters"), net.get("Lstm.outputs.default")))
    for one, other in zip(*found, strict=True):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-5)
    with pytest.raises(geon.GeonError, match="keep"):
        net.get("Lstm.internals.Za")


def test_a_stepper_without_a_rule_is_not_compiled():
    class Own(TrainingStepper):
        def run(self):
            self.net.forward_pass(training_pass=True)

    trainer = Trainer(Own(), verbose=False, compiled=True)
    trainer.add_hook(StopAfterEpoch(1))
    with pytest.raises(NetworkValidationError, match="Own defines no update.*without compiled"):
        trainer.train(xor_network(), xor_data())


@pytest.mark.parametrize("compiled", [False, True])
def test_a_changed_constant_of_the_rule_counts_from_then_on(compiled):
    class Change(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            stepper.scale_learning_rate = epoch_nr < 2

    net, expected = xor_network(), xor_network()
    trainer = Trainer(MomentumStepper(1.0, 0.5), verbose=False, compiled=compiled)
    trainer.add_hook(Change())
    trainer.add_hook(StopAfterEpoch(4))
    trainer.train(net, xor_data())
    velocity = 0
    expected.provide_external_data(XOR)
    for rate in (0.5, 0.5, 1.0, 1.0):
        expected.forward_pass(training_pass=True)
        expected.backward_pass()
        velocity = 0.5 * velocity - rate * expected.get("gradients")
        expected.buffer.parameters[:] += velocity
    assert np.allclose(net.get("parameters"), expected.get("parameters"), atol=1e-5)
