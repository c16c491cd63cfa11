"""Results of 0 are no underflows, which take many processors a hundred cycles each.

What is tested is the flag of the processor, so x86-64 and a C library that reads it.
"""

import ctypes
import ctypes.util
import platform

import numpy as np
import pytest

import geon

FE_UNDERFLOW, FE_ALL = 0x10, 0x3D
library = ctypes.util.find_library("m")
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux" or library is None,
    reason="flags of x86-64",
)


def slope(function):
    """The derivative of a function."""
    return lambda x: geon.deriv(geon.sum(function(x)), x)


# Functions that are 0 far below 0, or far from it.
FUNCTIONS = {
    "exp": geon.exp,
    "sigmoid": geon.sigmoid,
    "softplus": geon.softplus,
    "gelu": geon.gelu,
    "the slope of sigmoid": slope(geon.sigmoid),
    "the slope of gelu": slope(geon.gelu),
    "the slope of gelu's tanh form": slope(lambda x: geon.gelu(x, approximate="tanh")),
    "the slope of silu": slope(geon.silu),
    "ndtr": geon.ndtr,
    "the density of a normal variable": lambda x: geon.exp(-0.5 * x * x),
    "erfc": lambda x: geon.erfc(-x),
}
# From where on results are 0, of exponentials and of what is multiplied by one, and where they are
# subnormal.
FROM = {"float32": -112.0, "float64": -754.0}
SUBNORMAL = {"float32": -95.0, "float64": -720.0}


def underflows(call):
    """Whether a call sets the flag."""
    flags = ctypes.CDLL(library)
    flags.feclearexcept(FE_ALL)
    call()
    return bool(flags.fetestexcept(FE_UNDERFLOW))


@pytest.mark.parametrize("dtype", FROM)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_of_zero_are_no_underflows(name, dtype):
    points = geon.Axis("points")
    x = geon.placeholder([points], dtype=dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(FUNCTIONS[name](x), x)
        subnormal = np.full(1000, SUBNORMAL[dtype], dtype)
        if name == "exp":
            assert underflows(lambda: f(subnormal)), "the flag says nothing"
        for start in (1, 2, 10, 1e4, 1e30, np.inf):
            values = np.linspace(1, 2, 1003, dtype=dtype) * np.dtype(dtype).type(
                start * FROM[dtype]
            )
            out = np.empty_like(values)
            assert not underflows(lambda v=values, o=out: f(v, out=o)), start


@pytest.mark.parametrize("masked", [-np.inf, -1e9, -1e4])
def test_a_masked_softmax_does_not_underflow(masked):
    rows, columns = geon.Axis("rows"), geon.Axis("columns")
    x = geon.placeholder([rows, columns])
    seen = geon.placeholder([rows, columns], dtype="bool")
    with geon.NativeTransformer(threads=1) as transformer:
        attention = geon.softmax(geon.where(seen, x, masked), normalization_axes=columns)
        f = transformer.computation(attention, x, seen)
        random = np.random.default_rng(0)
        for length in (3, 16, 100, 1000):
            values = random.normal(size=(9, length)).astype("float32")
            mask = np.tril(np.ones((9, length), bool))
            f(values, mask)
            assert not underflows(lambda v=values, m=mask: f(v, m)), length
