"""Errors of special functions over their domains are below the bounds that their formulas state."""

import mpmath
import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.special.special_functions import precise

N = geon.Axis("N")
RANDOM = np.random.default_rng(11)
COUNT = 150


def spread(low, high):
    """Numbers spread evenly over the exponents between two."""
    return np.exp(RANDOM.uniform(np.log(low), np.log(high), COUNT))


def computed(transformer, build, arrays, dtype="float64"):
    leaves = [geon.placeholder([N], dtype) for _ in arrays]
    f = transformer.computation(build(*leaves), *leaves)
    return f(*[np.asarray(array, dtype) for array in arrays])


def relative(found, wanted):
    return np.abs(np.asarray(found, "float64") / wanted - 1)


A = spread(1e-3, 1e3)
X = A * np.exp(RANDOM.normal(0, 3 / np.sqrt(A + 0.5)))
B = spread(1e-3, 1e3)
MEAN = A / (A + B)
SHARE = np.clip(
    MEAN + RANDOM.normal(0, 2, COUNT) * np.sqrt(MEAN * (1 - MEAN) / (A + B + 1)), 1e-6, 1 - 1e-6
)


@pytest.mark.parametrize(
    "name, arrays, bound",
    [
        ("gammainc", (A, X), 1e-14),
        ("gammaincc", (A, X), 1e-13),
        ("betainc", (A, B, SHARE), 4e-12),
    ],
)
def test_incomplete_functions_are_relatively_accurate(transformer, name, arrays, bound):
    for dtype, least in (("float64", 1e-200), ("float32", 1e-30)):
        rounded = [array.astype(dtype).astype("float64") for array in arrays]
        wanted = PRIMITIVES[name].reference(*rounded)
        found = computed(transformer, getattr(geon, name), rounded, dtype)
        inside = wanted > least
        limit = bound if dtype == "float64" else 1e-6
        assert relative(found[inside], wanted[inside]).max() < limit


def test_incomplete_beta_of_a_small_second_shape(transformer):
    """Near x = 1, where the upper tail is nearly 1 and the lower one has two scales."""
    a, b = 10 ** RANDOM.uniform(-2, 3, 300), 10 ** RANDOM.uniform(-4, 0, 300)
    x = 1 - 10 ** RANDOM.uniform(-6, -0.5, 300)
    wanted = PRIMITIVES["betainc"].reference(a, b, x)
    inside = wanted > 1e-200
    found = computed(transformer, geon.betainc, (a, b, x))
    assert relative(found[inside], wanted[inside]).max() < 2e-11


def test_incomplete_beta_of_huge_shapes(transformer):
    """With one, it is an incomplete gamma function; with two, a step at the mean."""
    scale = 10.0 ** np.arange(17, 308, 10)
    for shape in (1e-10, 0.5, 3.0, 40.0):
        for times in (0.1, 1.0, 4.0):
            wanted = PRIMITIVES["gammainc"].reference(np.float64(shape), np.float64(times))
            given = np.full_like(scale, shape), scale, times / scale
            np.testing.assert_allclose(computed(transformer, geon.betainc, given), wanted, 1e-13)
    huge = np.array([1e300, 1e300, 1e300, 1e45, 1e45, 1e60, 3.0, 1e300])
    other = np.array([1e300, 1e300, 1e300, 1e45, 1e300, 1e45, 1e300, 3.0])
    x = np.array([0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 0.5, 1e-254, 0.999, 1e-9, 0.999])
    found = computed(transformer, geon.betainc, (huge, other, x))
    np.testing.assert_array_equal(found, [0.5, 0, 1, 0.5, 1, 0, 1, 0])


def test_slopes_of_the_incomplete_beta_at_huge_shapes():
    a, b, x = (np.array(values) for values in ([3.0, 1e45], [1e200, 1e300], [2e-200, 1e-255]))
    slopes = [
        computed(
            geon.NumPyTransformer(),
            lambda *args, k=which: geon.deriv(geon.betainc(*args).sum(), args[k]),
            (a, b, x),
        )
        for which in range(3)
    ]
    in_a = computed(
        geon.NumPyTransformer(),
        lambda a, x: geon.deriv(geon.gammainc(a, x).sum(), a),
        (a[:1], 1e200 * x[:1]),
    )
    density = 1e200 * 2.0**2 * np.exp(-2.0) / 2
    wanted = [in_a[0], density * x[0] / b[0], density]
    np.testing.assert_allclose([slope[0] for slope in slopes], wanted, 1e-9)
    np.testing.assert_array_equal([slope[1] for slope in slopes], 0)


def test_large_shapes_do_not_cancel(transformer):
    a = np.array([1e5, 1e8, 1e12, 1e300, 2.0])
    x = np.array([1e5 + 300, 1e8 - 5000, 1e12, 1.0, 1e300])
    found = computed(transformer, geon.gammainc, (a, x))
    np.testing.assert_allclose(found[:3], PRIMITIVES["gammainc"].reference(a[:3], x[:3]), 1e-12)
    np.testing.assert_array_equal(found[3:], [0, 1])


def slope(function, args, which):
    """The derivative of a function of mpmath numbers in one of them."""
    with mpmath.workdps(60):
        given = [mpmath.mpf(float(arg)) for arg in args]
        return float(
            mpmath.diff(function, tuple(given), tuple(int(k == which) for k in range(len(given))))
        )


