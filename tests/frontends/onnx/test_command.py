"""``python -m geon onnx``: the report of a model, and its measurement beside ONNX Runtime."""

import importlib.util

import pytest

from geon import __main__ as command
from geon.frontends.onnx import comparing
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.frontends.onnx.test_damaged import network


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(network().SerializeToString())
    return str(path)


def test_a_model_is_reported(file, capsys):
    assert command.main(["onnx", file, "--lengths", "N=2", "--transformer", "numpy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "network.onnx: ai.onnx 17"
    assert lines[1].startswith("input      x (N, ") and lines[1].endswith(":12) float32")
    assert lines[2].startswith("output     y (N, ")
    assert "Conv 1" in lines[3] and "Softmax 1, Tanh 1" in lines[3]
    assert lines[4].startswith(f"parameters {4 * 27 + 4 + 144 * 5 + 1} in 4 variables")
    assert lines[5].startswith("peak ") and lines[5].endswith(" with N=2")
    assert len(lines) == 6  # NumPy has no kernels to predict


@pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
def test_it_is_timed_beside_onnx_runtime(file, capsys, monkeypatch):
    monkeypatch.setattr(comparing, "TURNS", 1)
    monkeypatch.setattr(comparing, "SECONDS", 0.01)
    assert command.main(["onnx", file, "--threads", "1", "--bench"]) == 0
    *_, predicted, bench, difference = capsys.readouterr().out.splitlines()
    assert predicted.startswith("predicted ") and predicted.endswith(" ms a call with N=1")
    assert bench.startswith("bench      geon ") and " ms, ratio " in bench
    assert float(difference.split()[1]) < 1e-5


def test_without_onnx_runtime_it_says_how_to_install_it(file, capsys, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else real(name)
    )
    assert command.main(["onnx", file, "--transformer", "numpy", "--bench"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("pip install onnxruntime")


@pytest.mark.parametrize(
    "arguments, text",
    [(["--lengths", "Q=2"], "--lengths Q=2: give NAME=LENGTH; the open axes are N"),
     (["--lengths", "N=x"], "--lengths N=x: give NAME=LENGTH"),
     (["--lengths", "N=2", "N=3"], "N is there twice; give it once")],
)  # fmt: skip
def test_wrong_lengths_are_refused(file, capsys, arguments, text):
    assert command.main(["onnx", file, *arguments, "--transformer", "numpy"]) == 1
    assert text in capsys.readouterr().out


def test_a_file_that_is_no_model_is_refused(tmp_path, capsys):
    path = tmp_path / "no.onnx"
    path.write_bytes(b"no model")
    assert command.main(["onnx", str(path)]) == 1
    assert "no.onnx" in capsys.readouterr().out
    assert command.main(["onnx", str(tmp_path / "gone.onnx")]) == 1
    assert "gone.onnx cannot be read" in capsys.readouterr().out
