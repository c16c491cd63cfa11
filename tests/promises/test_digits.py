"""What pages and docstrings say of digits, where no test of a whole line holds it."""

from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest

import geon
from geon.op_graph.special.formula_ops import product_error

N = geon.Axis("N")
POINTS = np.array([-6.3, -3.1, -2.2, -0.3, 0.01, 0.4, 1.07, 1.5, 1.9, 2.8, 4.2, 7.7, 12.0, 20.0])
EXACT = {
    "erf": lambda x: -mpmath.erfc(x),  # but for a constant
    "erfc": mpmath.erfc,
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
}
ORDERS = 4


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_of_any_order_keep_their_digits(transformer, name):
    """16 units of 2^-52 away from roots; for ``erfcx`` from 1 to 2 a digit more an order."""
    x = geon.placeholder(N, "float64")
    made = [getattr(geon, name)(x)]
    for _ in range(ORDERS):
        made.append(geon.deriv(geon.sum(made[-1]), x))
    found = transformer.computation(made[1:], x)(POINTS)
    with mpmath.workprec(700):
        for order, values in enumerate(found, 1):
            for point, value in zip(POINTS.tolist(), values.tolist(), strict=True):
                exact = mpmath.diff(EXACT[name], mpmath.mpf(point), order)
                between = name == "erfcx" and 1 <= point <= 2
                bound = max(16, 10**order) if between else 16
                assert abs(mpmath.mpf(value) - exact) <= bound * 2**-52 * abs(exact), (order, point)


@pytest.mark.parametrize("function", ["gelu", "gelu of tanh", "silu", "erfc", "ndtr", "erfcx"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32_and_rounded_once(transformer, dtype, function):
    """Every half there is: bit for bit the value, and the slope, in float32 rounded to a half."""

    def build(x):
        name, _, form = function.partition(" of ")
        y = getattr(geon, name)(x, **({"approximate": form} if form else {}))
        return [y, geon.deriv(geon.sum(y), x)]

    kind = np.dtype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    half, whole = geon.placeholder(N, dtype), geon.placeholder(N, "float32")
    got = transformer.computation(build(half), half)(every)
    wide = transformer.computation(build(whole), whole)(every.astype(np.float32))
    for value, exact in zip(got, wide, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = exact.astype(kind)
        np.testing.assert_array_equal(value.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("name", "end"), [("sigmoid", 17.5), ("tanh", 10.0)])
def test_slopes_are_made_of_the_values(transformer, name, end):
    """Right to the rounding of the value, and so 0 where it has reached its limit."""
    x = geon.placeholder(N)
    y = getattr(geon, name)(x)
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], x)
    points = np.linspace(-8, 8, 1001, dtype=np.float32)
    value, slope = f(points)
    wide = value.astype(np.float64)
    exact = wide * (1 - wide) if name == "sigmoid" else 1 - wide**2
    np.testing.assert_allclose(slope, exact, rtol=1e-6, atol=6e-8)
    ends = np.array([end, 30, np.inf], np.float32)
    for far in (ends, -ends) if name == "tanh" else (ends,):
        np.testing.assert_array_equal(f(far)[1], [0, 0, 0])
    assert sum(line.count(f"{name}(") for line in f.explain("simplify").splitlines()) == 1


def test_a_rounding_error_of_a_product_is_exact():
    random = np.random.default_rng(8)
    x, y = random.normal(size=(2, 3000)) * 10.0 ** random.integers(-60, 100, (2, 3000))
    product = x * y
    errors = product_error(x, y, product)
    assert np.count_nonzero(errors) > 2000
    for a, b, c, e in zip(*(v.tolist() for v in (x, y, product, errors)), strict=True):
        assert Fraction(a) * Fraction(b) - Fraction(c) == Fraction(e), (a, b)
