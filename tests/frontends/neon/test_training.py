"""Models: training, figures, callbacks, and runs that go on from checkpoints."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from tests.places import placed

N = ax.N
C, H, Y = geon.Axis("C", 4), geon.Axis("H", 8), geon.Axis("Y", 3)


def examples(count=50, seed=0):
    """Points and their classes, which a network can learn."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, 4)).astype("float32")
    return points, (points[:, 0] > 0).astype(int) + (points[:, 1] > 0)


def model(transformer, rate=0.05, **options):
    """A small network with all that a checkpoint must hold: draws, statistics, a schedule."""
    random = geon.Random(0, name="random")
    net = neon.Sequential(
        [
            neon.Affine(H, neon.Glorot(random)),
            neon.BatchNorm(over=H),
            geon.relu,
            neon.Dropout(0.2, random),
            neon.Affine(Y, neon.Glorot(random)),
        ],
        name="net",
    )
    x = geon.placeholder([N, C], name="x")
    t = geon.placeholder([N], "int64", name="t")
    optimiser = neon.Adam(neon.schedules.Cosine(rate, 60)) if isinstance(rate, float) else rate
    metrics = [neon.metrics.Accuracy()]
    return neon.Model(
        net, x, t, neon.costs.cross_entropy, optimiser, metrics, transformer=transformer, **options
    )


def batches(**options):
    return neon.Batches(*examples(), size=16, seed=3, **options)


VALIDATION = neon.Batches(*examples(30, 1), size=16)


def same(one, other):
    """All variables of two transformers are equal bit for bit."""
    first, second = one.values(), other.values()
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def test_fit_learns_and_evaluate_says_so(transformer):
    made = model(transformer, neon.Adam(0.02))
    before = made.evaluate(VALIDATION)
    run = made.fit(neon.Batches(*examples(400), size=16, seed=3), 8, validation=VALIDATION)
    assert run.epoch == 8 and run.stop is None
    assert run.figures.keys() == {"cost", "validation cost", "validation accuracy"}
    after = made.evaluate(VALIDATION)
    assert after["cost"] == run.figures["validation cost"] < 0.7 * before["cost"]
    assert after["accuracy"] > 0.75


def test_the_cost_of_an_epoch_is_the_mean_over_its_examples(make):
    made = model(make(), neon.SGD(0.0))
    run = made.fit(neon.Batches(*examples(), size=50), 1)
    alone = model(make(), neon.SGD(0.0))
    costs = []
    for batch in neon.Batches(*examples(), size=16).epoch(0):
        costs += [float(alone.step()(*batch)[0])] * len(batch[0])
    assert run.figures["cost"] == pytest.approx(run.cost)
    parts = alone.reached()
    assert parts[1] == 4 and parts[3] == 50
    assert parts[2] / 50 == pytest.approx(np.mean(costs))


def test_predict(transformer):
    made = model(transformer)
    points = examples()[0]
    whole = made.predict(points)
    assert whole.shape == (50, 3)
    np.testing.assert_allclose(made.predict(points, size=7), whole, rtol=1e-5, atol=1e-6)
    assert made.predict(points[:0]).shape == made.predict(points[:0], size=7).shape == (0, 3)
    result = made.evaluate(neon.Batches(*examples(), size=50))["accuracy"]
    assert result == np.mean(whole.argmax(1) == examples()[1])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_predict_takes_its_batches_along_the_axis_of_the_examples(transformer, place):
    t = geon.Axis("T")
    axes = [t, C]
    axes.insert(place, N)
    x, scale = geon.placeholder(axes, name="x"), geon.placeholder([C], name="scale")
    labels = geon.placeholder([N], "int64", name="labels")
    layer = neon.Affine(Y, 0.5, over=C)

    class Summed(neon.Layer):
        def forward(self, x, scale, training=None):
            return geon.sum(layer(x * scale), reduction_axes=t)

    made = neon.Model(
        Summed(), [x, scale], labels, neon.costs.cross_entropy, transformer=transformer
    )
    given = np.random.default_rng(0).normal(size=(4, 6, 4)).astype("float32")  # N, T, C
    given = np.moveaxis(given, 0, place)
    factors = np.arange(4.0)
    whole = made.predict(given, factors)
    assert whole.shape == (4, 3)
    for size in (1, 2, 3, 4, 9):
        np.testing.assert_allclose(made.predict(given, factors, size=size), whole, rtol=1e-5)


