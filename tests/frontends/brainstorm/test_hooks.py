"""Hooks: what they log, save, stop and show."""

import json
import os
import signal
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import geon
from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.hooks import (
    BokehVisualizer,
    EarlyStopper,
    Hook,
    InfoUpdater,
    ModifyStepperAttribute,
    MonitorLayerDeltas,
    MonitorLayerGradients,
    MonitorLayerInOuts,
    MonitorLayerParameters,
    MonitorLoss,
    MonitorScores,
    ProgressBar,
    SaveBestNetwork,
    SaveLogs,
    SaveNetwork,
    StopAfterEpoch,
    StopAfterThresholdReached,
    StopOnNan,
    StopOnSigQuit,
)
from geon.frontends.brainstorm.structure.network import Network
from geon.frontends.brainstorm.training import Exponential, SgdStepper, Trainer
from geon.frontends.brainstorm.utils import NetworkValidationError, PathError, ValidationError
from tests.frontends.brainstorm.small_network import xor_batches, xor_data, xor_network


class Say(Hook):
    """Logs given values, one after another."""

    def __init__(self, values, *common, **options):
        super().__init__(*common, **options)
        self.values = list(values)

    def __call__(self, epoch_nr, update_nr, net, stepper, logs):
        return {"value": self.values[epoch_nr]} if epoch_nr < len(self.values) else None


def train(*hooks, epochs=3, net=None, data=None, verbose=False):
    """Train a small network with hooks; return the trainer."""
    trainer = Trainer(SgdStepper(0.1), verbose=verbose)
    for hook in hooks:
        trainer.add_hook(hook)
    trainer.add_hook(StopAfterEpoch(epochs, name="end"))
    trainer.train(net or xor_network(), data or xor_data(), valid=xor_data())
    return trainer


def values_of(criterion):
    sign = 1 if criterion == "min" else -1
    return [sign * v for v in (5.0, 3.0, 4.0, 2.0, 2.0, 6.0)]


