"""Elementwise composites and functions of named matrices, beside NumPy's of the same name."""

import math

import numpy as np
import pytest

import geon
from geon.testing.cases import for_each

N = geon.Axis("N")
A, B = geon.Axis("A", 3), geon.Axis("B", 4)
VALUES = np.array(
    [0.0, -0.0, 1, -1, 0.5, 2.5, -3.5, 1e-3, -7, 1e30, 1e-30, np.inf, -np.inf, np.nan, 1e-42, 123.4]
)
ONE = "signbit log2 log10 exp2 cbrt deg2rad rad2deg nan_to_num".split()
TWO = """hypot logaddexp logaddexp2 fmod fmin fmax copysign nextafter heaviside isclose
    float_power""".split()


def computed(transformer, made, *leaves):
    return transformer.computation(made, *leaves)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_those_of_numpy(transformer, dtype):
    x, y = geon.placeholder([N], dtype), geon.placeholder([N], dtype)
    left, right = (each.ravel() for each in np.meshgrid(*[VALUES.astype(dtype)] * 2))
    with np.errstate(all="ignore"):
        made = [getattr(geon, name)(x) for name in ONE] + [getattr(geon, n)(x, y) for n in TWO]
        found = computed(transformer, made, x, y)(left, right)
        wanted = [getattr(np, n)(left) for n in ONE] + [getattr(np, n)(left, right) for n in TWO]
    for name, value, theirs in zip([*ONE, *TWO], found, wanted, strict=True):
        if value.dtype == bool:
            np.testing.assert_array_equal(value, theirs, name)
            continue
        tiny = np.finfo(value.dtype).tiny
        np.testing.assert_allclose(value, theirs, 6 * np.finfo(value.dtype).eps, tiny, err_msg=name)
        if name in ("copysign", "fmod"):
            numbers = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(value)[numbers], np.signbit(theirs)[numbers])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_bits_there_and_back(transformer, dtype):
    x = geon.placeholder([N], dtype)
    whole = f"int{8 * x.dtype.itemsize}"
    values = VALUES.astype(x.dtype)
    bits = geon.bitcast(x, whole)
    found, same = computed(transformer, [bits, geon.bitcast(bits, dtype)], x)(values)
    np.testing.assert_array_equal(found, values.view(whole))
    np.testing.assert_array_equal(same.view(whole), values.view(whole))
    mantissa, exponent = computed(transformer, list(geon.frexp(x)), x)(values)
    wide = np.frexp(values.astype("float64"))
    np.testing.assert_array_equal(mantissa.astype("float64"), wide[0])
    np.testing.assert_array_equal(exponent, wide[1])


@pytest.mark.parametrize("dtype, most", [("float32", 300), ("float64", 2200)])
def test_ldexp_rounds_once_and_logarithms_of_powers_are_exact(transformer, dtype, most):
    random = np.random.default_rng(2)
    x, n = geon.placeholder([N], dtype), geon.placeholder([N], "int64")
    values = (random.normal(size=2000) * 10.0 ** random.integers(-30, 30, 2000)).astype(dtype)
    powers = random.integers(-most, most, 2000)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.ldexp(values, powers)
    np.testing.assert_array_equal(
        computed(transformer, geon.ldexp(x, n), x, n)(values, powers), wanted
    )
    exponents = np.arange(-140 if dtype == "float32" else -1070, 127)
    exact = np.ldexp(np.ones(len(exponents)), exponents).astype(dtype)
    np.testing.assert_array_equal(computed(transformer, geon.log2(x), x)(exact), exponents)
    tens = np.array([10.0**k for k in range(11)])
    np.testing.assert_array_equal(computed(transformer, geon.log10(x), x)(tens), np.arange(11))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers(transformer, dtype):
    random = np.random.default_rng(3)
    low = 0 if dtype.startswith("u") else -100
    left, right = random.integers(low, 100, (2, 300)).astype(dtype)
    x, y = geon.placeholder([N], dtype), geon.placeholder([N], dtype)
    made = [geon.gcd(x, y), geon.lcm(x, y), geon.fmod(x, y), geon.trunc_divide(x, y),
            geon.round(x, decimals=-1)]  # fmt: skip
    found = computed(transformer, made, x, y)(left, right)
    some = np.where(right == 0, 1, right).astype("float64")
    wanted = [
        np.gcd(left, right), np.lcm(left, right), np.where(right == 0, 0, np.fmod(left, some)),
        np.where(right == 0, 0, np.trunc(left / some)), np.round(left.astype("float64"), -1),
    ]  # fmt: skip
    for value, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(value, theirs.astype(dtype))


# Derivatives at kinks and limits -----------------------------------------------------------------

