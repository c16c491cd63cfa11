"""``python -m geon``: ``doctor`` says what can be used here, ``replay`` computes a dump again."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import geon
from geon import __main__ as command
from geon.transformers.loading import registry
from geon.transformers.loading.registry import transformer_class
from geon.transformers.native.runtime import fast_call
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.testing.wrong import WrongRow


class Elsewhere(WrongRow):
    """A transformer that needs what this machine lacks."""

    @classmethod
    def unavailable(cls):
        return "there is no compiler: pip install geon[native]"


@pytest.fixture
def found(monkeypatch):
    """The transformers that ``doctor`` finds beside NumPy's, by name: where each is."""
    extra = {}
    monkeypatch.setattr(registry, "BUILT_IN", {**registry.BUILT_IN, **extra})
    monkeypatch.setattr(registry, "transformer_names", lambda: {**registry.BUILT_IN, **extra})
    return extra


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "geon", *arguments], capture_output=True, text=True
    )


def test_doctor_in_a_process():
    done = run("doctor")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"geon {geon.__version__}"
    assert any(line.split() == ["ok", "numpy", "usable"] for line in lines)
    (line,) = (line for line in lines if line.split()[1] == "pycuda")
    missing = transformer_class("pycuda").unavailable()
    assert line.split()[0] == ("ok" if missing is None else "--")
    assert missing is None or line.endswith(missing)
    (line,) = (line for line in lines if line.split()[1] == "native")
    missing = transformer_class("native").unavailable()
    assert line.split()[0] == ("ok" if missing is None else "--")


def test_doctor_names_the_compiler_and_those_that_were_passed_over(capsys, monkeypatch):
    found = find_toolchain()
    assert command.main(["doctor"]) == 0
    line = "" if found is None else f"C compiler  {' '.join(found.command)}: {found.version}\n"
    assert line in capsys.readouterr().out
    monkeypatch.setenv("CC", "nope")
    assert command.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "--  C compiler  not nope: no such program" in out
    assert ("ok  C compiler" in out) == (found is not None)


def test_doctor_gives_the_cure(found, capsys):
    found["elsewhere"] = "tests.test_main:Elsewhere"
    assert command.main(["doctor"]) == 0
    assert (
        "--  elsewhere  there is no compiler: pip install geon[native]" in capsys.readouterr().out
    )


def test_doctor_says_that_calls_could_be_shorter(found, capsys, monkeypatch):
    monkeypatch.setattr(fast_call, "extension", lambda: object())
    assert command.main(["doctor"]) == 0
    assert "microseconds" not in capsys.readouterr().out
    monkeypatch.setattr(fast_call, "extension", lambda: None)
    assert command.main(["doctor"]) == 0
    assert "some microseconds more: have a C compiler" in capsys.readouterr().out


def test_doctor_survives_a_package_that_does_not_load(found, capsys):
    found["broken"] = "tests.nowhere:Broken"
    found["wrong"] = "tests.testing.wrong:WrongRow"
    assert command.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "--  broken  does not load: No module named 'tests.nowhere'" in out
    assert "ok  wrong   usable" in out


def test_doctor_fails_where_nothing_is_usable(monkeypatch, capsys):
    elsewhere = {"numpy": "tests.test_main:Elsewhere"}
    monkeypatch.setattr(registry, "BUILT_IN", elsewhere)
    monkeypatch.setattr(registry, "transformer_names", lambda: elsewhere)
    assert command.main(["doctor"]) == 1


def test_doctor_finds_the_entry_points_of_packages(monkeypatch, capsys):
    point = EntryPoint("theirs", "tests.testing.wrong:WrongRow", registry.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    assert command.main(["doctor"]) == 0
    assert "ok  theirs  usable" in capsys.readouterr().out


def test_replay_in_a_process(tmp_path):
    x = geon.placeholder([geon.Axis("N")], name="x")
    file = tmp_path / "case.geon"
    file.write_text(geon.NumPyTransformer().computation(x * 2, x).dumps([1, 2, 3]))
    done = run("replay", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[2. 4. 6.]") == 2 and done.stdout.endswith("no difference\n")
    done = run("replay", str(file), "--transformer", "nowhere")
    assert done.returncode == 2 and "there is no transformer 'nowhere'" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["replay"]])
def test_what_is_not_a_command_prints_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m geon" in capsys.readouterr().err
