"""Programs on processors of narrower vectors, as a compiler makes them that is told so."""

import os
import platform
import subprocess
import sys

import pytest

from geon.transformers.native.toolchain.compilers import find_toolchain

found = find_toolchain()
pytestmark = pytest.mark.skipif(
    found is None or found.family != "gcc" or platform.machine() != "x86_64",
    reason="there is no gcc for a processor with such flags",
)
PROGRAM = """
import numpy as np
import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)

def thin(batch, rows, columns):
    n, a, b = geon.Axis("N"), geon.Axis("A", rows), geon.Axis("B", columns)
    x, g = geon.placeholder([n, a], dtype), geon.placeholder([n, b], dtype)
    w = geon.variable([b, a], dtype, initial_value=numbers((columns, rows), 0))
    step = geon.assign(w, w - 0.01 * geon.dot(x * 0.5, g * 0.25, n))
    return step, (x, g), [numbers((batch, rows), 1), numbers((batch, columns), 2)]

def columns(batch, channels):
    n, c = geon.Axis("N"), geon.Axis("C", channels)
    x = geon.placeholder([n, c], dtype)
    return x - geon.mean(x, n), (x,), [numbers((batch, channels), 1)]

def rows(batch, channels):
    n, c = geon.Axis("N", batch), geon.Axis("C", channels)
    x = geon.placeholder([n, c], dtype)
    spread = geon.max(x, c) - geon.min(x, c)
    return x - geon.mean(x, c) + geon.mean(x * x) * spread, (x,), [numbers((batch, channels), 1)]

def widened(batch, channels):
    n, c = geon.Axis("N", batch), geon.Axis("C", channels)
    x, y = geon.placeholder([n, c], "int8"), geon.placeholder([n, c], "uint16")
    wide = geon.cast(x, dtype), geon.cast(y, dtype) * 0.01
    result = geon.max(wide[0] * 2, c) + geon.sum(wide[1], c) + geon.exp(wide[0] * 0.01)
    data = [np.abs(numbers((batch, channels), k) * 30) for k in (1, 2)]
    return result, (x, y), [data[0].astype("int8"), data[1].astype("uint16")]

def after(name, made, **options):
    result, inputs, data = made
    with geon.make_transformer(name, **options) as transformer:
        f = transformer.computation(result, *inputs)
        for _ in range(3):
            value = f(*data)
        found = [] if value is None else [np.array(value)]
        return found + [np.array(transformer.get(w)) for w in f.linking.variables]

assert find_toolchain().vector_bytes == WIDTH
for dtype in ("float32", "float64"):
    each = [(thin, 900, rows, few) for rows in (33, 48, 49) for few in (1, 8, 20)]
    each += [(columns, 100, 64), (columns, 3, 320), (rows, 100, 64), (rows, 3, 1055)]
    each += [(widened, 30, 64), (widened, 3, 1055)]
    for make, *sizes in each:
        wanted = after("numpy", make(*sizes))
        for threads in (1, 2, 3):
            values = after("native", make(*sizes), threads=threads)
            for value, other in zip(values, wanted, strict=True):
                close = 1e-4 if dtype == "float32" else 1e-10
                np.testing.assert_allclose(value, other, rtol=close, atol=close * 10)
print("all agree")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "width"), [("-mno-avx512f", 32), ("-mno-avx512f -mno-avx2", 16), ("-mno-avx", 16)]
)
def test_values_are_those_of_numpy(flags, width):
    if found.vector_bytes < 32:
        pytest.skip("this processor has such vectors itself")
    text = PROGRAM.replace("WIDTH", str(width))
    environment = {**os.environ, "CC": f"{found.command[0]} {flags}"}
    ran = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True
    )
    assert ran.stdout == "all agree\n", ran.stderr[-3000:]
