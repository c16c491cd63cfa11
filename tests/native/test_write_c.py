"""``f.write_c`` and ``f.write_shared``: C that compiles without warnings and has native's bits."""

from __future__ import annotations

import ctypes
import importlib.util
import sys

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

from .c_programs import CProgram, same_bits

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


def of_fixed_lengths(transformer):
    """Elementwise ops, reductions and casts over fixed lengths, of many dtypes."""
    x = geon.placeholder([H, C], name="x y")
    n = geon.placeholder([C], "int32", name="int")
    truth = geon.placeholder([], "bool", name="x-y")
    brain = geon.cast(x, "bfloat16")
    wide = geon.cast(x, "float64")
    results = [
        geon.softmax(x, C),
        geon.where(truth, geon.exp(wide), geon.sin(wide)),
        geon.sum(geon.cast(x, "float16") * 3, C),
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


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_fixed_lengths(tmp_path, monkeypatch, compiler):
    """Each compiler gives the bits that native code has with it."""
    command = ""
    if compiler == "zig":
        if importlib.util.find_spec("ziglang") is None:
            pytest.skip("ziglang is not installed")
        command = f"{sys.executable} -m ziglang cc"
        monkeypatch.setenv("CC", command)
    with geon.make_transformer("native", threads=1) as transformer:
        f, data = of_fixed_lengths(transformer), data_of_fixed_lengths()
        expected = outcome(f, data)
        f.write_c(tmp_path, name="fixed")
    header = (tmp_path / "fixed.h").read_text()
    assert "#define FIXED_ARENA_BYTES " in header and "int64_t fixed_arena_bytes(void);" in header
    assert "const float *x_y, const int32_t *int_2, const bool *x_y_2, " in header
    assert "uint16_t *result_3, uint16_t *result_4, int64_t *result_5, " in header
    assert "struct fixed_state" not in header and not (tmp_path / "fixed.bin").exists()
    program = CProgram(tmp_path, data, expected[0], name="fixed", compiler=command)
    assert check(program, expected) == ("", b"")
