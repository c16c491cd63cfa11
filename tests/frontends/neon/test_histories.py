"""Callbacks that keep figures: JSON and HDF5 files, TensorBoard's, pictures, and times."""

import json
import struct
import sys
import time

import numpy as np
import pytest

import geon
from geon.frontends import neon

from .test_averaged_model import everything
from .test_training import VALIDATION, Figures, Interrupt, batches, model, same

h5py = pytest.importorskip("h5py")
pytest.importorskip("tensorboardX")


def columns(path):
    """The data sets of a file, by name."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, part: found.update({name: part[()]} if hasattr(part, "shape") else {})
        )
    return found


def events(folder):
    """What event files hold, the oldest first: (step, name, value), and purges as (step, None)."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            if event.session_log.status == SessionLog.START:
                found.append((event.step, None, None))
            found += [(event.step, v.tag, v.simple_value) for v in event.summary.value]
    return found


def test_hdf5_history(make, tmp_path):
    path = tmp_path / "history.h5"
    history, lines = neon.HDF5History(path), neon.History()
    model(make()).fit(batches(), 3, validation=VALIDATION, callbacks=[history, lines])
    found = columns(path)
    assert found.keys() == {"epoch", "cost", "validation cost", "validation accuracy"}
    assert found["epoch"].dtype == "int64" and found["cost"].dtype == "float64"
    assert found["epoch"].tolist() == [1, 2, 3]
    assert found["cost"].tolist() == [record["cost"] for record in lines.records]
    assert history.records == lines.records


@pytest.mark.parametrize("end", ['{"epoch": 2, "co', "\n", '"epoch"', "[1]\n"])
def test_a_last_line_that_was_torn_is_taken_out(make, tmp_path, end):
    path = tmp_path / "history"
    saved = neon.Checkpoints(tmp_path)
    model(make()).fit(batches(), 3, callbacks=[neon.History(path), saved])
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:1]) + end)
    resume = tmp_path / "epoch-1.safetensors"
    model(make()).fit(batches(), 3, resume=resume, callbacks=[neon.History(path), saved])
    assert path.read_text() == whole and not path.with_name("history.new").exists()


def test_files_of_something_else_are_refused(make, tmp_path):
    path = tmp_path / "text"
    for content in ('no record\n{"epoch": 1}\n', "[]\n{}\n"):
        path.write_text(content)
        with pytest.raises(geon.ArgumentError, match="line 1 of .*text is no record"):
            model(make()).fit(batches(), 1, callbacks=[neon.History(path)])
        assert path.read_text() == content
    with pytest.raises(geon.ArgumentError, match="text is no file of HDF5"):
        model(make()).fit(batches(), 1, callbacks=[neon.HDF5History(path)])


def test_figures_that_come_later_or_are_not_finite_or_have_a_slash(transformer, tmp_path):
    class Others(neon.Callback):
        def after_epoch(self, run):
            later = {"r/s": 0.5} if run.epoch > 1 else {}
            run.figures = {"a": float("inf") if run.epoch == 2 else run.epoch, **later}

    path = tmp_path / "history.h5"
    made = model(transformer)
    made.fit(batches(), 2, callbacks=[Others(), neon.HDF5History(path)])
    made.fit(batches(), 3, callbacks=[Others(), neon.HDF5History(path)])
    found = columns(path)
    np.testing.assert_array_equal(found["a"], [1, np.inf, 3])
    np.testing.assert_array_equal(found["r/s"], [np.nan, 0.5, 0.5])


def test_tensorboard(make, tmp_path):
    lines = neon.History()
    made = model(make())
    made.fit(batches(), 2, validation=VALIDATION, callbacks=[lines, neon.TensorBoard(tmp_path)])
    wanted = [
        (record["epoch"], name.replace(" ", "/"), pytest.approx(value))
        for record in lines.records
        for name, value in record.items()
        if name != "epoch"
    ]
    assert events(tmp_path) == wanted
    assert "validation/cost" in {name for _, name, _ in wanted}