def test_slopes_in_the_shapes():
    few = slice(0, 20)
    lower = lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)  # noqa: E731  # read below
    found = computed(
        geon.NumPyTransformer(),
        lambda a, x: geon.deriv(geon.gammainc(a, x).sum(), a),
        (A[few], X[few]),
    )
    wanted = np.array([slope(lower, args, 0) for args in zip(A[few], X[few], strict=True)])
    np.testing.assert_allclose(found, wanted, 1e-12)
    share = lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)  # noqa: E731  # as above
    a, b = RANDOM.uniform(0.3, 20, (2, 20))
    x = a / (a + b)
    for which in range(2):
        found = computed(
            geon.NumPyTransformer(),
            lambda *args, k=which: geon.deriv(geon.betainc(*args).sum(), args[k]),
            (a, b, x),
        )
        wanted = [slope(share, args, which) for args in zip(a, b, x, strict=True)]
        np.testing.assert_allclose(found, wanted, 1e-10)


POSITIVE = np.concatenate(
    [RANDOM.uniform(0, 30, COUNT), 10 ** RANDOM.uniform(-8, 2, COUNT), [2, 8]]
)
BOTH = np.concatenate([POSITIVE, -POSITIVE])


@pytest.mark.parametrize("name", "i0 i0e i1 i1e j0 j1 y0 y1 k0 k0e k1 k1e".split())
def test_bessel_functions(transformer, name):
    x = POSITIVE if name[0] in "yk" else BOTH
    wanted = PRIMITIVES[name].reference(x)
    found = computed(transformer, getattr(geon, name), (x,))
    scale = np.abs(wanted)
    if name[0] in "jy":
        scale = np.maximum(scale, np.minimum(1, 1 / np.sqrt(np.abs(x))))
    assert (np.abs(found - wanted) <= 12 * 2.0**-53 * 2 * scale).all()


@pytest.mark.parametrize("name", ["airy_ai", "airy_aip", "airy_bi", "airy_bip"])
def test_airy_functions(transformer, name):
    """Relative to the value, or below 0 to the amplitude; the exponent is rounded."""
    x = np.concatenate(
        [RANDOM.uniform(-30, 12, COUNT), 10 ** RANDOM.uniform(-8, 2, COUNT),
         -(10 ** RANDOM.uniform(-8, 4, COUNT)), [-4, -1, 0, 2, 8, 103]]
    )  # fmt: skip
    wanted = PRIMITIVES[name].reference(x)
    found = computed(transformer, getattr(geon, name), (x,))
    size = np.maximum(np.abs(x), 1)
    amplitude = np.where(x < 0, size ** (0.25 if name[-1] == "p" else -0.25), 0)
    scale = np.maximum(np.abs(wanted), amplitude)
    assert (np.abs(found - wanted) <= (10 + 3 * size**1.5 * 2 / 3) * 2.0**-53 * scale).all()
    edges = computed(transformer, getattr(geon, name), (np.array([1e5, np.inf, -1.1e8, np.nan]),))
    limit = np.inf if "b" in name else 0
    np.testing.assert_array_equal(edges, [limit, limit, np.nan, np.nan])


def test_ndtri_in_both_tails(transformer):
    p = np.concatenate([10 ** RANDOM.uniform(-300, -1, COUNT), RANDOM.uniform(0, 1, COUNT)])
    found = computed(transformer, geon.ndtri, (p,))
    wanted = PRIMITIVES["ndtri"].reference(p)
    assert (np.abs(found - wanted) <= 4 * np.spacing(np.abs(wanted)) + 1e-16).all()
    edges = computed(transformer, geon.ndtri, (np.array([0, 0.5, 1, -0.1, 1.1]),))
    np.testing.assert_array_equal(edges, [-np.inf, 0, np.inf, np.nan, np.nan])


def test_zeta_and_its_poles(transformer):
    s, q = RANDOM.uniform(1.01, 30, COUNT), 10 ** RANDOM.uniform(-2, 2, COUNT)
    with mpmath.workdps(100):
        wanted = precise(mpmath.zeta)(s, q)
    found = computed(transformer, geon.zeta, (s, q))
    inside = wanted > 1e-30  # mpmath has absolute errors
    assert relative(found[inside], wanted[inside]).max() < 4e-15
    found = computed(
        transformer, geon.zeta, (np.array([1.0, 2, 2, 0.5]), np.array([3.0, 0, -0.5, 1]))
    )
    np.testing.assert_array_equal(found, [np.inf, np.inf, np.nan, np.nan])


@pytest.mark.parametrize(
    "family", ["chebyshev_t", "chebyshev_u", "hermite_h", "laguerre", "legendre"]
)
def test_orthogonal_polynomials(family):
    theirs = {
        "chebyshev_t": mpmath.chebyt, "chebyshev_u": mpmath.chebyu, "hermite_h": mpmath.hermite,
        "laguerre": lambda n, x: mpmath.laguerre(n, 0, x), "legendre": mpmath.legendre,
    }[family]  # fmt: skip
    x = np.linspace(-0.9, 0.9, 7)
    for n in (0, 1, 2, 6):
        found = computed(
            geon.NumPyTransformer(), lambda t, n=n: geon.orthogonal_polynomial(family, n, t), (x,)
        )
        wanted = [float(theirs(n, mpmath.mpf(float(each)))) for each in x]
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-12)
    for arguments in (("jacobi", 2), (family, -1), (family, 1.5)):
        with pytest.raises(geon.ArgumentError, match="orthogonal_polynomial at"):
            geon.orthogonal_polynomial(*arguments, 0.5)
