"""Loops over elements become vectors, whatever follows whatever: the compiler says so."""

import re
import subprocess

import pytest

import geon
from geon.transformers.native.toolchain import find_toolchain

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


def is_vector(text, folder):
    """Whether gcc makes vectors, or a copy of memory, of each loop marked as one for them."""
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
    return bool(loops) and all(line in found or line + 1 in found for line in loops)