AT = {
    "cbrt at 0": (geon.cbrt, [0.0], [math.inf]),
    "hypot at 0": (geon.hypot, [0.0, 0.0], [0, 0]),
    "copysign at 0": (geon.copysign, [0.0, -1.0], [-1, 0]),
    "fmod at 0": (geon.fmod, [0.0, 2.0], [1, 0]),
    "fmod": (geon.fmod, [-7.5, 2.0], [1, 3]),
    "frac": (geon.frac, [-1.25], [1]),
    "fmax of a tie": (geon.fmax, [1.0, 1.0], [0.5, 0.5]),
    "fmax of NaN": (geon.fmax, [math.nan, 1.0], [0, 1]),
    "logaddexp of infinities": (geon.logaddexp, [math.inf, math.inf], [0.5, 0.5]),
    "logaddexp2": (geon.logaddexp2, [1.0, 1.0], [0.5, 0.5]),
    "xlogy at 0": (geon.xlogy, [0.0, 0.0], [0, 0]),
    "xlogy beside 0": (geon.xlogy, [0.0, 2.0], [math.log(2), 0]),
    "sinc at 0": (geon.sinc, [0.0], [0]),
    "spherical_j0 at 0": (geon.spherical_j0, [0.0], [0]),
    "logit at 1/2": (geon.logit, [0.5], [4]),
    "nan_to_num": (geon.nan_to_num, [math.nan], [0]),
    "log2": (geon.log2, [4.0], [1 / (4 * math.log(2))]),
    "ldexp": (lambda x: geon.ldexp(x, 3), [2.0], [8]),
    "frexp": (lambda x: geon.frexp(x)[0], [6.0], [0.125]),
    "cdist at 0": (lambda x: geon.cdist(x.broadcast([A]), x.broadcast([A]), A), [2.0], [0]),
}


@for_each("name", AT)
def test_derivatives_at_kinks(name):
    build, values, wanted = AT[name]
    leaves = [geon.placeholder([], "float64") for _ in values]
    made = geon.deriv(build(*leaves), leaves, unreached="zero")
    found = geon.NumPyTransformer().computation(made, *leaves)(*values)
    np.testing.assert_allclose(found, wanted, 1e-14)


def test_sinc_has_its_second_derivative_at_0():
    x = geon.placeholder([], "float64")
    second = geon.deriv(geon.deriv(geon.sinc(x), x), x)
    assert geon.NumPyTransformer().computation(second, x)(0.0) == pytest.approx(-(math.pi**2) / 3)


# Matrices ----------------------------------------------------------------------------------------


def test_functions_of_matrices_are_those_of_numpy(transformer):
    random = np.random.default_rng(4)
    x, s = geon.placeholder([A, B], "float64"), geon.placeholder([A, A.prime], "float64")
    v = geon.placeholder([A], "float64")
    a, square, c = random.normal(size=(3, 4)), random.normal(size=(3, 3)), random.normal(size=3)
    five = geon.Axis("P", 5)
    pairs = [
        *[(geon.tril(x, A, B, k), np.tril(a, k)) for k in (-1, 0, 2)],
        *[(geon.triu(x, "A", "B", k), np.triu(a, k)) for k in (-1, 0, 2)],
        *[(geon.eye(A, B, offset=k), np.eye(3, 4, k)) for k in (-1, 0, 2)],
        (geon.diag_embed(v, A, geon.Axis("D")), np.diag(c)),
        (geon.trace(s, A, A.prime), np.trace(square)),
        (geon.vander(v, five), np.vander(c, 5, True)),
        (geon.vander(v, five, increasing=False), np.vander(c, 5)),
        (geon.kron(x, x), np.kron(a, a)),
        (geon.cross(x, v, A), np.cross(a, c[:, None], axis=0)),
        (geon.linspace(0.1, -2, five, "float64"), np.linspace(0.1, -2, 5)),
        (geon.linspace(v, 1.0, five), np.linspace(c, 1.0, 5)),
        (geon.logspace(0.1, 1, five, dtype="float64"), np.logspace(0.1, 1, 5)),
        (geon.repeat(x, {A: 2, B: 3}), a.repeat(2, 0).repeat(3, 1)),
        (geon.tile(x, {A: 2, B: 3}), np.tile(a, (2, 3))),
        (geon.diff(x, B, 2), np.diff(a, 2)),
        (geon.cov(x, A, B), np.cov(a)),
        (geon.cov(x, A, B, correction=0), np.cov(a, ddof=0)),
        (geon.corrcoef(x, A, B), np.corrcoef(a)),
    ]
    found = transformer.computation([made for made, _ in pairs], x, s, v)(a, square, c)
    for value, (made, wanted) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(value, wanted, 1e-12, 1e-13, err_msg=str(made))


X = geon.placeholder([A, B], name="X")
REFUSED = {
    "one axis twice": (lambda: geon.tril(X, A, A), geon.AxisError, "are both 'A'"),
    "a taken axis": (lambda: geon.diag_embed(X, A, B), geon.AxisError, "has the axis 'B' already"),
    "four components": (lambda: geon.cross(X, X, B), geon.AxisError, "has 4 components"),
    "no shared axis": (
        lambda: geon.kron(X, geon.placeholder([N])), geon.AxisError, "share no axis",
    ),
    "a negative count": (lambda: geon.tile(X, {A: -1}), geon.ArgumentError, "at least 0, not -1"),
    "a fraction": (lambda: geon.diff(X, A, 0.5), geon.ArgumentError, "not 0.5"),
    "variables observed": (lambda: geon.cov(X, A, A), geon.AxisError, "give two axes"),
    "a norm below 0": (lambda: geon.cdist(X, X, B, -1), geon.ArgumentError, "at least 0, not -1"),
    "a float exponent": (lambda: geon.ldexp(X, X), geon.DTypeError, "geon.exp2"),
    "another width": (lambda: geon.bitcast(X, "int16"), geon.DTypeError, "give one of int32"),
    "bits of truth": (lambda: geon.bitcast(X > 0, "int8"), geon.DTypeError, "geon.cast it first"),
    "numbers alone": (lambda: geon.nextafter(1.0, 2.0), geon.DTypeError, "no neighbours"),
    "floats": (lambda: geon.gcd(X, X), geon.DTypeError, "integers"),
}  # fmt: skip


@for_each("name", REFUSED)
def test_what_is_refused_says_the_cure(name):
    build, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        build()
