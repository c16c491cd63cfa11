"""The approximated functions against mpmath at fixed random points, and at every special point."""

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from geon.op_graph.special.gamma_formulas import digamma, erf, lgamma, polygamma
from geon.op_graph.special.special_functions import _polygamma_reference

_NAMES = """exp log log1p sin cos tan sqrt absolute floor round trunc where maximum minimum
    logical_and logical_or logical_not isnan equal power square sign""".split()
OPS = SimpleNamespace(
    **{name: getattr(np, name) for name in _NAMES},
    cast=lambda x, dtype: x.astype(dtype),
)
LARGEST = {"float64": 1.79e308, "float32": 3.4e38}


@pytest.fixture(autouse=True)
def _quiet_precise():
    with np.errstate(all="ignore"), mpmath.workdps(40):
        yield


def uniform(low, high, count=1500):
    return np.random.default_rng(12).uniform(low, high, count)


def decades(low, high, count=400):
    return 10.0 ** np.random.default_rng(13).uniform(low, high, count)


def largest_error(function, reference, points, dtype="float64", scale=None):
    """Return the largest error in ulp of the exact value, or of `scale(x)` where that is larger."""
    points = np.asarray(points).astype(dtype)
    got = function(points)
    assert got.dtype == points.dtype
    worst = 0.0
    for x, value in zip(points, got, strict=True):
        exact = reference(mpmath.mpf(float(x)))
        if abs(exact) > LARGEST[dtype]:
            assert np.isinf(value), x
            continue
        size = np.asarray(max(abs(float(exact)), scale(float(x)) if scale else 0.0)).astype(dtype)
        error = abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(float(np.spacing(size)))
        assert not np.isnan(value), x
        worst = max(worst, float(error))
    return worst


def exact_lgamma(x):
    return mpmath.log(abs(mpmath.gamma(x))) if x < 0 else mpmath.loggamma(x)


def lgamma_terms(x):
    distance = abs(x - round(x)) or 1e-300
    return max(abs(math.log(math.sin(math.pi * distance) / math.pi)), abs(math.lgamma(1 - x)))


def polygamma_terms(n):
    def terms(x):
        mirrored = float(abs(mpmath.psi(n, mpmath.mpf(1) - mpmath.mpf(x))))
        return max(mirrored, float(abs(mpmath.psi(n, mpmath.mpf(x)))))

    return terms


@pytest.mark.parametrize(
    "points",
    [uniform(-6, 6), uniform(0.8, 0.9), decades(-320, 2), -decades(-320, 2)],
    ids=["all", "seam", "tiny", "negative"],
)
def test_erf_in_float64_is_within_2_ulp(points):
    assert largest_error(lambda x: erf(x, OPS), mpmath.erf, points) <= 1.8


@pytest.mark.parametrize("points", [uniform(-4.5, 4.5), decades(-44, 1)], ids=["all", "tiny"])
def test_erf_in_float32_is_within_1_2_ulp(points):
    assert largest_error(lambda x: erf(x, OPS), mpmath.erf, points, "float32") <= 1.2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf_never_exceeds_1(dtype):
    x = np.linspace(0, 8, 400_001).astype(dtype)
    y = erf(x, OPS)
    assert y.max() == 1
    assert y[-1] == 1
    assert (erf(-x, OPS) == -y).all()


LGAMMA_POINTS = {
    "below 1": uniform(0, 1),
    "base": uniform(1, 4),
    "seam": uniform(3.95, 4.05),
    "far": uniform(4, 200),
    "large": decades(2, 305),
    "tiny": decades(-323, 0),
    "root 1": np.concatenate([1 + decades(-15, -1), 1 - decades(-15, -1)]),
    "root 2": np.concatenate([2 + decades(-15, -1), 2 - decades(-15, -1)]),
}


@pytest.mark.parametrize("points", LGAMMA_POINTS.values(), ids=LGAMMA_POINTS)
def test_lgamma_of_positive_numbers_is_within_3_ulp(points):
    assert largest_error(lambda x: lgamma(x, OPS), exact_lgamma, points) <= 3


def test_lgamma_of_negative_numbers_is_within_4_ulp_of_its_terms():
    points = np.concatenate([-uniform(0, 40), -decades(-323, 0), uniform(-170, -150)])
    assert largest_error(lambda x: lgamma(x, OPS), exact_lgamma, points, scale=lgamma_terms) <= 4


def test_lgamma_beside_a_pole_is_relatively_accurate():
    points = np.concatenate([n + s * decades(-14, -3, 100) for n in (-1, -2, -3) for s in (-1, 1)])
    assert largest_error(lambda x: lgamma(x, OPS), exact_lgamma, points) <= 3


DIGAMMA_POINTS = {
    "below 1": uniform(0, 1),
    "base": uniform(1, 4),
    "seam": uniform(3.95, 4.05),
    "far": uniform(4, 200),
    "large": decades(2, 305),
    "tiny": decades(-307, 0),
    "root": 1.4616321449683622 + np.concatenate([decades(-14, -1), -decades(-14, -1)]),
}


@pytest.mark.parametrize("points", DIGAMMA_POINTS.values(), ids=DIGAMMA_POINTS)
def test_digamma_of_positive_numbers_is_within_3_ulp(points):
    assert largest_error(lambda x: digamma(x, OPS), lambda x: mpmath.psi(0, x), points) <= 2.5


