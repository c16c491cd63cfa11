"""``f.write_c`` and ``f.write_shared``: C that compiles without warnings and has native's bits."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import shutil
import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.values.dtypes import FLOAT8S, as_dtype
from geon.transformers.native.standalone.arena_layout import layout_statements
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.runtime.arena import place
from geon.transformers.sizes.limits import NOMINAL_LENGTH

from .c_programs import WARNINGS, CProgram, same_bits
from .test_one_file import programs

pytestmark = [
    pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler"),
    pytest.mark.optimized,  # bits of sums are compared with those of the README's flags
]

N, C, H, K = geon.Axis("N"), geon.Axis("C", 40), geon.Axis("H", 24), geon.Axis("K", 3)


@pytest.fixture
def transformer():
    with geon.make_transformer("native", threads=1) as made:
        yield made


def outcome(f, inputs, calls=1):
    """Results of calls of a computation, without those of effects."""
    found = [f(*inputs) for _ in range(calls)]
    listed = [each if isinstance(each, tuple) else (each,) for each in found]
    return [[np.asarray(value) for value in each if value is not None] for each in listed]


def check(program, expected):
    """The program ends with 0 and has these results; returns what it printed, and its state."""
    code, printed, calls, state = program.run()
    assert code == 0, printed
    for mine, native in zip(calls, expected, strict=True):
        assert [same_bits(a, b) for a, b in zip(mine, native, strict=True)] == [True] * len(native)
    return printed, state


# Fixed lengths --------------------------------------------------------------------------------


def of_fixed_lengths(transformer, factor):
    """Elementwise ops, reductions and casts over fixed lengths, of many dtypes.

    A process compiles programs of one structure once: each compiler gets another ``factor``.
    """
    x = geon.placeholder([H, C], name="x y")
    n = geon.placeholder([C], "int32", name="int")
    truth = geon.placeholder([], "bool", name="x-y")
    brain = geon.cast(x, "bfloat16")
    wide = geon.cast(x, "float64")
    results = [
        geon.softmax(x, C),
        geon.where(truth, geon.exp(wide), geon.sin(wide)),
        geon.sum(geon.cast(x, "float16") * factor, C),
        brain * brain,
        geon.cumsum(n, C) // 3,
        geon.any(x > 2, C),
        geon.argmax(x, C),
        geon.cast(geon.absolute(n), "uint8"),
    ]
    return transformer.computation(results, x, n, truth)


def data_of_fixed_lengths():
    random = np.random.default_rng(0)
    x = random.normal(size=(24, 40)).astype(np.float32)
    return x, random.integers(-9, 9, 40).astype(np.int32), np.array(True)


def installed_compilers():
    """The commands of the compilers that are installed, by name."""
    found = {name: [name] for name in ("gcc", "clang") if shutil.which(name)}
    if importlib.util.find_spec("ziglang") is not None:
        found["zig"] = [sys.executable, "-m", "ziglang", "cc"]
    return found


@pytest.mark.parametrize("compiler", ["gcc", "clang", "zig"])
def test_fixed_lengths(tmp_path, monkeypatch, compiler):
    """Each compiler gives the bits that native code has with it."""
    if compiler not in installed_compilers():
        pytest.skip(f"{compiler} is not installed")
    command = ""
    if compiler != "gcc":
        command = " ".join(installed_compilers()[compiler])
        monkeypatch.setenv("CC", command)
    with geon.make_transformer("native", threads=1) as transformer:
        f = of_fixed_lengths(transformer, {"gcc": 3, "clang": 7, "zig": 5}[compiler])
        data = data_of_fixed_lengths()
        expected = outcome(f, data)
        f.write_c(tmp_path, name="fixed")
    header = " ".join((tmp_path / "fixed.h").read_text().split())
    assert "#define FIXED_ARENA_BYTES " in header and "int64_t fixed_arena_bytes(void);" in header
    assert "const float *x_y, const int32_t *int_2, const bool *x_y_2, " in header
    assert "uint16_t *result_3, uint16_t *result_4, int64_t *result_5, " in header
    assert "struct fixed_state" not in header and not (tmp_path / "fixed.bin").exists()
    program = CProgram(tmp_path, data, expected[0], name="fixed", compiler=command)
    assert check(program, expected) == ("", b"")


def test_complex_numbers_are_printed(transformer, tmp_path, capfd):
    z = geon.placeholder([geon.Axis("N", 2)], "complex64", name="z")
    total = geon.sum(geon.cast(z, "complex128"))
    shown = geon.print(z * 2, "double"), geon.print(total, "sum")
    f = transformer.computation([geon.real(each) for each in shown], z)
    data = (np.array([1 - 2j, 0.25j], np.complex64),)
    f(*data)
    shown = capfd.readouterr().out
    assert "double = [2.-4.j  0.+0.5j]" in shown and "sum = (1-1.75j)" in shown
    expected = outcome(f, data)
    capfd.readouterr()
    f.write_c(tmp_path, name="waves")
    printed, _ = check(CProgram(tmp_path, data, expected[0], name="waves"), expected)
    assert "double = [2-4j 0+0.5j]" in printed and "sum = 1-1.75j" in printed


def test_float8_is_printed(transformer, tmp_path, capfd):
    x = geon.placeholder([geon.Axis("bits", 256)], "uint8", name="x")
    small = [geon.bitcast(x, dtype) for dtype in FLOAT8S]
    f = transformer.computation([geon.print(each, "number") for each in small], x)
    data = (np.arange(256, dtype=np.uint8),)
    expected = outcome(f, data)
    capfd.readouterr()
    f.write_c(tmp_path, name="small")
    assert "uint8_t *result" in " ".join((tmp_path / "small.h").read_text().split())
    printed, _ = check(CProgram(tmp_path, data, expected[0], name="small"), expected)
    texts = [text.strip(" []\n").split() for text in printed.split("number =")[1:]]
    found = {tuple(np.array(text, np.float64).round(9)) for text in texts}
    for dtype in FLOAT8S:
        wide = data[0].view(as_dtype(dtype)).astype(np.float64)
        near = [np.allclose(each, wide, rtol=1e-4, equal_nan=True) for each in found]
        assert sum(near) == 1


# Training -------------------------------------------------------------------------------------


def of_training(transformer):
    """A step of a network with dropout over an open batch: products, draws, new variables."""
    x, target = geon.placeholder([N, C], name="x"), geon.placeholder([N], "int64", name="target")
    random = geon.Random(3)
    w = geon.Variable([C, H], initial_value=geon.Random(0).normal([C, H]), name="w")
    v = geon.Variable([H, K], initial_value=geon.Random(1).normal([H, K]), name="v")
    momentum = geon.Variable([C, H], initial_value=0, name="momentum")
    hidden = geon.tanh(geon.dot(x, w)) * random.bernoulli([N, H], 0.8)
    costs = -geon.gather(geon.log_softmax(geon.dot(hidden, v), K), target, K)
    loss = geon.mean(costs)
    loss.name = "loss"
    dw, dv = geon.deriv(loss, [w, v])
    new = 0.9 * momentum + dw
    step = geon.doall(
        [geon.assign(momentum, new), geon.assign(w, w - 0.1 * new), geon.assign(v, v - 0.1 * dv)]
    )
    return transformer.computation([loss, geon.softmax(hidden, H), step], x, target)


def data_of_training(n=70):
    random = np.random.default_rng(n)
    return random.normal(size=(n, 40)).astype(np.float32), random.integers(0, 3, n)


def state_of(transformer, header, name="model"):
    """The bytes of the state's structure for the transformer's variables."""
    members = [line.split("[")[0].split()[-1] for line in header.splitlines() if "_ALIGNED " in line
               and "#" not in line]  # fmt: skip
    found = []
    for member in members:
        slots = [s for s in transformer.state.slots if (s.name or "random_calls") == member]
        raw = transformer.state.get(slots[0]).tobytes()
        found.append(raw.ljust(-(-len(raw) // 64) * 64, b"\0"))
    return b"".join(found)


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_training(transformer, tmp_path, threads):
    """State after several calls is native's, bit for bit, from values that native code left."""
    f, data = of_training(transformer), data_of_training()
    f(*data)
    f.write_c(tmp_path, threads=threads)
    assert (tmp_path / "model_threads.c").exists() == (threads > 1)
    expected = outcome(f, data, calls=3)
    header = (tmp_path / "model.h").read_text()
    assert "_ARENA_BYTES" not in header and "int64_t model_arena_bytes(int64_t N);" in header
    assert "struct model_state *state, int64_t N, void *arena);" in header
    program = CProgram(tmp_path, data, expected[0], [70], calls=3)
    printed, state = check(program, expected)
    assert state == state_of(transformer, header) and printed == ""


