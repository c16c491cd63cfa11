"""A computation that was dumped is computed again by ``python -m geon replay``."""

import subprocess
import sys

import numpy as np
import pytest

import geon
from geon import replay
from geon.transformers.loading import registry
from tests.places import here

N, M, C = geon.Axis("N"), geon.Axis("M"), geon.Axis("C", 3)
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3) / 10


@pytest.fixture
def model(transformer):
    """A computation with a variable, an update, a draw, a guard and an unused placeholder."""
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable(axes=[C], initial_value=geon.Random(1).normal([C]), name="w")
    y = geon.softmax(geon.tanh(x * w), normalization_axes=C)
    noise = geon.Random(2, name="noise").normal([M])
    update = geon.assign(w, w - geon.sum(y[0:2], N))
    unused = geon.placeholder((), name="unused")
    results = [y, update, noise, geon.tensor_size(noise)]
    f = transformer.computation(results, x, unused, lengths={M: 4})
    f.w, f.line = w, here(-6)
    return f


@pytest.fixture
def dumped(tmp_path):
    """A function that writes a text to a file and gives its path."""

    def write(text):
        path = tmp_path / "case.geon"
        path.write_text(text)
        return str(path)

    return write


def test_the_circle(model, dumped, transformer_name):
    model(ARRAY, 0)
    before = model.transformer.get(model.w)
    path = dumped(model.dumps(ARRAY, unused=1))
    np.testing.assert_array_equal(model.transformer.get(model.w), before)
    command = [sys.executable, "-m", "geon", "replay", path, "--transformer", transformer_name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    y, _, noise, _ = model(ARRAY, 0)
    for value in (y, noise, model.transformer.get(model.w)):
        shown = done.stdout.count(np.array2string(value))
        assert shown == 2 if transformer_name == "numpy" else shown >= 1  # the interpreter rounds
    assert model.line in done.stdout and done.stdout.endswith("no difference\n")


def test_a_difference_is_shown(model, dumped, capsys, monkeypatch):
    monkeypatch.setitem(registry.BUILT_IN, "wrong", "tests.testing.wrong:WrongRow")
    assert replay.main(dumped(model.dumps(ARRAY, 0)), "wrong") == 1
    out = capsys.readouterr().out
    assert "wrong row and the naive interpreter part at tanh(N, C:3)" in out
    assert "no difference" not in out


def test_a_difference_of_results_alone_is_shown(model, dumped, capsys, monkeypatch, make):
    monkeypatch.setattr(replay, "first_difference", lambda *_: None)
    monkeypatch.setitem(registry.BUILT_IN, "wrong", "tests.testing.wrong:WrongMemory")
    x = geon.placeholder([C])
    f = make().computation(geon.sum(geon.tanh(x)), x)
    assert replay.main(dumped(f.dumps(np.arange(3))), "wrong") == 1
    assert "the results differ" in capsys.readouterr().out


def test_the_same_error_is_no_difference(dumped, capsys, make):
    x, at = geon.placeholder([C]), geon.placeholder([M], "int64")
    f = make().computation(geon.gather(x, at, C), x, at)
    assert replay.main(dumped(f.dumps(np.zeros(3), [0, 7]))) == 0
    out = capsys.readouterr().out
    assert out.count("raised IndexRangeError") == 2 and "both raise the same error" in out


def test_a_dump_without_values_says_how_to_write_them(dumped, capsys):
    x = geon.placeholder([C], name="x")
    assert replay.main(dumped(geon.dumps(x + 1))) == 2
    error = capsys.readouterr().err
    assert "no value of x(C:3)" in error and error.count("\n") == 1


def test_feeds_and_lengths_by_geon_dumps(dumped, capsys):
    x = geon.placeholder([N])
    y = x + geon.cast(geon.iota(N), "float32") * geon.tensor_size(x)
    text = geon.dumps(y, feeds={x: np.ones(3, np.float32)}, lengths={N: 3})
    assert replay.main(dumped(text)) == 0
    assert "[1. 4. 7.]" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff\xfe\x00", b'{"geon": "graph"}\n'])
def test_what_is_no_dump_is_said_in_one_line(tmp_path, content, capsys):
    path = tmp_path / "case.geon"
    path.write_bytes(content)
    assert replay.main(str(path)) == 2
    out = capsys.readouterr()
    assert out.out == "" and out.err.count("\n") == 1 and out.err.startswith(str(path))


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert replay.main(str(tmp_path / "none")) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_transformer_that_is_not_there(model, dumped, capsys):
    assert replay.main(dumped(model.dumps(ARRAY, 0)), "nowhere") == 2
    assert "nowhere" in capsys.readouterr().err


def test_dumps_takes_what_a_call_takes(model):
    with pytest.raises(geon.ArgumentError):
        model.dumps(ARRAY)
    with pytest.raises(geon.FeedError):
        model.dumps(ARRAY[:, :2], 0)
    with pytest.raises(geon.GuardError):
        model.dumps(ARRAY[:1], 0)
