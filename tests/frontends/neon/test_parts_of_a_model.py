"""Parts of a model: what cannot serve, weights of a cost, names, and interrupts held back."""

import signal

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.frontends.neon.training.run import HeldInterrupts
from tests.places import placed

from .test_training import VALIDATION, batches, model, same

N = ax.N
C, Y = geon.Axis("C", 4), geon.Axis("Y", 3)
x = geon.placeholder([N, C], name="x")
t = geon.placeholder([N], "int64", name="t")


def made(layer=None, inputs=x, target=t, cost=neon.costs.cross_entropy, optimiser=None):
    layer = neon.Affine(Y, 0.1, name="net") if layer is None else layer
    numpy = geon.make_transformer("numpy")
    return neon.Model(layer, inputs, target, cost, optimiser, transformer=numpy)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: made(layer=geon.relu), "Model: layer=.* cannot serve; give neon.Activation"),
        (lambda: made(layer=neon.BatchNorm), "Model: layer=.*BatchNorm"),
        (lambda: made(inputs=3), "Model: inputs=3 cannot serve; give geon.placeholder"),
        (lambda: made(inputs=[]), r"Model: inputs=\[\] cannot serve"),
        (lambda: made(target="t"), "Model: target='t' cannot serve"),
        (lambda: made(cost="ce"), "Model: cost='ce' cannot serve; give neon.costs.cross_entropy"),
        (lambda: made(optimiser="sgd"), "Model: optimiser='sgd' cannot serve; give neon.Adam"),
        (lambda: made(optimiser=neon.Adam), "Model: optimiser=<class .*Adam.* cannot serve"),
        (lambda: made(layer=neon.Activation(geon.relu), optimiser=neon.SGD(0.1)).step(),
         r"SGD at .*: the cost .* depends on no variable that is trained; give a cost that does"),
        (lambda: neon.Groups([], None), r"Groups: groups=\[\] is no mapping"),
        (lambda: neon.Groups({3: None}, None), "Groups: 3 says of no parameter"),
        (lambda: neon.schedules.Given(0.1), "Given: no rate was given; give a list"),
    ],
)  # fmt: skip
def test_what_cannot_serve_is_refused(call, what):
    with pytest.raises(geon.ArgumentError, match=placed(what)):
        call()


def test_averages_of_weights_of_the_cost_are_taken_too(make):
    """A cost with a layer of its own, and a metric with it: as with all weights averaged."""
    z = geon.placeholder([N, C], name="z")

    def built():
        below, above = neon.Affine(C, 0.2, name="below"), neon.Affine(C, 0.3, name="above")

        def cost(y, target):
            return neon.costs.squared_error(above(y), target)

        metrics = [neon.metrics.Mean(lambda y, target: 2 * cost(y, target), "twice")]
        averaged = neon.Averaged(neon.SGD(0.5), 0.9)
        return neon.Model(below, x, z, cost, averaged, metrics, transformer=make())

    points = np.random.default_rng(0).normal(size=(2, 8, 4))
    one = built()
    one.fit([tuple(points)], 4)
    found = one.evaluate([tuple(points)], averaged=True)
    for name in ("below.w", "below.b", "above.w", "above.b"):
        kept = one.transformer.get(f"optimiser.{name}.average")
        assert abs(kept - one.transformer.get(name)).max() > 1e-6
        one.transformer.set(name, kept)
    assert found == one.evaluate([tuple(points)])
    assert found["twice"] == pytest.approx(2 * found["cost"])