@pytest.mark.parametrize("criterion", ["min", "max"])
def test_the_best_network_is_saved(criterion, tmp_path):
    file = str(tmp_path / "best.h5")
    values = values_of(criterion)
    cached = SaveBestNetwork("say.value", criterion=criterion, name="cached")
    saved = SaveBestNetwork("say.value", file, criterion, name="saved")
    kept, net = [], xor_network()

    class Keep(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            kept.append(net.get("parameters"))

    train(Say(values, "say"), cached, saved, Keep(), epochs=5, net=net)
    assert cached.best_so_far == values[3] and cached.best_t == 3
    assert np.array_equal(cached.load_best_network(), kept[3])
    assert np.array_equal(saved.load_best_network().get("parameters"), kept[3])
    assert not np.array_equal(kept[3], kept[5])


def test_nothing_saved_is_no_best_network():
    hook = SaveBestNetwork("say.value")
    with pytest.raises(NetworkValidationError, match="no network was saved"):
        hook.load_best_network()
    train(Say([float("nan")] * 3, "say"), hook, epochs=2)
    with pytest.raises(NetworkValidationError, match="no network was saved"):
        hook.load_best_network()


def test_logs_and_networks_are_saved(tmp_path):
    logs, file = str(tmp_path / "logs.h5"), str(tmp_path / "net.h5")
    net, saver = xor_network(), SaveNetwork(file)
    trainer = train(Say([1.0, 2.0, 3.0], "say"), SaveLogs(logs), saver, net=net, epochs=2)
    with h5py.File(logs) as found:
        assert found["say/value"][:].tolist() == [1.0, 2.0, 3.0]
        assert found.attrs["format"] == "Logs file v1.0"
        rolling = found["rolling_training/total_loss"][:].tolist()
        assert rolling == trainer.logs["rolling_training"]["total_loss"]
    again = saver.load_network()
    assert isinstance(again, Network)
    assert np.array_equal(again.get("parameters"), net.get("parameters"))


def test_buffers_are_monitored():
    net = xor_network()
    monitors = [
        each("OutLayer")
        for each in (
            MonitorLayerDeltas, MonitorLayerGradients, MonitorLayerInOuts, MonitorLayerParameters,
        )
    ]  # fmt: skip
    logs = train(*monitors, net=net, epochs=1).logs
    assert set(logs) >= {f"Monitor{k}_OutLayer" for k in ("Deltas", "Gradients", "InOuts")}

    def check(log, path):
        values = net.get(path)
        for key, of in (("min", values.min()), ("avg", values.mean()), ("max", values.max())):
            assert log[key][-1] == pytest.approx(of), (path, key)

    deltas, inouts = logs["MonitorDeltas_OutLayer"], logs["MonitorInOuts_OutLayer"]
    check(deltas["output_deltas"]["default"], "OutLayer.output_deltas.default")
    check(deltas["input_deltas"]["default"], "OutLayer.input_deltas.default")
    for internal in net.buffer.OutLayer.internals.keys():  # noqa: SIM118, a view is a list
        check(deltas[internal], f"OutLayer.internals.{internal}")
    check(inouts["inputs"]["default"], "OutLayer.inputs.default")
    check(inouts["outputs"]["default"], "OutLayer.outputs.default")
    for view in ("W", "bias"):
        check(logs["MonitorGradients_OutLayer"][view], f"OutLayer.gradients.{view}")
        check(logs["MonitorParameters_OutLayer"][view], f"OutLayer.parameters.{view}")
    norms = np.linalg.norm(net.get("OutLayer.parameters.W"), axis=1)
    log = logs["MonitorParameters_OutLayer"]["W"]
    assert log["max_L2_norm"][-1] == pytest.approx(norms.max())
    assert "max_L2_norm" not in logs["MonitorParameters_OutLayer"]["bias"]


def test_losses_are_monitored():
    trainer = train(MonitorLoss("valid", timescale="update", interval=2), data=xor_batches(2))
    assert set(trainer.logs["MonitorLoss"]) == {"total_loss", "Loss"}
    assert len(trainer.logs["MonitorLoss"]["Loss"]) == 4


@pytest.mark.parametrize("criterion", ["min", "max"])
def test_stoppers_by_logs(criterion):
    values = values_of(criterion)

    def epochs(hook):
        return train(Say(values, "say"), hook, epochs=5).current_epoch_nr

    assert epochs(EarlyStopper("say.value", criterion=criterion)) == 2
    assert epochs(EarlyStopper("say.value", 2, criterion)) == 5
    threshold = values[3]
    assert epochs(StopAfterThresholdReached("say.value", threshold, criterion)) == 3
    assert epochs(StopAfterThresholdReached("say.value", values[0], criterion)) == 0


def test_values_that_are_not_finite_stop():
    class Spoil(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            if epoch_nr == 2:
                net.buffer.parameters[0] = np.inf

    spoiled = [1.0, 1.0, float("nan"), 1.0]
    assert train(Say(spoiled, "say"), StopOnNan("say.value")).current_epoch_nr == 2
    assert train(Say(spoiled, "say"), StopOnNan()).current_epoch_nr == 3
    assert train(Spoil(), StopOnNan()).current_epoch_nr == 2
    only_loss = StopOnNan(check_parameters=False)
    spoil_early = Spoil(timescale="update")
    assert train(spoil_early, only_loss, epochs=6).current_epoch_nr == 3
    neither = StopOnNan(check_parameters=False, check_training_loss=False)
    assert train(Spoil(), neither, epochs=4).current_epoch_nr == 4


def test_a_signal_stops_and_its_handler_is_restored():
    before = signal.getsignal(signal.SIGQUIT)

    class Send(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            if epoch_nr == 1:
                os.kill(os.getpid(), signal.SIGQUIT)

    assert train(Send(), StopOnSigQuit(), epochs=4).current_epoch_nr == 1
    assert signal.getsignal(signal.SIGQUIT) == before


def test_a_picture_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    drawn = []

    class Look(Hook):
        def __call__(self, epoch_nr, update_nr, net, stepper, logs):
            drawn.append([line.get_ydata() for line in picture.lines.values()])

    picture = BokehVisualizer(["say.value"], str(tmp_path / "curve"), name="curves")
    other = BokehVisualizer("say.value", str(tmp_path / "curve.svg"))
    train(Say([3.0, 2.0, 1.0], "say"), picture, other, Look(), epochs=1)
    assert list(drawn[-1][0]) == [3.0, 2.0] and picture.figure is None
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "curve.svg").read_text()


def test_a_bar_for_each_epoch(capsys):
    train(ProgressBar(), data=xor_batches(2), epochs=2)
    text = capsys.readouterr().err
    assert "Epoch 1: 100%" in text and "Epoch 2: 100%" in text and "2/2" in text


def test_information_of_a_run_is_updated():
    run, net = SimpleNamespace(info={}), xor_network()
    trainer = train(InfoUpdater(run), net=net, data=xor_batches(2), epochs=2)
    assert run.info["epoch_nr"] == 2 and run.info["update_nr"] == 4
    assert run.info["logs"] is trainer.logs and run.info["nr_parameters"] == 9


def test_messages_follow_verbosity(capsys):
    hook = StopAfterThresholdReached("say.value", 0.5, verbose=True)
    train(Say([0.1], "say", verbose=False), hook)
    assert capsys.readouterr().out.startswith("StopAfterThresholdReached >> Stopping because say")
    train(Say([0.1], "say"), StopAfterThresholdReached("say.value", 0.5))
    assert capsys.readouterr().out == ""


HOOKS = [
    SaveBestNetwork("a.b", "file.h5", "min", name="x", interval=2),
    SaveLogs("file"),
    SaveNetwork("file", timescale="update", interval=7),
    MonitorLayerDeltas("Out"),
    MonitorLayerGradients("Out", "named"),
    MonitorScores("valid", []),
    MonitorLoss("valid", verbose=True),
    EarlyStopper("a.b", 3, "max"),
    StopAfterEpoch(3),
    StopAfterThresholdReached("a.b", 0.1),
    StopOnNan(["a.b"]),
    StopOnSigQuit(),
    BokehVisualizer("a.b"),
    ProgressBar(),
    InfoUpdater(object()),
    ModifyStepperAttribute(Exponential(1.0, 0.5), "momentum"),
]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: type(hook).__name__)
def test_descriptions(hook):
    described = json.loads(json.dumps(get_description(hook)))
    again = create_from_description(described)
    assert type(again) is type(hook) and get_description(again) == described
    assert {"timescale", "interval", "verbose", "priority"} <= vars(again).keys()


WRONG = {
    "timescale": (lambda: Hook(timescale="day"), ValidationError, "timescale='day'"),
    "interval": (lambda: Hook(interval=0), ValidationError, "interval=0"),
    "criterion": (lambda: EarlyStopper("a", 1, "best"), ValidationError, "criterion='best'"),
    "layer": (lambda: MonitorLayerInOuts("No"), NetworkValidationError, "no layer 'No'.*OutLayer"),
    "iterator": (lambda: MonitorLoss("test"), PathError, "no iterator 'test' among.*'valid'"),
    "log": (lambda: EarlyStopper("no.log"), PathError, "EarlyStopper: the path 'no.log'.*before"),
    "attribute": (
        lambda: ModifyStepperAttribute(Exponential(1, 1), "momentum"),
        ValidationError,
        "SgdStepper has no attribute 'momentum'; it has 'learning_rate'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case):
    make, error, message = WRONG[case]
    assert issubclass(error, geon.GeonError)
    with pytest.raises(error, match=message):
        train(make())


@pytest.mark.parametrize(
    ("package", "hook"),
    [
        ("tqdm", ProgressBar()),
        ("matplotlib", BokehVisualizer("a")),
        ("h5py", SaveLogs("logs.h5")),
    ],
)
def test_a_missing_package_is_named(package, hook, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(geon.UnavailableError, match=f"pip install {package}"):
        train(hook)