# Loops, library functions, prints ---------------------------------------------------------------


def of_loops(transformer):
    """A scan, a loop that ends by a condition, branches, sorts, scatters, checked positions."""
    T = geon.Axis("T")
    x = geon.placeholder([T, K], name="x")
    at = geon.placeholder([T], "int64", name="at")
    start = geon.constant([1.0, 2.0, 3.0], [K], dtype="float32")
    last, seen = geon.scan(lambda c, e: (geon.sin(c + e), c * e), start, x, over=T)
    total = geon.while_loop(lambda c: geon.max(c) < 100, lambda c: c * c + 2, geon.absolute(last))
    branch = geon.cond(geon.sum(x) > 0, lambda: geon.exp(last), lambda: -last)
    ordered = geon.sort(x, T)
    labelled = geon.gather(ordered, at, T)
    added = geon.scatter(ordered, at, labelled, T, mode="add")
    table = geon.constant(np.arange(3000) % 7, [geon.Axis("M", 3000)], dtype="int16")
    results = [
        last,
        seen,
        total,
        branch,
        labelled,
        added,
        geon.argsort(x, T),
        geon.cumsum(x, T),
        geon.top_k(x, 2, K)[1],
        geon.sum(table * geon.cast(geon.sum(at), "int16")),
        geon.print(geon.cast(labelled[{T: slice(0, 2)}], "float16"), "first"),
        geon.print(at, "at"),
    ]
    return transformer.computation(results, x, at)