def test_batches_of_examples_that_the_result_has_not_are_refused(transformer):
    class Total(neon.Layer):
        def forward(self, x, training=None):
            return geon.sum(x)

    x, t = geon.placeholder([N, C], name="x"), geon.placeholder([], name="t")
    made = neon.Model(Total(), x, t, lambda y, t: geon.square(y - t), transformer=transformer)
    assert made.predict(np.ones((3, 4))) == 12
    with pytest.raises(geon.ArgumentError, match="no axis N; leave out size="):
        made.predict(np.ones((3, 4)), size=2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("masked", [False, True])
def test_costs_of_half_formats_are_added_up_in_float32(transformer, dtype, masked):
    """Sums and counts that these do not hold: 75,000 costs of log 10."""
    t, k = geon.Axis("T"), geon.Axis("K", 10)
    x = geon.placeholder([N, t, C], dtype, name="x")
    labels = geon.placeholder([N, t], "int64", name="labels")
    real = geon.placeholder([N, t], "bool", name="real")
    layer = neon.Affine(k, 0.0, over=C, name="layer")
    made = neon.Model(
        layer, x, labels, neon.costs.cross_entropy, neon.SGD(0.5),
        mask=real if masked else None, transformer=transformer,
    )  # fmt: skip
    given = [np.zeros((150, 500, 4)), np.zeros((150, 500), int)]
    given[1:1] = [np.ones((150, 500), bool)] if masked else []
    run = made.fit([given], 1)
    near = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-5}[dtype]
    assert run.figures["cost"] == pytest.approx(np.log(10), rel=near)
    assert run.cost == pytest.approx(np.log(10), rel=near)
    wanted = -0.5 * (0.1 - np.eye(10)[0])
    found = transformer.get("layer.b").astype("float64")
    # Slopes of 1 / 75,000 have few digits in float16, which is what Scaled is for.
    np.testing.assert_allclose(found, wanted, rtol=0.03 if dtype == "float16" else 10 * near)


def test_two_models_of_one_transformer_have_names(transformer, tmp_path):
    """They share a layer, and a checkpoint of both."""
    body = neon.Affine(H, neon.Glorot(geon.Random(0, name="random")), name="body")

    def one(head, **options):
        x, t = geon.placeholder([N, C], name="x"), geon.placeholder([N], "int64", name="t")
        net = neon.Sequential([body, neon.Affine(Y, 0.1, name=f"head.{head}")])
        optimiser = neon.Adam(0.05, name=f"adam.{head}")
        cost = neon.costs.cross_entropy
        return neon.Model(net, x, t, cost, optimiser, transformer=transformer, **options)

    first, second = one("a", name="fit.a"), one("b", name="fit.b")
    stopping = neon.EarlyStopping("cost", patience=50)
    first.fit(batches(), 2, callbacks=[stopping, neon.Checkpoints(tmp_path)])
    second.fit(batches(), 3, callbacks=[stopping, neon.Checkpoints(tmp_path)])
    kept = {name for name in transformer.values() if name.startswith("fit")}
    assert {"fit.a.place", "fit.b.place", "fit.b.early_stopping.cost.best"} <= kept
    again = one("c")  # of the usual name
    again.fit(batches(), 1, callbacks=[neon.Checkpoints(tmp_path)])
    with pytest.raises(geon.ArgumentError, match="name='' is no text"):
        one("d", name="")


def test_figures_of_no_batch_are_nan(transformer):
    assert all(np.isnan(list(model(transformer).evaluate(neon.Stream(lambda epoch: [])).values())))


def test_a_model_without_an_optimiser_is_not_trained(transformer):
    with pytest.raises(geon.ArgumentError, match="give optimiser="):
        model(transformer, None).fit(batches(), 1)


def test_an_epoch_without_a_batch_is_refused(make):
    for data in ([], neon.Batches(*examples(10), size=16, last="drop")):
        with pytest.raises(
            geon.ArgumentError, match=placed("fit: the data have no batch in epoch 0")
        ):
            model(make()).fit(data, 1)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_run_goes_on_bit_for_bit_after_an_epoch(make, tmp_path, epochs):
    whole, part, rest = (model(make()) for _ in range(3))
    unbroken = whole.fit(batches(), 4, validation=VALIDATION)
    part.fit(batches(), epochs, callbacks=[neon.Checkpoints(tmp_path)])
    path = tmp_path / f"epoch-{epochs}.safetensors"
    resumed = rest.fit(
        batches(), 4, validation=VALIDATION, resume=path, callbacks=[neon.Checkpoints(tmp_path)]
    )
    assert resumed.figures == unbroken.figures
    values = rest.transformer.values()
    for name, value in whole.transformer.values().items():
        np.testing.assert_array_equal(value, values[name], err_msg=name)