def test_optimisers_of_models_of_one_transformer_are_named_after_these(transformer, tmp_path):
    body = neon.Affine(geon.Axis("H", 5), 0.1, name="body")
    random = np.random.default_rng(0)
    data = [(random.normal(size=(6, 4)), np.arange(6) % 3)]

    def model_of(name, optimiser):
        net = neon.Sequential([body, neon.Affine(Y, 0.0)], name=name)
        return neon.Model(
            net, x, t, neon.costs.cross_entropy, optimiser, transformer=transformer, name=name
        )

    one = model_of("one", neon.Averaged(neon.Adam()))
    two = model_of("two", neon.Adam())
    three = model_of("three", neon.Adam(name="own"))
    for each in (one, two, three):
        each.fit(data, 1, callbacks=[neon.Checkpoints(tmp_path / each.name)])
    names = transformer.values()
    assert {"one.optimiser.steps", "two.optimiser.steps", "own.steps"} <= names.keys()


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("handler", ["ignored", "own", "default"])
def test_an_interrupt_that_was_held_reaches_what_it_would_have_reached(handler, failed):
    seen = []
    handlers = {
        "ignored": signal.SIG_IGN,
        "own": lambda *given: seen.append(given),
        "default": signal.default_int_handler,
    }
    before = signal.signal(signal.SIGINT, handlers[handler])
    wanted = OSError if failed else KeyboardInterrupt if handler == "default" else None
    raised = None
    try:
        with HeldInterrupts():
            signal.raise_signal(signal.SIGINT)
            assert seen == []
            if failed:
                raise OSError("of the block")
    except (OSError, KeyboardInterrupt) as error:
        raised = type(error)
    finally:
        assert signal.signal(signal.SIGINT, before) == handlers[handler]
    assert raised is wanted and len(seen) == (handler == "own")


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_while_callbacks_count_loses_nothing(make, tmp_path):
    """It comes when one callback has counted an epoch and the next has not."""

    class Presses(neon.Callback):
        def after_epoch(self, run):
            if run.epoch == 2:
                signal.raise_signal(signal.SIGINT)

    def callbacks(folder):
        stop = neon.EarlyStopping("validation cost", 10)
        return [stop, neon.History(folder / "history"), neon.Checkpoints(folder / "files")]

    whole = model(make())
    whole.fit(batches(), 4, validation=VALIDATION, callbacks=callbacks(tmp_path / "a"))
    broken = model(make())
    run = broken.fit(
        batches(), 4, validation=VALIDATION, callbacks=[Presses(), *callbacks(tmp_path / "b")]
    )
    assert run.interrupted and run.epoch == 2
    other = model(make())
    last = tmp_path / "b" / "files" / "interrupted.safetensors"
    other.fit(batches(), 4, validation=VALIDATION, callbacks=callbacks(tmp_path / "b"), resume=last)
    same(whole.transformer, other.transformer)
    texts = [(tmp_path / name / "history").read_text() for name in "ab"]
    assert texts[0] == texts[1] and texts[0].count("\n") == 4


@pytest.mark.parametrize(
    ("callback", "what"),
    [
        (lambda folder: neon.EarlyStopping(), "no figure 'validation cost' .*give fit validation="),
        (lambda folder: neon.EarlyStopping("acuracy"), "no figure 'acuracy'.*'cost'"),
        (lambda folder: neon.Checkpoints(folder / "f", best="vaildation cost"), "did you mean"),
        (lambda folder: neon.Checkpoints(folder / "taken"), "taken cannot be made .*another path"),
        (lambda folder: neon.History(folder / "taken" / "h"), "History at .*taken cannot be made"),
        (lambda folder: neon.Curves(neon.History(), folder / "c.xyz"), "c.xyz' ends in no format"),
    ],
)
def test_callbacks_that_cannot_serve_say_so(callback, what, tmp_path, transformer):
    (tmp_path / "taken").write_text("a file")
    validation = VALIDATION if "did you" in what else None
    with pytest.raises(geon.ArgumentError, match=what):
        model(transformer).fit(batches(), 1, validation=validation, callbacks=[callback(tmp_path)])


def test_callbacks_make_their_folders(transformer, tmp_path):
    history = neon.History(tmp_path / "a" / "b" / "history")
    curves = neon.Curves(history, tmp_path / "c" / "curves.SVG")
    model(transformer).fit(batches(), 2, callbacks=[history, curves])
    assert history.path.read_text().count("\n") == 2
    assert (tmp_path / "c" / "curves.SVG").stat().st_size > 1000


def test_hdf5_files_that_cannot_be_read_are_left_as_they_are(transformer, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "deep" / "history.h5"
    made = model(transformer)
    made.fit(batches(), 2, callbacks=[neon.HDF5History(path)])
    with h5py.File(path) as file:
        assert file["epoch"][:].tolist() == [1, 2]
    cut = path.read_bytes()[:1000]
    path.write_bytes(cut)
    with pytest.raises(geon.ArgumentError, match="cannot be read .*; take it away, or give"):
        made.fit(batches(), 3, callbacks=[neon.HDF5History(path)])
    assert path.read_bytes() == cut


def test_a_checkpoint_of_another_run_says_what_fit_needs(make, tmp_path):
    stop = neon.EarlyStopping("cost")
    model(make()).fit(batches(), 1, callbacks=[stop, neon.Checkpoints(tmp_path)])
    with pytest.raises(geon.CheckpointError) as failed:
        model(make()).fit(batches(), 2, resume=tmp_path / "epoch-1.safetensors")
    assert "the layers, the optimiser and the callbacks that the run had" in str(
        failed.value.__notes__
    )