def test_runs_within_a_second_have_event_files_of_their_own(transformer, tmp_path):
    made = model(transformer)
    for epochs in (1, 2, 3):
        made.fit(batches(), epochs, callbacks=[neon.TensorBoard(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 3
    assert [step for step, name, _ in events(tmp_path) if name is not None] == [1, 2, 3]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_curves(transformer, tmp_path, suffix, epochs):
    history, path = neon.History(), tmp_path / f"curves{suffix}"
    callbacks = [neon.Curves(history, path), history]
    model(transformer).fit(batches(), epochs, validation=VALIDATION, callbacks=callbacks)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG") if suffix == ".png" else b"<svg" in content


def test_curves_of_figures_that_have_no_logarithm(transformer, tmp_path):
    history = neon.History(tmp_path / "history")
    values = [-1.0, float("nan"), float("inf")]
    callbacks = [Figures(values), history, neon.Curves(history, tmp_path / "curves.png")]
    model(transformer).fit(batches(), 3, callbacks=callbacks)
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert [json.loads(s)["f"] for s in history.path.read_text().splitlines()] == [-1, "nan", "inf"]


def test_timing(transformer):
    class Slow(neon.Callback):
        def after_batch(self, run):
            time.sleep(0.02)

        def after_epoch(self, run):
            time.sleep(0.05)

    timing = neon.Timing()
    made = model(transformer)
    made.fit(batches(), 2, callbacks=[Slow(), timing])
    assert [(record["epoch"], record["batches"]) for record in timing.records] == [(1, 4), (2, 4)]
    for record in timing.records:
        assert record["batch"] >= 0.02 and record["seconds"] >= 4 * 0.02 + 0.05
    # An epoch of which only the end is left, no batch: 4 batches were done in a call before.
    made.fit(batches(), 3, steps=4)
    made.fit(batches(), 3, callbacks=[timing])
    assert [record["epoch"] for record in timing.records] == [1, 2, 3]
    assert np.isnan(timing.records[-1]["batch"])


@pytest.mark.parametrize(
    ("module", "package", "make_callback"),
    [
        ("h5py", "h5py", lambda: neon.HDF5History("x")),
        ("tensorboardX", "tensorboardX", lambda: neon.TensorBoard("x")),
        ("matplotlib.figure", "matplotlib", lambda: neon.Curves(neon.History(), "x.png")),
    ],
    ids=["hdf5", "tensorboard", "curves"],
)
def test_a_package_that_is_missing_is_told_before_training(
    monkeypatch, module, package, make_callback
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(geon.UnavailableError, match=f"pip install {package}"):
        make_callback()


@pytest.mark.parametrize("count", [3, 5, 10])
def test_a_run_that_goes_on_has_the_files_of_an_unbroken_one(make, tmp_path, count):
    """All callbacks and all that goes around optimisers at once, bit for bit."""

    def fit(folder, more=(), **options):
        history = neon.History(folder / "history")
        callbacks = [
            *more,
            history,
            neon.HDF5History(folder / "history.h5"),
            neon.TensorBoard(folder / "events"),
            neon.Curves(history, folder / "curves.png"),
            neon.Timing(),
            neon.EarlyStopping(patience=9),
            neon.Checkpoints(folder, every=2, keep=1, best="validation cost"),
        ]
        made = model(make(), everything())
        options = {"validation": VALIDATION, "averaged": True} | options
        run = made.fit(batches(), 4, callbacks=callbacks, **options)
        return made.transformer, run

    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir(), other.mkdir()
    whole, unbroken = fit(one)
    _, broken = fit(other, [Interrupt(count)])
    assert broken.interrupted
    rest, resumed = fit(other, resume=other / "interrupted.safetensors")
    assert resumed.figures == unbroken.figures
    same(whole, rest)
    for name in ("history", "best.safetensors", "epoch-4.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    first, second = columns(one / "history.h5"), columns(other / "history.h5")
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    shown = [event for event in events(other / "events") if event[1] is not None]
    assert shown == events(one / "events")
    purges = [step for step, name, _ in events(other / "events") if name is None]
    assert purges == ([] if count < 4 else [count // 4 + 1])