# Each optimiser with what it may keep, and what goes around it; L-BFGS is in test_lbfgs.py.
OPTIMISERS = {
    "sgd": lambda: neon.SGD(0.05, 0.9, nesterov=True),
    "rmsprop": lambda: neon.RMSProp(momentum=0.5),
    "adagrad": neon.Adagrad,
    "adadelta": neon.Adadelta,
    "adam": lambda: neon.Adam(neon.schedules.WarmUp(3, neon.schedules.Cosine(0.05, 12))),
    "adamw": lambda: neon.AdamW(decay=0.1, clip=neon.ByGlobalNorm(1.0)),
    "lion": lambda: neon.Lion(0.01, decay=0.1),
    "muon": lambda: neon.Groups({neon.Matrices(): neon.Muon()}, rest=neon.AdamW()),
    "accumulated": lambda: neon.Accumulated(neon.Adam(), 3),
    "averaged": lambda: neon.Averaged(neon.SGD(0.05)),
    "scaled": lambda: neon.Scaled(neon.SGD(0.05, 0.5), first=4.0, every=2),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_every_optimiser_goes_on_bit_for_bit(tmp_path, optimiser):
    """What each keeps is in checkpoints, whichever the target; so one is enough."""
    saved = [neon.Checkpoints(tmp_path, every=9)]
    whole, part, rest = (model(geon.NumPyTransformer(), OPTIMISERS[optimiser]()) for _ in range(3))
    unbroken = whole.fit(batches(), 3, callbacks=saved)
    part.fit(batches(), 3, callbacks=[Interrupt(5), *saved])
    resumed = rest.fit(batches(), 3, resume=tmp_path / "interrupted.safetensors", callbacks=saved)
    assert resumed.figures == unbroken.figures
    same(whole.transformer, rest.transformer)


class Interrupt(neon.Callback):
    """Ctrl-C after so many batches."""

    def __init__(self, batches):
        self.left = batches

    def after_batch(self, run):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_ctrl_c_ends_a_run_that_then_goes_on_bit_for_bit(make, tmp_path, count):
    saved = [neon.Checkpoints(tmp_path, keep=1)]
    whole, part, rest = (model(make()) for _ in range(3))
    unbroken = whole.fit(batches(), 3, callbacks=saved)
    run = part.fit(batches(), 3, callbacks=[Interrupt(count), *saved])
    assert run.interrupted and run.stop == "interrupted"
    resumed = rest.fit(batches(), 3, resume=tmp_path / "interrupted.safetensors", callbacks=saved)
    assert resumed.figures == unbroken.figures
    same(whole.transformer, rest.transformer)


class Signal(neon.Callback):
    """A real Ctrl-C, some time after the first batch; then a wait for it in the last epoch."""

    def __init__(self, after):
        self.after, self.timer = after, None

    def after_batch(self, run):
        if self.timer is None:
            self.timer = threading.Timer(self.after, os.kill, [os.getpid(), signal.SIGINT])
            self.timer.start()
        if run.epoch == run.epochs - 1:
            time.sleep(10)


@pytest.mark.parametrize("after", [0, 0.001, 0.003, 0.007, 0.013])
@pytest.mark.usefixtures("interrupts")
def test_a_signal_at_any_time_loses_nothing(make, tmp_path, after):
    def callbacks(*more):
        history = neon.History(tmp_path / "history")
        stopping = neon.EarlyStopping(patience=50)
        return [*more, history, stopping, neon.Checkpoints(tmp_path, keep=1)]

    options = {"validation": VALIDATION, "callbacks": callbacks()}
    whole, part, rest = (model(make()) for _ in range(3))
    whole.fit(batches(), 8, **options)
    wanted = (tmp_path / "history").read_text()
    (tmp_path / "history").unlink()
    part.step(), part.evaluate(VALIDATION)
    run = part.fit(batches(), 8, **options | {"callbacks": callbacks(Signal(after))})
    assert run.interrupted
    rest.fit(
        batches(), 8, resume=tmp_path / "interrupted.safetensors",
        **options | {"callbacks": callbacks()},
    )  # fmt: skip
    same(whole.transformer, rest.transformer)
    assert (tmp_path / "history").read_text() == wanted


class Fails(neon.Callback):
    """Raises when training ends."""

    def __init__(self, error):
        self.error = error

    def end(self, run):
        raise self.error


@pytest.mark.usefixtures("interrupts")
def test_nothing_at_the_end_costs_the_checkpoint_of_an_interrupted_run(make, tmp_path):
    """Neither another callback's error, nor a second Ctrl-C while it is written."""

    class Slow(neon.Checkpoints):
        def end(self, run):
            os.kill(os.getpid(), signal.SIGINT)
            super().end(run)

    history = neon.History()
    (tmp_path / "taken.png").mkdir()
    for number, (kind, others, error) in enumerate([
        (neon.Checkpoints, [Fails(OSError("the disk is full")), history], OSError),
        (neon.Checkpoints, [neon.Curves(history, tmp_path / "taken.png"), history], OSError),
        (Slow, [history], KeyboardInterrupt),
    ]):  # fmt: skip
        folder = tmp_path / str(number)
        ended = []
        last = neon.Callback()
        last.end = ended.append
        with pytest.raises(error):
            model(make()).fit(
                batches(), 3, callbacks=[*others, kind(folder, every=100), Interrupt(3), last]
            )
        assert len(ended) == 1
        assert [path.name for path in folder.iterdir()] == ["interrupted.safetensors"]


def test_all_callbacks_end_and_the_first_error_is_raised(make):
    ended = []

    class Ends(neon.Callback):
        def end(self, run):
            ended.append(run.epoch)

    with pytest.raises(OSError, match="first"):
        model(make()).fit(
            batches(), 1, callbacks=[Fails(OSError("first")), Fails(ValueError("second")), Ends()]
        )
    assert ended == [1]

    class Breaks(neon.Callback):
        def after_batch(self, run):
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle") as caught:
        model(make()).fit(batches(), 1, callbacks=[Fails(OSError("last")), Breaks(), Ends()])
    assert caught.value.__notes__ == ["at the end of training: OSError: last"]
    assert ended == [1, 0]


def test_fit_again_goes_on(make):
    once, twice = model(make()), model(make())
    once.fit(batches(), 3)
    twice.fit(batches(), 1)
    twice.fit(batches(), 3)
    same(once.transformer, twice.transformer)


def test_a_checkpoint_predicts_without_its_optimiser(make, tmp_path):
    trained = model(make())
    trained.fit(batches(), 2)
    trained.save(tmp_path / "run")
    other = model(make(), None)
    other.restore(tmp_path / "run")
    points = examples()[0]
    np.testing.assert_array_equal(other.predict(points), trained.predict(points))
    assert not [name for name in other.transformer.values() if name.startswith("optimiser")]


def test_restore_goes_by_names(transformer, tmp_path):
    x, t = geon.placeholder([N, C]), geon.placeholder([N], "int64")
    nameless = neon.Model(
        neon.Affine(Y, 0.0), x, t, neon.costs.cross_entropy, transformer=transformer
    )
    nameless.save(tmp_path / "file")
    with pytest.raises(geon.ArgumentError, match="name="):
        nameless.restore(tmp_path / "file")


# Callbacks -----------------------------------------------------------------------------------


def test_history(make, tmp_path):
    path = tmp_path / "history.jsonl"
    saved = neon.Checkpoints(tmp_path)
    history = neon.History(path)
    model(make()).fit(batches(), 3, validation=VALIDATION, callbacks=[history, saved])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == history.records
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[0].keys() == {"epoch", "cost", "validation cost", "validation accuracy"}
    resume = tmp_path / "epoch-1.safetensors"
    again = neon.History(path)
    options = {"validation": VALIDATION, "resume": resume, "callbacks": [again, saved]}
    model(make()).fit(batches(), 3, **options)
    assert [json.loads(line) for line in path.read_text().splitlines()] == lines == again.records


def test_checkpoints_every_few_epochs_the_last_few_and_the_best(transformer, tmp_path):
    made = model(transformer)
    best = neon.Checkpoints(tmp_path / "a", every=2, keep=2, best="cost")
    made.fit(batches(), 7, callbacks=[best])
    found = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert found == ["best.safetensors", "epoch-4.safetensors", "epoch-6.safetensors"]
    with pytest.raises(geon.ArgumentError, match="there are 'cost'"):
        made.fit(batches(), 8, callbacks=[neon.Checkpoints(tmp_path / "b", best="accuracy")])


def test_the_last_few_checkpoints_are_those_of_all_runs(transformer, tmp_path):
    """Of other numbers that are kept, and of a run that broke off; other files stay."""
    made = model(transformer)
    (tmp_path / "epoch-of-mine.safetensors").write_text("")
    (tmp_path / "epoch-9.safetensors").write_text("")
    made.fit(batches(), 5, callbacks=[neon.Checkpoints(tmp_path, keep=3)])
    made.fit(batches(), 7, callbacks=[neon.Checkpoints(tmp_path, keep=1)])
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == [f"epoch-{k}.safetensors" for k in (7, 9, "of-mine")]


class Figures(neon.Callback):
    """Other figures in the place of those of the epochs."""

    def __init__(self, values):
        self.values = values

    def after_epoch(self, run):
        run.figures = {"f": self.values[run.epoch - 1]}


@pytest.mark.parametrize(
    ("values", "highest", "epochs"),
    [
        ([3, 2, 2.5, 2.2, 1, 0], False, 4),
        ([3, 2, 2.5, 1, 1, 1, 0], False, 6),
        ([1, 2, 3, 4], True, 4),
        ([4, float("nan"), 4, 5], True, 3),
    ],
)
def test_early_stopping(transformer, values, highest, epochs):
    stopping = neon.EarlyStopping("f", 2, highest=highest)
    run = model(transformer).fit(batches(), len(values), callbacks=[Figures(values), stopping])
    assert run.epoch == epochs
    assert (run.stop is None) == (epochs == len(values))


def test_what_early_stopping_has_counted_is_in_checkpoints(make, tmp_path):
    values = [3, 2, 2.5, 2.2, 1]

    def callbacks():
        stopping = neon.EarlyStopping("f", 2)
        return [neon.Checkpoints(tmp_path), Figures(values), stopping]

    model(make()).fit(batches(), 3, callbacks=callbacks())
    path = tmp_path / "epoch-3.safetensors"
    run = model(make()).fit(batches(), 5, resume=path, callbacks=callbacks())
    assert run.epoch == 4
    again = model(make()).fit(
        batches(), 5, resume=tmp_path / "epoch-4.safetensors", callbacks=callbacks()
    )
    assert again.epoch == 4 and again.stop is not None


def test_the_best_of_a_run_that_goes_on_is_that_of_all(make, tmp_path):
    def callbacks(values):
        return [Figures(values), neon.Checkpoints(tmp_path, best="f")]

    model(make()).fit(batches(), 1, callbacks=callbacks([1]))
    before = (tmp_path / "best.safetensors").read_bytes()
    path = tmp_path / "epoch-1.safetensors"
    model(make()).fit(batches(), 2, resume=path, callbacks=callbacks([1, 2]))
    assert (tmp_path / "best.safetensors").read_bytes() == before


def test_a_stop_at_what_is_not_finite(transformer, tmp_path):
    made = model(transformer)
    points, classes = examples()
    points[40, 2] = np.inf
    run = made.fit(neon.Batches(points, classes, size=16), 2, callbacks=[neon.StopOnNaN()])
    assert isinstance(run.error, geon.NonFiniteError)
    assert "test_training.py" in run.stop
    assert run.epoch == 0 and run.batch == 2
    assert all(np.isfinite(value).all() for value in transformer.values().values())


def test_the_first_op_that_made_what_is_not_finite_is_named(transformer):
    """All that comes after it is not finite either."""
    x = geon.placeholder([N, C], name="x")
    t = geon.placeholder([N, C], name="t")
    layer = neon.Sequential(
        [neon.Linear(C, neon.Identity()), lambda x: geon.log(x, name="culprit"), geon.exp],
        name="net",
    )
    cost = neon.costs.squared_error
    made = neon.Model(layer, x, t, cost, neon.SGD(0.1), transformer=transformer)
    points = np.ones((6, 4), "float32")
    points[4, 1] = -1  # in the third batch
    data = neon.Batches(points, points, size=2)
    run = made.fit(data, 2, callbacks=[neon.StopOnNaN()])
    assert run.batch == 2 and "culprit" in run.stop, run.stop


def test_an_error_raises_and_callbacks_are_told(transformer):
    ended = []

    class Ends(neon.Callback):
        def end(self, run):
            ended.append(run.error)

    def broken(epoch):
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        model(transformer).fit(neon.Stream(broken), 1, callbacks=[Ends()])
    assert isinstance(ended[0], OSError)


def test_progress(transformer, capsys):
    made = model(transformer)
    made.fit(batches(), 2, callbacks=[neon.Progress(disable=False, ascii=True)])
    shown = capsys.readouterr().err
    assert "epoch 1/2" in shown and "epoch 2/2" in shown and "4/4" in shown and "cost=" in shown


def test_progress_without_tqdm_says_how_to_get_it(transformer, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(geon.UnavailableError, match="pip install tqdm"):
        model(transformer).fit(batches(), 1, callbacks=[neon.Progress()])


@pytest.mark.parametrize(
    ("make_callback", "what"),
    [
        (lambda: neon.Checkpoints("x", every=0), "every=0"),
        (lambda: neon.Checkpoints("x", keep=0), "keep=0"),
        (lambda: neon.EarlyStopping(patience=0), "patience=0"),
    ],
    ids=["every", "keep", "patience"],
)
def test_counts_that_are_none_are_refused(make_callback, what):
    with pytest.raises(geon.ArgumentError, match=what):
        make_callback()


# Data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 0, 5])
@pytest.mark.parametrize(("size", "last"), [(7, "keep"), (7, "drop"), (10, "drop"), (100, "drop")])
def test_batches(seed, size, last):
    rows = np.arange(50)
    data = neon.Batches(rows, rows * 2, size=size, seed=seed, last=last)
    parts = list(data.epoch(3))
    assert len(parts) == len(data) == (-(-50 // size) if last == "keep" else 50 // size)
    assert all(np.array_equal(two, one * 2) for one, two in parts)
    seen = np.concatenate([one for one, _ in parts] or [rows[:0]])
    assert len(set(seen)) == len(seen) == (50 if last == "keep" else 50 // size * size)
    assert (seed is None) == np.array_equal(seen, rows[: len(seen)]) or not len(seen)
    for start in range(len(parts) + 1):
        rest = list(data.epoch(3, start))
        assert len(rest) == len(parts) - start
        assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(rest, parts[start:], strict=True))
    if seed is not None and len(seen):
        assert not np.array_equal(seen, np.concatenate([one for one, _ in data.epoch(4)]))


def test_memory_mapped_files_and_streams(make, tmp_path: Path):
    points, classes = examples()
    np.save(tmp_path / "points.npy", points)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    made = model(make())
    made.fit(neon.Batches(mapped, classes, size=16, seed=3), 2)
    other = model(make())
    other.fit(neon.Stream(lambda epoch: batches().epoch(epoch)), 2)
    for one, two in zip(made.layer.all_variables(), other.layer.all_variables(), strict=True):
        np.testing.assert_array_equal(made.transformer.get(one), other.transformer.get(two))


def test_data_that_are_none_are_refused():
    rows = np.arange(5)
    for arrays, options, what in (
        ((rows, rows[1:]), {"size": 2}, "lengths"),
        ((), {"size": 2}, "lengths"),
        ((rows,), {"size": 0}, "size=0"),
        ((rows,), {"size": 2, "last": "pad"}, "'keep' or 'drop'"),
    ):
        with pytest.raises(geon.ArgumentError, match=what):
            neon.Batches(*arrays, **options)


def test_two_figures_of_one_name_are_refused(transformer):
    net, x = neon.Affine(Y, 0.0), geon.placeholder([N, C], name="x")
    t, cost = geon.placeholder([N], "int64", name="t"), neon.costs.cross_entropy
    top = neon.metrics.TopK
    made = neon.Model(net, x, t, cost, metrics=[top(1), top(2, name="top 2")])
    assert made.evaluate(VALIDATION).keys() == {"cost", "top_k", "top 2"}
    for metrics in ([top(1), top(2)], [neon.metrics.Mean(cost)]):
        with pytest.raises(geon.ArgumentError, match=r"name='(top_k|cost)'.*another name="):
            neon.Model(net, x, t, cost, metrics=metrics)
    with pytest.raises(geon.ArgumentError, match=r"Accuracy.*is no metric; give one"):
        neon.Model(net, x, t, cost, metrics=[neon.metrics.Accuracy])


def test_each_callback_keeps_its_own_best(transformer, tmp_path):
    made = model(transformer)
    folders = [tmp_path / "cost", tmp_path / "accuracy"]
    made.fit(
        batches(),
        3,
        validation=VALIDATION,
        callbacks=[
            neon.Checkpoints(folders[0], best="validation cost"),
            neon.Checkpoints(folders[1], best="validation accuracy", highest=True),
            neon.EarlyStopping("validation cost"),
            neon.EarlyStopping("validation accuracy", highest=True),
            neon.Checkpoints(tmp_path / "all"),
        ],
    )
    assert all((folder / "best.safetensors").exists() for folder in folders)
    values = transformer.values()
    assert 0 < values["fit.checkpoints.validation accuracy.best"] <= 1
    assert values["fit.early_stopping.validation accuracy.waited"] < 3
    twice = [neon.Checkpoints(folder, best="cost") for folder in folders]
    with pytest.raises(
        geon.ArgumentError, match=r"Checkpoints.*Checkpoints.*'checkpoints.cost.best'"
    ):
        made.fit(batches(), 4, callbacks=twice)


def test_a_step_by_hand_is_a_batch_of_the_epoch(make):
    whole, parts = model(make()), model(make())
    whole.fit(batches(), 1)
    first, second, *_ = batches().epoch(0)
    for batch in (first, second):
        parts.step()(*batch)
    assert parts.fit(batches(), 1).steps == 2
    same(whole.transformer, parts.transformer)


@pytest.mark.parametrize("wrong", [neon.History(), [neon.History], [print], None])
def test_what_are_no_callbacks_is_refused(wrong):
    with pytest.raises(geon.ArgumentError, match=placed(r"fit: callbacks=.*\[neon.History\(\)\]")):
        model(geon.NumPyTransformer()).fit(batches(), 1, callbacks=wrong)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"epochs": -1}, "epochs=-1"),
        ({"epochs": 1.5}, "epochs=1.5"),
        ({"epochs": None}, "epochs=None"),
        ({"epochs": 1, "steps": 0}, "steps=0"),
    ],
)
def test_counts_of_fit_that_are_none_are_refused(options, what):
    with pytest.raises(geon.ArgumentError, match=placed(f"fit: {what}; give an integer")):
        model(geon.NumPyTransformer()).fit(batches(), **options)


