"""What is said while compiling takes long: where, how, and nothing on standard output."""

import io
import logging
import os
import pty
import subprocess
import sys
import termios
import textwrap
import time
import types

import pytest

from geon.errors import DeviceError, UnavailableError
from geon.transformers.cache import disk
from geon.transformers.loading import compiling, progress
from geon.transformers.native.toolchain import compilers, shared_objects
from geon.transformers.pycuda.runtime import nvrtc

if compilers.find_toolchain() is None:
    pytest.skip(compilers.missing_compiler(), allow_module_level=True)

TOOLS = compilers.find_toolchain()
UNITS = [f"int f{n}(void) {{ return {n}; }}\n" for n in range(4)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def slowly(tmp_path, monkeypatch):
    """Each unit takes 0.3 s, and compiling is long from 0.1 s on."""
    real = shared_objects.run_compiler

    def slow(command, arguments, text=None):
        if text is not None:
            time.sleep(0.3)
        return real(command, arguments, text)

    monkeypatch.setenv(disk.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_checked", {})
    monkeypatch.setattr(shared_objects, "run_compiler", slow)
    monkeypatch.setattr(compiling, "available", lambda: 1)
    monkeypatch.setattr(progress, "REPORT_INTERVAL_SECONDS", 0.1)


@pytest.fixture
def on_terminal(monkeypatch):
    """What makes standard error a terminal; called by the test, since pytest sets it before."""

    def begin():
        made = Terminal()
        monkeypatch.setattr(sys, "stderr", made)
        return made

    return begin


def frames(written):
    """What a terminal showed, one after the other."""
    return [text.strip() for text in written.getvalue().split("\r") if text.strip()]


def counts(lines):
    """How many units each line says are done; each says how many there are to do."""
    found = [line.split("compiling: ")[1].split(" units")[0].split(" of ") for line in lines]
    assert {total for _, total in found} == {str(len(UNITS))}
    return [int(done) for done, _ in found]


def test_a_bar_in_a_terminal(on_terminal, capsys):
    terminal = on_terminal()
    pytest.importorskip("tqdm.auto")
    shared_objects.shared_object(TOOLS, UNITS)
    shown = frames(terminal)
    assert counts(shown) == sorted(counts(shown))
    assert {0, 1, 2, 3} <= set(counts(shown)) and all(line.endswith("|") for line in shown)
    assert terminal.getvalue().endswith("\r")  # it is gone
    assert capsys.readouterr().out == ""


def test_a_line_in_a_terminal_without_tqdm(on_terminal, monkeypatch, capsys):
    terminal = on_terminal()
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    shared_objects.shared_object(TOOLS, UNITS)
    assert counts(frames(terminal)) == [0, 1, 2, 3, 4]
    assert "\n" not in terminal.getvalue() and terminal.getvalue().endswith("\r")
    assert capsys.readouterr().out == ""


def test_a_line_of_the_log_elsewhere(caplog, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with caplog.at_level(logging.INFO, "geon"):
        shared_objects.shared_object(TOOLS, UNITS)
    said = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} == {"geon"}
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    assert counts(said) == [0, 1, 2, 3, 4]
    assert sys.stderr.getvalue() == "" and capsys.readouterr().out == ""


def test_lines_of_the_log_are_apart(caplog, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(progress, "REPORT_INTERVAL_SECONDS", 0.5)
    with caplog.at_level(logging.INFO, "geon"):
        shared_objects.shared_object(TOOLS, UNITS)
    assert 1 <= len(caplog.records) <= 3


def test_a_single_unit(on_terminal):
    terminal = on_terminal()
    shared_objects.shared_object(TOOLS, UNITS[:1])
    assert "compiling: 0 of 1 units" in terminal.getvalue()


def test_compilers_of_devices_show_the_same(on_terminal, monkeypatch):
    begun = []

    def slow(source, architecture):
        begun.append(source)
        time.sleep(0.2)
        if source == "no text":
            raise DeviceError("it does not compile")
        return f"{source} for {architecture}".encode()

    monkeypatch.setattr(nvrtc, "compile_cubin", slow)
    terminal = on_terminal()
    sources = [f"text {n}" for n in range(len(UNITS))]
    made = nvrtc.compiled_together(sources, "sm_90")
    assert made == [f"{source} for sm_90".encode() for source in sources] and begun == sources
    assert counts(frames(terminal))[0] == 0 and counts(frames(terminal))[-1] >= len(UNITS) - 1
    with pytest.raises(DeviceError, match="does not compile"):
        nvrtc.compiled_together(["no text", *["another"] * 9], "sm_90")
    assert begun.count("another") < 9
    assert nvrtc.compiled_together([], "sm_90") == []


def test_what_takes_less_says_nothing(on_terminal, caplog, capsys, monkeypatch):
    terminal = on_terminal()
    monkeypatch.setattr(progress, "REPORT_INTERVAL_SECONDS", 60)
    with caplog.at_level(logging.INFO, "geon"):
        shared_objects.shared_object(TOOLS, UNITS)
        shared_objects.shared_object(TOOLS, UNITS)
    assert not terminal.getvalue() and not caplog.records and capsys.readouterr().out == ""


def test_a_failure_takes_the_bar_away(on_terminal):
    terminal = on_terminal()
    with pytest.raises(UnavailableError, match="could not compile"):
        shared_objects.shared_object(TOOLS, [*UNITS, "no C"])
    assert "compiling: " in terminal.getvalue() and terminal.getvalue().endswith("\r")


def test_a_terminal_that_went_away_stops_nothing(monkeypatch):
    class Gone(Terminal):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", Gone())
    assert shared_objects.shared_object(TOOLS, UNITS).exists()


def test_a_notebook_is_known_by_its_kernel(monkeypatch):
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert progress.in_notebook()
    shell.config = {}
    assert not progress.in_notebook()
    ipython.get_ipython = lambda: None
    assert not progress.in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not progress.in_notebook()


# With a compiler that is slow ---------------------------------------------------------------------

COMPILER = """#!/bin/sh
# Slow from when the file beside it is there: what only looks at the compiler is not.
[ -e "$0.slow" ] && sleep 2.5
exec {compiler} "$@"
"""
PROGRAM = """
import logging, os, sys, types
from pathlib import Path
{before}
import numpy as np
import geon
from geon.transformers.native.machine.threads import load_pool

transformer = geon.make_transformer("native")
load_pool()
Path(os.environ["CC"] + ".slow").touch()
x = geon.placeholder(geon.Axis("N"))
print(transformer.computation(geon.tanh(x), x)([0.0]))
"""
NOTEBOOK = """
shell = types.SimpleNamespace(config={"IPKernelApp": {}}, kernel=None)
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: shell
"""
LOGGED = 'logging.basicConfig(level="INFO", format="%(name)s %(levelname)s %(message)s")'


def compiled_slowly(tmp_path, before, stderr):
    """What a process with a slow compiler writes to standard output, and to a pipe for errors."""
    compiler = tmp_path / "cc"
    compiler.write_text(COMPILER.format(compiler=" ".join(TOOLS.command)))
    compiler.chmod(0o755)
    environment = {**os.environ, "CC": str(compiler), "GEON_CACHE": str(tmp_path / "cache")}
    run = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(before=textwrap.dedent(before))]
    done = subprocess.run(run, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_slow_compiler_in_a_terminal(tmp_path):
    reading, writing = pty.openpty()
    termios.tcsetwinsize(writing, (24, 80))
    os.set_blocking(reading, False)
    out, _ = compiled_slowly(tmp_path, "", writing)
    assert b"compiling: 0 of 1 units" in os.read(reading, 10_000)
    os.close(writing), os.close(reading)
    assert out == "[0.]\n"


def test_a_slow_compiler_in_a_notebook(tmp_path):
    out, said = compiled_slowly(tmp_path, NOTEBOOK, subprocess.PIPE)
    assert "compiling: 0 of 1 units" in said
    assert out == "[0.]\n"


@pytest.mark.parametrize("before", [LOGGED, ""], ids=["asked", "not asked"])
def test_a_slow_compiler_elsewhere(tmp_path, before):
    out, said = compiled_slowly(tmp_path, before, subprocess.PIPE)
    assert said == ("geon INFO compiling: 0 of 1 units\n" if before else "")
    assert out == "[0.]\n"
