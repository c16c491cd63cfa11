"""The extension that enters compiled code: how it is built, and what it takes."""

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.transformers.loading import c_extensions
from geon.transformers.native.runtime import fast_call
from geon.transformers.native.toolchain.compilers import find_toolchain, run_compiler

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

ROOT = Path(geon.__file__).parents[1]
SOURCE = ROOT / "geon/transformers/native/entry.c"
SHARED = ROOT / "geon/transformers/loading/extension.h"
SOURCES = [SOURCE, ROOT / "geon/transformers/pycuda/steady.c"]
HEADERS = Path(sysconfig.get_paths()["include"])


def test_it_is_built_of_this_text():
    """What lies beside the source is what the source says."""
    if not (HEADERS / "Python.h").exists() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("it cannot be built here")
    made = fast_call.extension()
    cure = "build it: make test does, or python setup.py build_ext --inplace"
    assert made is not None, cure
    text = SHARED.read_bytes() + SOURCE.read_bytes()
    assert made.source == hashlib.sha256(text).hexdigest(), cure


def test_without_a_compiler_geon_is_installed_without_it(tmp_path):
    pytest.importorskip("setuptools")
    run = [sys.executable, "setup.py", "build_ext", "--build-temp", "temp", "--build-lib", "lib"]
    run[-3::2] = [str(tmp_path / "temp"), str(tmp_path / "lib")]
    environment = {**os.environ, "CC": "a-compiler-that-is-not-there"}
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [path for path in tmp_path.rglob("*.so") if path.parent.name != "prebuilt"]


@pytest.mark.parametrize("module", ["native.runtime.fast_call", "pycuda.runtime.graph_replay"])
def test_debugging_can_ask_for_the_long_way(module):
    program = f"from geon.transformers.{module} import extension; print(extension())"
    environment = {**os.environ, "GEON_DEBUG": "long-calls"}
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.stdout == "None\n", done.stderr


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_file_compiles_without_a_word(source):
    if not (HEADERS / "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    toolchain = find_toolchain()
    arguments = [*toolchain.flags, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    arguments += ["-DPy_LIMITED_API=0x030B0000", '-DGEON_SOURCE="0"', f"-I{HEADERS}"]
    status, _, said = run_compiler(
        toolchain.command, [*arguments, f"-I{np.get_include()}", str(source)]
    )
    assert status == 0, said


@pytest.fixture
def rows():
    """What the tables of a computation of three numbers are made of."""
    if fast_call.extension() is None:
        pytest.skip("the extension was not built")
    x = geon.placeholder([geon.Axis("A", 3)])
    with geon.make_transformer("native") as transformer:
        f = transformer.computation(x + 1, x)
        f(np.zeros(3, np.float32))
        (bound,) = next(iter(f._calls[()].free)).bound.values()
        yield list(bound.tables(((np.dtype(np.float32), (3,), None),)))


@pytest.mark.parametrize(
    "position, wrong",
    [(0, "text"), (1, [()]), (1, ((),)), (1, (("float32", (3,), None),)), (2, None), (3, b"frozen"),
     (1, ((np.dtype("f4"), 3.5, None),)), (1, ((np.dtype("f4"), (1,) * 65, None),)), (7, None)],
)  # fmt: skip
def test_tables_refuse_what_is_none(rows, position, wrong):
    rows[position] = wrong
    with pytest.raises((TypeError, ValueError, BufferError)):
        fast_call.extension().Tables(*rows)


def test_what_is_refused_is_freed(rows):
    held = rows[-1] = [object()]
    made = fast_call.extension()
    way = made.Entry()
    before = sys.getrefcount(held), sys.getrefcount(rows[3])
    for _ in range(1000):
        made.Tables(*rows)
        with pytest.raises(TypeError):
            way.remember(made.Tables(*rows), "text")
        with pytest.raises(TypeError):
            made.Tables(*rows[:2], (None,), *rows[3:])
    assert (sys.getrefcount(held), sys.getrefcount(rows[3])) == before
    way.remember(made.Tables(*rows), 0)
    assert sys.getrefcount(held) == before[0] + 1
    del way
    assert sys.getrefcount(held) == before[0]


@pytest.mark.parametrize("name", ["native._entry", "pycuda._steady"])
@pytest.mark.parametrize("error", [ImportError, RuntimeError])
def test_where_it_does_not_load_calls_go_the_long_way(monkeypatch, error, name):
    def fails(name):
        raise error(name)

    monkeypatch.setattr(c_extensions.importlib, "import_module", fails)
    assert c_extensions.built.__wrapped__(f"geon.transformers.{name}") is None