@pytest.mark.parametrize("steps", [1, 3, 4, 5])
def test_a_limit_of_steps_ends_anywhere_and_the_next_call_goes_on(make, steps):
    whole, parts = model(make()), model(make())
    end = whole.fit(batches(), 2)
    assert end.steps == 8 and end.stop is None
    made = []
    while not made or made[-1].epoch < 2:
        made.append(parts.fit(batches(), 2, steps=steps))
        assert made[-1].steps <= steps
    assert [run.steps for run in made[:-1]] == [steps] * (len(made) - 1)
    assert made[0].stop == f"{steps} steps were made" and made[-1].stop is None
    assert made[-1].figures == end.figures
    same(whole.transformer, parts.transformer)


@pytest.mark.parametrize("rate", [neon.Averaged(neon.Adam(0.1)), None])
def test_a_model_is_saved_before_its_first_step(make, tmp_path, rate):
    made, path = model(make(), rate), tmp_path / "first"
    made.save(path)
    used = model(make(), None)
    used.restore(path)
    np.testing.assert_array_equal(used.predict(examples()[0]), made.predict(examples()[0]))
    if rate is not None:
        other = model(make(), neon.Averaged(neon.Adam(0.1)))
        other.fit(batches(), 1, resume=path)
        made.fit(batches(), 1)
        same(made.transformer, other.transformer)


