"""Loops over elements become vectors, whatever follows whatever: the compiler says so."""

import re
import subprocess

import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

toolchain = find_toolchain()
pytestmark = pytest.mark.skipif(
    toolchain is None or toolchain.family != "gcc", reason="there is no gcc, whose report is read"
)

N = geon.Axis("N", 1 << 20)
BEFORE = {
    "minimum": lambda x, y: geon.minimum(x, 2.0),
    "clip": lambda x, y: geon.maximum(geon.minimum(x, 2.0), -1.0),
    "where": lambda x, y: geon.where(x > y, x, y * 2),
    "sign": lambda x, y: geon.sign(x),
}
AFTER = {
    "power": geon.power,
    "power of": lambda x, y: geon.power(y, x),
    "atan2": geon.atan2,
    "maximum": geon.maximum,
    "exp": lambda x, y: geon.exp(x),
    "log": lambda x, y: geon.log(x),
    "acosh": lambda x, y: geon.acosh(x),
    "erf": lambda x, y: geon.erf(x),
    "tanh": lambda x, y: geon.tanh(x),
    "gelu": lambda x, y: geon.gelu(x),
}


@pytest.mark.parametrize("after", AFTER)
def test_choices_before_functions_that_choose_are_vectors(after, tmp_path):
    """A choice, then a function, and the function, then the choice."""
    x, y = geon.placeholder([N]), geon.placeholder([N])
    made, scalar = AFTER[after], []
    for name, before in BEFORE.items():
        for result in (made(before(x, y), y), before(made(x, y), y)):
            transformer = geon.NativeTransformer(threads=1)
            text = transformer.computation(result, x, y).source
            if not is_vector(text, tmp_path):
                scalar.append(name)
    assert not scalar


@pytest.mark.parametrize("last", BEFORE)
def test_derivatives_of_choices_of_choices_are_vectors(last, tmp_path):
    """Their conditions have much in common, which a compiler may take for branches."""
    x, y = geon.placeholder([N]), geon.placeholder([N])
    scalar = []
    for first, before in BEFORE.items():
        chosen = geon.maximum(geon.minimum(before(x, y) + x, 1.5), -0.5)
        result = BEFORE[last](chosen, y) * geon.log1p(chosen)
        slope = geon.deriv(geon.sum(result), x)
        text = geon.NativeTransformer(threads=1).computation(slope, x, y).source
        if not is_vector(text, tmp_path):
            scalar.append(first)
    assert not scalar


@pytest.mark.parametrize("extreme", [geon.max, geon.min])
def test_extremes_of_what_was_chosen_are_vectors(extreme, tmp_path):
    """Both ask whether a value is NaN."""
    x, y = geon.placeholder([N]), geon.placeholder([N])
    for before in BEFORE.values():
        transformer = geon.NativeTransformer(threads=1)
        chosen = before(x, y)
        text = transformer.computation([extreme(chosen), geon.square(chosen)], x, y).source
        assert is_vector(text, tmp_path)


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float64", "int8"])
def test_what_is_read_backwards_and_stored_narrower_or_wider_is_vectors(dtype, tmp_path):
    x = geon.placeholder([geon.Axis("N", (1 << 20) + 1)])
    text = geon.NativeTransformer(threads=1).computation(geon.cast(x[::-1], dtype), x).source
    assert is_vector(text, tmp_path)


def slopes(x, *parts):
    """The slope of sums of all and of parts: what lies outside of these is chosen away."""
    cost = geon.sum(x * x * x)
    for part in parts:
        cost = cost + geon.sum(geon.square(x[part]))
    return geon.deriv(cost, x)


EVEN, CUT, ALL = slice(None, None, 2), slice(2, -3), slice(None)
PARTS = {
    "strided rows": [(ALL, EVEN, EVEN)],
    "cut rows": [(ALL, CUT, CUT)],
}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("columns", [16, 48, 128])
def test_truths_that_are_known_outside_of_a_loop_are_no_branches_in_it(parts, columns, tmp_path):
    """Of elements beside each other and of columns, for sums alone and where slopes are stored."""
    axes = [geon.Axis("B"), geon.Axis("H", 64), geon.Axis("W", 64), geon.Axis("C", columns)]
    x = geon.placeholder(axes)
    slope = slopes(x, *PARTS[parts])
    total = geon.sum(geon.square(slope), out_axes=[axes[-1]])
    for results in ([total], [total, slope], [slope]):
        text = geon.NativeTransformer(threads=1).computation(results, x).source
        assert is_vector(text, tmp_path)


def is_vector(text, folder):
    """Whether all units are vectors."""
    starts = r"(?m)^(?=(?:/\* of vectors \*/\n)?#include <stddef\.h>)"
    units = [unit for unit in re.split(starts, text) if "kernel_" in unit]
    return bool(units) and all(is_vector_unit(unit, folder) for unit in units)


def is_vector_unit(text, folder):
    """Whether gcc makes vectors, or a copy of memory, of each loop marked as one for them; text of
    vectors has none.
    """
    path = folder / "kernel.c"
    path.write_text(text)
    lines = list(enumerate(text.splitlines(), 1))
    loops = [k + 1 for k, line in lines if "#pragma omp simd" in line]
    loops += [k for k, line in lines if line.lstrip().startswith("GEON_EACH_OF_STRIP")]
    command = [
        *toolchain.command,
        *toolchain.flags,
        *toolchain.lean,
        "-fopt-info-optimized",
        "-c",
        path,
        "-o",
        folder / "o",
    ]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    made = r"loop vectorized|Loop \d+ distributed: split to 0 loops and 1 library calls"
    found = {int(line) for line in re.findall(rf":(\d+):\d+: optimized:\s+(?:{made})", said)}
    nests = {
        int(k) for k in re.findall(r":(\d+):\d+: optimized:\s+Loop nest \d+ distributed", said)
    }
    found |= {k + 2 for k in nests}  # the inner loop, behind its line of a pragma
    ends = [end_of_loop(text.splitlines(), line) for line in loops]
    pairs = zip(loops, ends, strict=True)
    return bool(loops or "GEON_AT(f" in text) and all(
        not found.isdisjoint(range(*pair)) for pair in pairs
    )


def end_of_loop(lines, first):
    """The number of the line behind the loop that begins in the line of the number ``first``."""
    if not lines[first - 1].rstrip().endswith("{"):
        return first + 2
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    rest = range(first, len(lines))
    return next(k for k in rest if lines[k].startswith(" " * indent + "}")) + 1