def test_loops(transformer, tmp_path, capfd):
    f = of_loops(transformer)
    random = np.random.default_rng(2)
    x = (random.normal(size=(9, 3)) * 4).astype(np.float32)
    good, bad = random.integers(0, 9, 9), np.full(9, 9)
    expected = outcome(f, (x, good))
    lines = capfd.readouterr().out
    f.write_c(tmp_path, name="loops")
    assert "a constant int16" in (tmp_path / "loops.h").read_text()
    program = CProgram(tmp_path, (x, good), expected[0], [9], name="loops")
    printed, _ = check(program, expected)
    # NumPy shows fewer digits than C.
    assert printed.splitlines()[-1] == f"at = [{' '.join(map(str, good))}]"
    numbers = [np.array(text.replace("[", " ").replace("]", " ").split("=")[1].split(), np.float16)
               for text in (printed.split("at =")[0], lines.split("at =")[0])]  # fmt: skip
    assert np.allclose(*numbers, rtol=1e-3)
    (tmp_path / "in.bin").write_bytes(x.tobytes() + bad.tobytes())
    code, printed, calls, _ = program.run()
    assert code > 0 and not calls and "a position lies outside of -(T) to T - 1" in printed
    assert "used as positions at" in printed and "test_write_c.py" in printed


# All kinds of programs --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(list(programs()))))
def test_no_compiler_warns(transformer, tmp_path, number):
    """Products, windows, sorts, loops, scatters, draws, halves: all compilers accept their C."""
    _, results, placeholders = list(programs())[number]
    transformer.computation(results, *placeholders).write_c(tmp_path, threads=2)
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    for command in installed_compilers().values():
        flags = ["-std=gnu11", "-march=native", "-fopenmp-simd", *WARNINGS, "-O0", "-c"]
        ran = subprocess.run(
            [*command, *flags, *sources], cwd=tmp_path, capture_output=True, text=True
        )
        assert ran.returncode == 0 and not ran.stderr, ran.stderr[:2000]


# A shared object -------------------------------------------------------------------------------