T = ax.T


def masked(transformer, form):
    """A model over lines of various lengths, whose mask is given in one of three ways."""
    x, t = geon.placeholder([N, T, C], name="x"), geon.placeholder([N, T], "int64", name="t")
    net = neon.Affine(Y, neon.Glorot(geon.Random(0)), name="net")
    known, inputs = geon.placeholder([N, T], "bool", name="mask"), [x]
    if form == "computed":
        known = x[{"C": 0}] < 50
    elif form == "input":
        net, inputs = Marked(net), [x, known]
    metrics = [neon.metrics.Accuracy(), neon.metrics.F1(), neon.metrics.Perplexity()]
    cost, adam = neon.costs.cross_entropy, neon.Adam(0.1)
    return neon.Model(net, inputs, t, cost, adam, metrics, mask=known, transformer=transformer)


class Marked(neon.Layer):
    """A layer that is given a mask too."""

    def __init__(self, inner):
        super().__init__("marked")
        self.inner = inner

    def forward(self, x, mask, training=None):
        return self.inner(geon.where(mask, x, 0), training=training)


@pytest.mark.parametrize("form", ["placeholder", "input", "computed"])
def test_what_a_mask_leaves_out_is_in_no_figure_and_no_slope(make, form):
    random = np.random.default_rng(0)
    lengths = random.integers(0, 7, 20)
    data = [(random.normal(size=(n, 4)), random.integers(0, 3, n)) for n in lengths]
    points, classes = (list(column) for column in zip(*data, strict=True))
    given = []
    for pad in (99.0, 77.0):
        for x, mask, t in neon.Buckets(points, classes, size=20, pad=pad).epoch(0):
            given.append((x, t) if form == "computed" else (x, mask, t))
    flat = [np.concatenate(column)[None] for column in (points, classes)]
    every = np.ones(flat[1].shape, bool)
    whole = (flat[0], flat[1]) if form == "computed" else (flat[0], every, flat[1])
    found = []
    for batch in (*given, whole):
        batch = (*batch[:-1], np.minimum(batch[-1], 2))  # classes that are none would raise
        made = masked(make(), form)
        run = made.fit([batch], 2)
        found.append([run.cost, *run.figures.values(), *made.evaluate([batch]).values()])
    np.testing.assert_allclose(found, [found[-1]] * 3, rtol=1e-5)


