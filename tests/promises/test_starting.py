"""What importing, making and calling may not do: start programs, compile again, need a compiler."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import geon
from geon.op_graph.axes.axes import default_lengths
from geon.transformers.native.toolchain.compilers import find_toolchain


def python(program, **environment):
    """What a program prints in a process of its own; these variables are set (None: unset)."""
    known = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    known = {name: value for name, value in known.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=known, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WATCHED = """
import sys, threading
started, written = [], []
PROGRAMS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec",
            "os.spawn"}

def watch(event, args):
    if event in PROGRAMS:
        started.append(event)
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wxa+"):
        if "__pycache__" not in str(args[0]):
            written.append(args[0])
    if event in ("os.mkdir", "socket.connect"):
        if "__pycache__" not in str(args[0]):
            written.append(args[0])

sys.addaudithook(watch)
"""


def test_import_starts_and_writes_nothing():
    told = python(WATCHED + "import geon\nprint(started, written, threading.active_count())")
    assert told == "[] [] 1\n"


def test_the_numpy_transformer_starts_and_writes_nothing():
    program = """
    import numpy as np
    import geon
    N = geon.Axis("N")
    x = geon.placeholder(N)
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation([geon.softmax(x), geon.Random(1).normal(N)], x)
        f(np.ones(3))
        f(np.ones(4))
    print(started, written, threading.active_count())
    """
    assert python(WATCHED + textwrap.dedent(program)) == "[] [] 1\n"


def test_without_a_compiler_only_asking_for_native_raises(tmp_path):
    program = """
    import sys
    sys.modules["ziglang"] = None
    import importlib.util
    found = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "ziglang" else found(name, *rest)
    import geon
    x = geon.placeholder(geon.Axis("N"))
    y = geon.deriv(geon.sum(geon.tanh(x)), x)
    print(type(geon.make_transformer()).__name__)
    print(geon.make_transformer("numpy").computation(y, x)([0.0]))
    try:
        transformer = geon.make_transformer("native")
    except geon.UnavailableError as error:
        print(error)
    """
    told = python(
        program, PATH=str(tmp_path), CC=None, GEON_TRANSFORMER=None, GEON_CACHE=str(tmp_path / "c")
    )
    first, second, third = told.splitlines()[:3]
    assert (first, second) == ("NumPyTransformer", "[1.]")
    assert "apt install gcc" in told and "pip install 'geon[native]'" in told, third
    assert not (tmp_path / "c").exists()


def test_calls_compile_on_the_first_one_alone(tmp_path):
    """Neither other lengths nor values, nor variables that were set, nor time compile again."""
    if find_toolchain() is None:
        pytest.skip("there is no C compiler")
    program = """
    import numpy as np
    import geon
    compiled = []
    sys.addaudithook(lambda event, args: compiled.append(args[1]) if event == "compile" else None)
    N, K = geon.Axis("N"), geon.Axis("K", 3)
    for name in ("numpy", "native"):
        transformer = geon.make_transformer(name)
        x, w = geon.placeholder([N, K], name="x"), geon.Variable(K, initial_value=1, name="w")
        y = geon.dot(geon.tanh(x), w)
        loss = geon.sum(y * y)
        f = transformer.computation([y, geon.assign(w, w - 0.1 * geon.deriv(loss, w))], x)
        f(np.ones((2, 3)))
        started.clear(), compiled.clear()
        for count in (2, 1, 0, 7, 300, 40, 2000):
            f(np.ones((count, 3)))
            f(np.ones((count, 3), np.float32))
            f(x=np.ones((count, 3), np.float32)[::-1], out=[None, None])
            transformer.set(w, [1, 2, count])
            transformer.initialize(force=True)
        print(name, started, compiled)
    """
    told = python(WATCHED + textwrap.dedent(program), GEON_CACHE=str(tmp_path / "cache"))
    assert told == "numpy [] []\nnative [] []\n"


def test_computing_sets_no_default_length(transformer):
    """One name has another length in each of two computations, and none stays afterwards."""
    before = default_lengths()
    N = geon.Axis("N", "N of no default")
    x = geon.placeholder(N)
    w = geon.Variable(N, initial_value=1)
    plus, minus = transformer.computation(x + w, x), transformer.computation(x - 1, x)
    given = transformer.computation(geon.iota(N), lengths={N: 4})
    assert plus(np.ones(3)).shape == (3,)
    assert minus(np.ones(5)).shape == (5,)
    assert given().shape == (4,)
    assert default_lengths() == before
    assert not isinstance(N.length, int)


def test_other_names_and_lines_compile_nothing_in_a_new_process(tmp_path):
    """What was compiled for one is found for the other, whatever the user calls things."""
    if find_toolchain() is None:
        pytest.skip("there is no C compiler")
    program = """
    import numpy as np
    import geon
    N = geon.Axis("N")
    x = geon.placeholder(N, name="NAME")
    y = geon.tanh(x * 3, name="NAME /* */")
    f = geon.make_transformer("native").computation([y, geon.sum(y)], x, name="of_NAME")
    f(np.ones(3))
    f(np.ones(4))
    f(np.ones(4))
    print(len(started), "NAME" in f.source)
    """
    counts = []
    for name in ("first", "second"):
        lines = "\n" * len(counts) + textwrap.dedent(program).replace("NAME", name)
        told = python(WATCHED + lines, GEON_CACHE=str(tmp_path / "cache")).split()
        assert told[1] == "True"
        counts.append(int(told[0]))
    assert counts[0] > 0
    assert counts[1] == 0