def test_shared_object(transformer, tmp_path):
    """Functions, header and a file of values; what a call refuses, without a crash."""
    x = geon.placeholder([N, C], "float64", name="x")
    w = geon.Variable([C], "float64", initial_value=np.arange(40.0), name="class")
    f = transformer.computation(
        [geon.exp(-x * w), geon.assign(w, w + geon.sum(x[{N: slice(2, 4)}], N))], x
    )
    f.write_shared(tmp_path / "lib" / "step.so", name="step", values="file")
    assert sorted(each.name for each in (tmp_path / "lib").iterdir()) == [
        "step.bin",
        "step.h",
        "step.so",
    ]
    header = (tmp_path / "lib" / "step.h").read_text()
    assert "double class_2[40]; /* (C:40) float64, written */" in header
    library = ctypes.CDLL(str(tmp_path / "lib" / "step.so"))
    library.step_arena_bytes.restype = ctypes.c_int64
    library.step_arena_bytes.argtypes = [ctypes.c_int64]
    library.step_error.restype = ctypes.c_char_p
    state = np.frombuffer((tmp_path / "lib" / "step.bin").read_bytes(), np.float64).copy()
    memory = np.empty(library.step_arena_bytes(5) + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    data = np.random.default_rng(1).normal(size=(5, 40))
    mine = np.empty_like(data)

    def run(n, arena):
        return library.step_run(
            *[ctypes.c_void_p(each.ctypes.data) for each in (data, mine, state)],
            ctypes.c_int64(n),
            ctypes.c_void_p(arena),
        )

    for _ in range(2):
        assert run(5, start) == 0
        assert same_bits(mine, f(data)[0])
    assert same_bits(state, transformer.get(w))
    texts = [library.step_error(run(*each)).decode() for each in
             [(0, start), (1 << 60, start), (3, start), (5, None), (5, start + 8)]]  # fmt: skip
    assert texts[0] == texts[1] and texts[0].startswith("the length N of a call must lie in 1 to")
    assert "4 <= N is needed" in texts[2]
    assert texts[3] == texts[4] == "the arena must begin at a multiple of 64 bytes, and not be NULL"
    assert library.step_arena_bytes(3) == library.step_arena_bytes(0) == -1
    assert library.step_error(0) == b"no error"
    assert library.step_error(-1) == library.step_error(999) == b"no code of step_run"
    assert same_bits(state, transformer.get(w))


# Options, refusals ------------------------------------------------------------------------------


def small(transformer, **options):
    """A computation whose length of ``N`` a variable fixes, with checks for values."""
    x = geon.placeholder([N, K], "float16", name="x")
    w = geon.Variable([N], "float16", initial_value=np.arange(4), name="w", trainable=False)
    y = geon.log(x * w)
    return transformer.computation([y, geon.assign(w, w + 1)], x, check="nan", **options)


def test_a_length_of_a_variable(transformer, tmp_path):
    """It is no parameter; values lie in a file that ``main`` reads; a failed call changes none."""
    f = small(transformer)
    data = np.full((4, 3), 2, np.float16)
    transformer.set("w", np.arange(1, 5, dtype=np.float16))
    f.write_c(tmp_path, values="file", march="x86-64")
    header = (tmp_path / "model.h").read_text()
    assert "int model_run(const uint16_t *x, uint16_t *result, struct model_state *state, void" in (
        " ".join(header.split())
    )
    assert "-march=x86-64 " in (tmp_path / "README.md").read_text()
    assert len((tmp_path / "README.md").read_text().splitlines()) < 16
    expected = outcome(f, (data,), calls=2)
    program = CProgram(tmp_path, (data,), expected[0], calls=2)
    code, printed, calls, state = program.run()
    assert code == 0 and state[:8] == transformer.get("w").tobytes()
    for mine, native in zip(calls, expected, strict=True):
        assert np.allclose(mine[0].astype(float), native[0].astype(float), rtol=2e-3)
    before = (tmp_path / "model.bin").read_bytes()
    (tmp_path / "in.bin").write_bytes(np.zeros((4, 3), np.float16).tobytes())
    code, printed, _, state = program.run()
    assert code and "log" in printed and "not finite" in printed and state == before


def test_options_that_are_refused(transformer, tmp_path):
    f = small(transformer)
    folder = tmp_path / "none"
    wrong = [
        ({"name": "for"}, "no keyword of C"),
        ({"name": "a-b"}, "letters of ASCII"),
        ({"threads": 0}, "1 to 1024"),
        ({"values": "binary"}, '"array"'),
        ({"march": "z80"}, "z80"),
    ]
    for options, cure in wrong:
        with pytest.raises(geon.ArgumentError, match=cure):
            f.write_c(folder, **options)
        assert not folder.exists()
    with pytest.raises(geon.ArgumentError, match="beside the shared object"):
        f.write_shared(tmp_path / "model.h")
    (tmp_path / "file").write_text("")
    with pytest.raises(geon.CheckpointError, match="give a folder that can"):
        f.write_c(tmp_path / "file")
    with geon.make_transformer("numpy") as other:
        with pytest.raises(geon.UnavailableError, match=r'make_transformer\("native"\)'):
            small(other).write_c(folder)
        assert not folder.exists()


def test_lengths_that_are_refused(transformer, tmp_path):
    a = geon.Variable([N], initial_value=np.ones(3), name="a")
    b = geon.Variable([N], initial_value=np.ones(5), name="b")
    f = transformer.computation([geon.sum(a), geon.sum(b)])
    with pytest.raises(geon.AxisError, match=r"length N is 5 in variable b.* and 3 in variable a"):
        f.write_c(tmp_path / "none")
    c = geon.Variable([geon.Axis("M")], initial_value=0, name="c")
    with pytest.raises(geon.AxisError, match="open length M"):
        transformer.computation(geon.sum(c)).write_c(tmp_path / "none")
    x = geon.placeholder([N])
    part = transformer.computation(x[{N: slice(1, 3)}], x, lengths={N: 2})
    with pytest.raises(geon.GuardError, match="N = 2"):
        part.write_c(tmp_path / "none")
    assert not (tmp_path / "none").exists()


# The arena ------------------------------------------------------------------------------------


def evaluated(lines, lengths):
    """The offsets and ends that the statements of a layout give."""
    at, end = {}, {}
    for line in lines:
        text = line.replace("at_", "at").replace("end_", "end").replace("INT64_C", "")
        if text.startswith("if"):
            condition, _, text = text[4:].partition(") ")
            if not eval(condition, {}, {"at": at, "end": end, **lengths}):
                continue
        exec(text.strip(";"), {"at": at, "end": end, **lengths})
    return at, end


def test_layouts_for_all_lengths():
    """Buffers that are live together never overlap; for sample lengths ``place`` is as good."""
    random = np.random.default_rng(5)
    names = {"N": geon.Axis("N").expression, "M": geon.Axis("M").expression}
    for _ in range(25):
        count = int(random.integers(1, 14))
        first = random.integers(0, 12, count)
        lives = [
            (int(a), int(a + b)) for a, b in zip(first, random.integers(0, 6, count), strict=True)
        ]
        kinds = [64, 1000, 4 * names["N"], 12 * names["M"], names["N"] * names["M"], 7]
        sizes = [kinds[k] for k in random.integers(0, len(kinds), count)]
        lines, known = layout_statements(sizes, lives, list(names), 64, lambda s: str(s))
        assert (known is not None) == all(isinstance(size, int) for size in sizes)
        for n, m in [(1, 1), (1000, 1), (3, 700), (NOMINAL_LENGTH, NOMINAL_LENGTH)]:
            lengths = {"N": n, "M": m}
            given = [evaluate(size, lengths) for size in sizes]
            at, end = evaluated(lines, lengths)
            assert all(at[k] % 64 == 0 and end[k] - at[k] >= given[k] for k in range(count))
            for i, j in itertools.combinations(range(count), 2):
                if lives[i][0] <= lives[j][1] and lives[j][0] <= lives[i][1]:
                    assert end[i] <= at[j] or end[j] <= at[i]
        assert max(end.values()) <= place(given, lives, 64)[1]
        assert known is None or known == max(end.values())


def test_results_have_the_names_of_their_keys(transformer, tmp_path):
    x, v = geon.placeholder([C], name="x"), geon.Variable([C], initial_value=0, name="v")
    step = geon.assign(v, v + x)
    results = {"loss": geon.sum(x), "step": step, "both": [x + 1, geon.exp(x, name="own")]}
    transformer.computation(results, x).write_c(tmp_path)
    text = (tmp_path / "model.h").read_text()
    assert "model_run(const float *x, float *loss, float *both_0, float *both_1" in text
    transformer.computation([x + 1, geon.exp(x, name="own")], x).write_c(tmp_path)
    text = (tmp_path / "model.h").read_text()
    assert "model_run(const float *x, float *result, float *own" in text