def test_a_batch_of_which_nothing_counts_changes_no_weight(transformer):
    made = masked(transformer, "placeholder")
    nothing = np.ones((2, 3, 4)), np.zeros((2, 3), bool), np.zeros((2, 3), int)
    made.predict(nothing[0])
    before = transformer.get("net.w")
    run = made.fit([nothing], 1)
    assert run.cost == 0 and np.isnan(run.figures["cost"])
    np.testing.assert_array_equal(transformer.get("net.w"), before)


def test_masks_that_do_not_fit_are_refused():
    x, t = geon.placeholder([N, T, C], name="x"), geon.placeholder([N, T], "int64", name="t")
    for mask, error, what in [
        (geon.placeholder([N, T], name="mask"), geon.DTypeError, "float32; give truth values"),
        (geon.placeholder([C], "bool", name="mask"), geon.AxisError, "is over other axes"),
    ]:
        made = neon.Model(
            neon.Affine(Y, 0.0), x, t, neon.costs.cross_entropy, neon.SGD(1), mask=mask
        )
        with pytest.raises(error, match=rf"mask.*test_training.py:\d+.*{what}"):
            made.step()
        with pytest.raises(error, match=what):
            made.evaluate([])


@pytest.mark.parametrize("masks", [False, True])
def test_a_stop_at_nan_lets_masks_and_padded_maxima_pass(transformer, masks):
    E, random = geon.Axis("E", 4), geon.Random(0)
    heads, key = geon.Axis("head", 2), geon.Axis("key", 2)
    seeing = neon.MultiHeadAttention(heads, key, E, neon.Glorot(random), causal=True)
    pooled = neon.Pooling({T: geon.Window(3, stride=2, pad=1)})
    net = neon.Sequential([seeing if masks else pooled, neon.Affine(Y, neon.Glorot(random))])
    x, t = geon.placeholder([N, T, E], name="x"), geon.placeholder([N], "int64", name="t")

    def cost(scores, t):
        return neon.costs.cross_entropy(geon.mean(scores, T), t)

    made = neon.Model(net, x, t, cost, neon.SGD(0.1), transformer=transformer)
    data = np.random.default_rng(0).normal(size=(6, 5, 4)), np.arange(6) % 3
    run = made.fit([data], 2, callbacks=[neon.StopOnNaN()])
    assert run.error is None and run.epoch == 2