def test_digamma_of_negative_numbers_is_within_7_ulp_of_its_terms():
    points = np.concatenate([-uniform(0, 40), -decades(-307, 0), np.arange(-20, 0) + 0.5])
    error = largest_error(
        lambda x: digamma(x, OPS),
        lambda x: mpmath.psi(0, x),
        points,
        scale=polygamma_terms(0),
    )
    assert error <= 7


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_polygamma_of_positive_numbers_is_within_2_ulp_and_less_than_one_per_order(n):
    points = np.concatenate([uniform(0, 20, 500), decades(-20, 20)])
    error = largest_error(lambda x: polygamma(n, x, OPS), lambda x: mpmath.psi(n, x), points)
    assert error <= 2 + 0.7 * n


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_polygamma_of_negative_numbers_is_within_a_few_ulp_of_its_terms(n):
    points = np.concatenate([-uniform(0, 10, 500), np.arange(-5, 0) + 0.5])
    error = largest_error(
        lambda x: polygamma(n, x, OPS),
        lambda x: mpmath.psi(n, x),
        points,
        scale=polygamma_terms(n),
    )
    assert error <= 6 + 2 * n


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_polygamma_far_below_zero_is_within_a_few_ulp_of_its_terms(n):
    points = np.concatenate([-decades(1, 14, 200), np.round(-decades(1, 14, 50)) + 0.5])
    error = largest_error(
        lambda x: polygamma(n, x, OPS),
        lambda x: mpmath.mpf(float(_polygamma_reference(n, np.array([float(x)]))[0])),
        points[points != np.round(points)],
        scale=lambda x: float(_polygamma_reference(n, np.array([x - np.round(x)]))[0]),
    )
    assert error <= 6 + 2 * n


@pytest.mark.parametrize("n", [20, 60, 120])
def test_polygamma_of_high_order_keeps_its_range(n):
    points = np.array([0.5, 2.0, 30.0, 1000.0, -0.3, -2.7, -1.2])
    got = polygamma(n, points, OPS)
    exact = [float(mpmath.psi(n, mpmath.mpf(float(x)))) for x in points]
    np.testing.assert_allclose(got, exact, rtol=n * 1e-15)


@pytest.mark.parametrize("function", [lgamma, digamma, lambda x, ops: polygamma(1, x, ops)])
def test_float32_is_rounded_from_float64(function):
    points = uniform(-20, 20).astype("float32")
    got = function(points, OPS)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, function(points.astype("float64"), OPS).astype("float32"))


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "points", "values"),
    [
        (erf, [0, -0.0, INF, -INF, NAN], [0, -0.0, 1, -1, NAN]),
        (
            lgamma,
            [INF, -INF, NAN, 0, -0.0, -1, -2, -1e18, 1, 2],
            [INF, INF, NAN, INF, INF, INF, INF, INF, 0, 0],
        ),
        (digamma, [INF, -INF, NAN, 0, -0.0, -1, -2, -1e18], [INF, NAN, NAN, -INF, INF] + [NAN] * 3),
        (
            lambda x, ops: polygamma(1, x, ops),
            [INF, -INF, NAN, 0, -0.0, -1, -2],
            [0, NAN, NAN, INF, INF, INF, INF],
        ),
        (
            lambda x, ops: polygamma(2, x, ops),
            [INF, NAN, 0, -0.0, -1, -2],
            [0, NAN, -INF, -INF, -INF, -INF],
        ),
    ],
    ids=["erf", "lgamma", "digamma", "trigamma", "tetragamma"],
)
def test_special_points(function, points, values, dtype):
    got = function(np.array(points, dtype), OPS)
    np.testing.assert_array_equal(got, np.array(values, dtype))


def test_denormals():
    x = np.array([5e-324, -5e-324, 3e-320])
    np.testing.assert_array_equal(lgamma(x, OPS), -np.log(np.abs(x)))
    # 2 / sqrt(pi) times the smallest denormal rounds to it; mirrored points keep their sign.
    np.testing.assert_array_equal(erf(x[:2], OPS), x[:2])


def test_derivatives_follow_from_differences():
    x = np.concatenate([uniform(-4.9, 8, 300), [0.5, 1.0, 1.5, 2.0, 4.0]])
    x = x[(x > 0.3) | (np.abs(x - np.round(x)) > 0.1)]
    h = 1e-5
    chain = [lgamma, digamma] + [lambda x, ops, n=n: polygamma(n, x, ops) for n in (1, 2, 3)]
    for function, derivative in zip(chain, chain[1:], strict=False):
        slope = (function(x + h, OPS) - function(x - h, OPS)) / (2 * h)
        np.testing.assert_allclose(derivative(x, OPS), slope, rtol=3e-6, atol=3e-6)


def test_polygamma_of_order_0_is_digamma_and_bad_orders_are_refused():
    x = uniform(-3, 3, 50)
    np.testing.assert_array_equal(polygamma(0, x, OPS), digamma(x, OPS))
    for n in (-1, 121):
        with pytest.raises(ValueError, match="order from 0 to 120"):
            polygamma(n, x, OPS)
