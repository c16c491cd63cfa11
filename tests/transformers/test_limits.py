"""Functions with a limit reach it, and what subtracts it keeps its digits: on the whole line.

For every line of ``limits.LINES``, transformer and float dtype: value and derivative are at most
4 ulp off, of a half 1, at floats of all sizes and around 0, subnormal results included. Where the
two terms of a slope cancel, at its root, no relative error can be promised: there the ulp is that
of the larger term, which is the slope's own size elsewhere.
"""

import functools
import math

import ml_dtypes
import numpy as np
import pytest

import geon
from geon.op_graph.values.dtypes import FLOATS, as_dtype

from .limits import CONTEXT, FAR, LINES

N = geon.Axis("N")
BOUND = {"float16": 1, "bfloat16": 1, "float32": 4, "float64": 4}


@functools.cache
def points(dtype):
    """Floats of every exponent, around 0 and out to where exponentials vanish; special ones."""
    kind, random = as_dtype(dtype), np.random.default_rng(5)
    bits = np.dtype(f"uint{8 * kind.itemsize}")
    anything = random.integers(0, np.iinfo(bits).max, 300, bits, endpoint=True).view(kind)
    end = 760 if dtype == "float64" else 110
    near = [random.normal(0, 1, 400), random.normal(0, 5, 300), random.uniform(-40, 40, 300)]
    near += [random.uniform(-end, end, 300), 10 ** random.uniform(-10, 0, 100)]
    info = ml_dtypes.finfo(kind)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, float(info.max), float(info.min)]
    special += [float(s * v) for s in (1, -1) for v in (info.tiny, info.smallest_subnormal, 1)]
    with np.errstate(all="ignore"):
        found = [np.concatenate(near).astype(kind), np.array(special).astype(kind), anything]
    return np.concatenate(found)


@functools.cache
def exact(name, dtype):
    """Value, slope and the size that its ulp is measured at, for each point."""
    line, rows = LINES[name], []
    for x in points(dtype).astype(np.float64).tolist():
        number = CONTEXT.mpf(x)
        if math.isnan(x):
            rows.append((number, number, number))
        elif abs(x) > FAR:
            slope = line.far_slope(number) if line.far_slope else number
            rows.append((line.far(number), slope, slope))
        else:
            slope = line.slope(number) if line.slope else number
            rows.append((line.value(number), slope, line.term(number) if line.term else slope))
    return list(zip(*rows, strict=True))


def errors(got, wanted, sizes):
    """|got - wanted| in ulp of the larger of ``wanted`` and ``sizes``."""
    info = ml_dtypes.finfo(got.dtype)
    lowest, digits = int(info.minexp), int(info.nmant)
    largest = CONTEXT.mpf(float(info.max)) * (1 + CONTEXT.mpf(2) ** (-digits - 2))
    found = []
    for value, number, size in zip(got.astype(np.float64).tolist(), wanted, sizes, strict=True):
        if CONTEXT.isnan(number) or math.isnan(value):
            found.append(0 if CONTEXT.isnan(number) and math.isnan(value) else math.inf)
        elif abs(number) >= largest or math.isinf(value):
            edge = abs(number) > largest * (1 - CONTEXT.mpf(2) ** (2 - digits))
            same = edge and (value > 0) == (number > 0) and abs(value) >= float(info.max) / 2
            found.append(0 if same else math.inf)
        else:
            scale = max(abs(number), abs(size))
            exponent = int(CONTEXT.floor(CONTEXT.log(scale, 2))) if scale else lowest
            ulp = CONTEXT.mpf(2) ** (max(exponent, lowest) - digits)
            found.append(float(abs(CONTEXT.mpf(value) - number) / ulp))
    return np.array(found)


@functools.cache
def computed(name, dtype, target):
    """Value and derivative at the points."""
    x = geon.placeholder([N], dtype)
    y = LINES[name].build(x)
    f = geon.make_transformer(target).computation([y, geon.deriv(geon.sum(y), x)], x)
    return f(points(dtype))


def assert_exact(name, dtype, target, which):
    wanted = exact(name, dtype)
    got = computed(name, dtype, target)[which]
    error = errors(got, wanted[which], wanted[0] if which == 0 else wanted[2])
    worst = int(np.argmax(error))
    assert error[worst] <= BOUND[dtype], (
        f"{error[worst]} ulp at {points(dtype)[worst]}: {got[worst]} for "
        f"{CONTEXT.nstr(wanted[which][worst], 20)}"
    )


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", LINES)
def test_a_limit_is_reached_exactly(name, dtype, target):
    """Far out, where value or slope is -1, 0, 1 or 2 to all digits of the dtype, it is that."""
    x = np.abs(points(dtype).astype(np.float64)) > FAR
    for which in (0, 1) if LINES[name].slope else (0,):
        wanted = exact(name, dtype)[which]
        limits = x & np.array([number in (-1, 0, 1, 2) for number in wanted])
        assert limits.any() or name == "atan"
        expected = [float(n) for n, chosen in zip(wanted, limits, strict=True) if chosen]
        got = computed(name, dtype, target)[which][limits]
        np.testing.assert_array_equal(got.astype(np.float64), expected)


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", LINES)
def test_value_on_the_whole_line(name, dtype, target):
    assert_exact(name, dtype, target, 0)


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [name for name, line in LINES.items() if line.slope])
def test_slope_on_the_whole_line(name, dtype, target):
    assert_exact(name, dtype, target, 1)


ODD = ("expm1", "elu", "atan", "tanh", "erf", "silu", "gelu", "gelu, tanh")


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ODD)
def test_zeros_keep_their_sign(name, dtype, target):
    x = points(dtype)
    zero = x == 0
    got = computed(name, dtype, target)[0]
    assert zero.sum() >= 2
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(x[zero]))
