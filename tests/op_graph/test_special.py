"""What polygamma means: correctly rounded, in a time that does not depend on the argument."""

import math

import mpmath
import numpy as np
import pytest

import geon
from geon.op_graph.special.special_functions import _polygamma_reference as polygamma

A = geon.Axis("A")
POINTS = np.concatenate(
    [
        -np.random.default_rng(21).uniform(0, 30, 60),
        np.random.default_rng(22).uniform(0, 30, 20),
        [-0.5, -20.5, -1.4616321449683623, -1e-20, -1e-300, -5e-324, -1 + 2**-53, -7 - 2**-49],
    ]
)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 20, 120])
def test_it_is_correctly_rounded(n):
    with mpmath.workprec(1200), np.errstate(over="ignore"):
        exact = [float(mpmath.psi(n, mpmath.mpf(float(x)))) for x in POINTS]
        np.testing.assert_array_equal(polygamma(n, POINTS), exact)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("fraction", [0.5, 0.125, 0.96875])
def test_far_below_zero_by_the_recurrence(n, fraction):
    """polygamma(n, x) = polygamma(n, x + N) - (-1)^n n! sum over k < N of (x + k)^-(n + 1)."""
    steps = 300_000
    terms = (fraction - np.arange(1, steps + 1, dtype=np.float64)) ** -(n + 1)
    factor = (-1) ** n * math.factorial(n)
    scale = float(mpmath.psi(n, fraction))
    expected = scale - factor * math.fsum(terms)
    got = polygamma(n, np.array([fraction - steps]))
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=1e-15 * abs(scale))


@pytest.mark.timeout(60)
def test_its_time_does_not_depend_on_x(transformer):
    """The trace's polygamma of order 1 to 3 at halves is a multiple of a power of pi, but for 1/x.

    At x = 1/2 - N it is -pi d^n cot(pi x), less a polygamma of N + 1/2, which is below 1/N.
    """
    x = geon.placeholder(A, "float64")
    results = [geon.polygamma(n, x) for n in (1, 2, 3)]
    f = transformer.computation(results, x)
    points = np.array([-8_388_607.5, -(2.0**40) - 0.5, -(2.0**51) - 0.5])
    limits = np.array([math.pi**2, 0, 2 * math.pi**4])
    *_, first, second, third = (entry.value for entry in f.trace(points))
    for got in ([first, second, third], f(points)):
        close = np.transpose(got)
        np.testing.assert_allclose(close[0], limits, rtol=0, atol=2e-7)
        np.testing.assert_allclose(close[1:], [limits] * 2, rtol=1e-11, atol=1e-20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_arrays_of_any_shape_and_dtype(n, dtype):
    points = np.array([[0.5, -0.5], [-3.25, 4.0]], dtype)
    expected = polygamma(n, points.astype("float64"))
    np.testing.assert_array_equal(polygamma(n, points), expected)
    for x, value in zip(points.flat, expected.flat, strict=True):
        assert polygamma(n, np.array(x)) == value and polygamma(n, x) == value
    assert polygamma(n, np.zeros((0, 3), dtype)).shape == (0, 3)


def test_poles():
    below = np.array([-1.0, -8_388_608.0, -(2.0**53), -1e300])
    assert np.isnan(polygamma(0, below)).all()
    for n in (1, 2, 3, 4):
        infinite = math.inf if n % 2 else -math.inf
        assert (polygamma(n, np.append(below, [0.0, -0.0])) == infinite).all()
    np.testing.assert_array_equal(polygamma(0, np.array([0.0, -0.0])), [-math.inf, math.inf])
    assert np.isnan(polygamma(2, np.array([-math.inf, math.nan]))).all()
