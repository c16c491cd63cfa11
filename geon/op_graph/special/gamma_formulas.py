"""Formulas of erf, lgamma, digamma and polygamma for targets that lack them.

Each is written once against an abstract namespace `ops` (functions named as in NumPy) and Python's
arithmetic operators and comparisons, so that the same text builds ops or runs on arrays. `x` has
dtype float32 or float64 and a `dtype` attribute; the result has the dtype of `x`. Both sides of
every `where` are computed everywhere, so a caller on arrays silences floating-point warnings.

The error figures are measured against mpmath, in units in the last place (ulp) of the result.
Coefficients were fitted here with the Remez exchange in 50-digit arithmetic; "fit" in a comment is
the largest relative error of the fitted expression before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["digamma", "erf", "lgamma", "polygamma"]

_SINGLE_ERF_END = 3.925  # erf rounds to 1 in float32 above 3.9193

# erf(x) = x N(x^2) / D(x^2) for |x| <= 3.925; fit 1.9e-8.
_SINGLE_ERF_NUMERATOR = (
    0.053774998,
    7.4865146,
    99.154686,
    1386.9274,
    5009.3667,
    29656.904,
)
_SINGLE_ERF_DENOMINATOR = (1.0, 30.589804, 393.803, 3001.0518, 13200.336, 26282.748)

# erf(x) = x P(x^2) for |x| <= 0.85; fit 1.2e-17.
_ERF_SMALL = (
    1.0662587548890052e-08,
    -1.5692365480438343e-07,
    1.6398391313591031e-06,
    -1.4921859182741712e-05,
    0.00012055187113328684,
    -0.0008548323403655116,
    0.005223977569263936,
    -0.026866170640031106,
    0.11283791670931316,
    -0.37612638903183315,
    1.1283791670955126,
)

# erf(x) = 1 - exp(-x^2) P(1 / (x + 2.5)) for x >= 0.85; error at most 4.3e-17.
_ERF_LARGE = (
    209.8912700754276,
    -1057.1062345736884,
    1938.040240640742,
    -1776.1467538810944,
    886.7422788070531,
    -271.64974226958066,
    77.64027495992225,
    -3.8790971215241243,
    4.42739296572073,
    1.3225152044434947,
    0.56810724739424,
    -7.927938550736819e-05,
)

# lgamma(1 + y) = y (y - 1) (3/8 + N(y) / D(y)) for 0 <= y <= 3; fit 3.4e-17. The constant, near
# the whole factor, keeps the rounding errors of N and D small in it.
_LGAMMA_NUMERATOR = (
    -8.331315868039817e-05,
    -0.3612575646749412,
    -11.967003863923825,
    -113.66601085193366,
    -394.5652201837096,
    -350.6870242010129,
    724.5301848737705,
    1535.9943470626495,
    760.0525487674637,
)
_LGAMMA_DENOMINATOR = (
    1.0,
    41.44110552632321,
    549.5757212589548,
    3256.5703373157135,
    9783.313325969017,
    15434.92993916626,
    12154.359572974428,
    3758.6234930788605,
)

# lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) = P(1 / x^2) / x for x >= 4; fit 4.3e-18.
_STIRLING = (
    -0.007937497119714141,
    0.0045708934897371765,
    -0.00181621457930305,
    0.000838229847069917,
    -0.0005951631454427607,
    0.0007936498755810553,
    -0.0027777777721072774,
    0.08333333333332063,
)
_HALF_LOG_TAU_LESS_HALF = 0.4189385332046727  # log(2 pi) / 2 - 1/2

# digamma(1 + y) = (1 + y - root) (5/8 + N(y) / D(y)) for 0 <= y <= 3; fit 4.3e-17.
_DIGAMMA_NUMERATOR = (
    -7.60779409071435e-05,
    -0.6118992829089188,
    -22.973430514277545,
    -246.43983928085112,
    -904.2015522611356,
    -400.52054260013665,
    3282.985638458707,
    3994.6751799370027,
)
_DIGAMMA_DENOMINATOR = (
    1.0,
    44.14866265908836,
    619.6286125376366,
    3763.895574021723,
    10779.191351133326,
    13979.370854532603,
    6387.595224696836,
)
_DIGAMMA_ROOT_HIGH = 0.46163214496836225  # the positive root of digamma, less 1, in two parts
_DIGAMMA_ROOT_LOW = 9.549995429965697e-17

# log x - 1 / (2 x) - digamma(x) = P(1 / x^2) / x^2 for x >= 4; fit 3.0e-17.
_DIGAMMA_ASYMPTOTIC = (
    -0.10483350367104984,
    0.05601012549529007,
    -0.01964658904155827,
    0.007527301079559866,
    -0.004165674039494412,
    0.003968242332288535,
    -0.008333333265230433,
    0.08333333333319128,
)

# The Bernoulli numbers B_2, B_4, ..., B_22, as numerators and denominators (Abramowitz and Stegun,
# table 23.2).
BERNOULLI = (
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174611, 330),
    (854513, 138),
)
_SUMMED_TERMS = 7  # with B_2 to B_22 the truncation error is below 2^-56 of the value
_LARGEST_ORDER = 120  # above it, coefficients of the reflection come near the float64 maximum


def erf(x: Any, ops: Any) -> Any:
    """Return the error function of `x`; at most 1.8 ulp off in float64, 1.2 ulp in float32.

    float64: x P(x^2) below 0.85, else 1 - exp(-x^2) P(1 / (|x| + 2.5)), after Abramowitz and
    Stegun 7.1.26 and Cody (1969), with fitted coefficients. float32: one rational function in x^2
    without an exponential, computed in float64 and never above 1 in size. Infinities give -1 and 1,
    NaN gives NaN.
    """
    if str(x.dtype) == "float32":
        wide = ops.cast(x, "float64")
        s = ops.minimum(wide * wide, _SINGLE_ERF_END**2)
        quotient = wide * horner(s, _SINGLE_ERF_NUMERATOR) / horner(s, _SINGLE_ERF_DENOMINATOR)
        return ops.cast(ops.maximum(ops.minimum(quotient, 1.0), -1.0), "float32")
    size = ops.absolute(x)
    s = x * x
    small = x * horner(s, _ERF_SMALL)
    tail = ops.exp(-s) * horner(1.0 / (size + 2.5), _ERF_LARGE)
    return ops.where(size < 0.85, small, ops.sign(x) * (1.0 - tail))


def lgamma(x: Any, ops: Any) -> Any:
    """Return log|gamma(x)|; at most 3 ulp off for x > 0 in float64, also near its roots 1 and 2.

    For x < 0 the error is a few ulp of the larger of the two terms of the reflection, which near
    a root of lgamma is an absolute error. Poles (0 and the negative integers) and both infinities
    give inf. float32 is computed in float64.

    With y = x - 1 for x >= 1 and y = |x| below, lgamma(1 + y) is a fitted rational function for
    y < 3 and Stirling's series with fitted coefficients above (Abramowitz and Stegun 6.1.40); then
    gamma(x) = gamma(1 + x) / x for 0 < x < 1, and the reflection 6.1.17 for x < 0.
    """
    if str(x.dtype) == "float32":
        return ops.cast(lgamma(ops.cast(x, "float64"), ops), "float32")
    below, mirrored = x < 1.0, x <= 0.0
    y = ops.where(below, ops.absolute(x), x - 1.0)
    base = lgamma1p(y)
    shifted = y + 1.0
    r = 1.0 / shifted
    far = (y + 0.5) * (ops.log(shifted) - 1.0)
    far = far + (horner(r * r, _STIRLING) * r + _HALF_LOG_TAU_LESS_HALF)
    value = ops.where(y < 3.0, base, far)
    nearest = ops.round(x)
    distance = ops.absolute(x - nearest)
    # sin(pi d) / pi is d itself where d is tiny: the product would lose bits in denormals.
    sine = ops.where(distance < 2.0**-30, distance, ops.sin(math.pi * distance) / math.pi)
    factor = ops.where(below, ops.where(mirrored, sine, x), 1.0)
    value = ops.where(mirrored, -value, value) - ops.log(factor)
    pole = ops.logical_and(mirrored, ops.equal(nearest, x))
    return ops.where(pole, math.inf, value)


def lgamma1p(y: Any) -> Any:
    """Return lgamma(1 + y) for 0 <= y <= 3, relatively accurate near its roots 0 and 1."""
    base = horner(y, _LGAMMA_NUMERATOR) / horner(y, _LGAMMA_DENOMINATOR)
    return (base + 0.375) * (y * (y - 1.0))


def stirling_correction(x: Any) -> Any:
    """Return lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x >= 4."""
    r = 1.0 / x
    return horner(r * r, _STIRLING) * r


def digamma_asymptotic(x: Any) -> Any:
    """Return log(x) - digamma(x) for x >= 4."""
    r = 1.0 / x
    w = r * r
    return 0.5 * r + w * horner(w, _DIGAMMA_ASYMPTOTIC)


def digamma(x: Any, ops: Any) -> Any:
    """Return the derivative of lgamma; at most 2.5 ulp off for x > 0 in float64, its root included.

    For x < 0 the error is a few ulp of the larger of the two terms of the reflection, which near
    a root is an absolute error. Negative integers and -inf give NaN, 0.0 gives -inf and -0.0 gives
    inf, as in SciPy. float32 is computed in float64.

    With y = x - 1 for x >= 1 and y = |x| below, digamma(1 + y) is a fitted rational function for
    y < 3 and the asymptotic series with fitted coefficients above (Abramowitz and Stegun 6.3.18);
    then the recurrence 6.3.5 for 0 <= x < 1 and the reflection 6.3.7 for x < 0.
    """
    if str(x.dtype) == "float32":
        return ops.cast(digamma(ops.cast(x, "float64"), ops), "float32")
    below = x < 1.0
    y = ops.where(below, ops.absolute(x), x - 1.0)
    base = horner(y, _DIGAMMA_NUMERATOR) / horner(y, _DIGAMMA_DENOMINATOR)
    base = (base + 0.625) * ((y - _DIGAMMA_ROOT_HIGH) - _DIGAMMA_ROOT_LOW)
    shifted = y + 1.0
    r = 1.0 / shifted
    w = r * r
    far = ops.log(shifted) - (0.5 * r + w * horner(w, _DIGAMMA_ASYMPTOTIC))
    value = ops.where(y < 3.0, base, far)
    distance = x - ops.round(x)
    # At an integer the sign is 0 and the cotangent inf: their product is the NaN of the pole.
    cotangent = math.pi * (ops.sign(distance) * _cotangent(distance, ops))
    return ops.where(below, value - ops.where(x < 0.0, cotangent, 1.0 / x), value)


def polygamma(n: int, x: Any, ops: Any) -> Any:
    """Return the n-th derivative of digamma; at most 2 + 0.7 n ulp off for x > 0 in float64.

    For x < 0 it is at most 6 + 2 n ulp, for even n of the larger of the two terms of the
    reflection. Poles give inf for odd n and -inf for even n >= 2, as in
    SciPy; -inf gives NaN. Values so small that x^(n+1) overflows may become 0. float32 is computed
    in float64. Raises ValueError for n below 0 or above 120.

    For x > 0 it is (-1)^(n+1) n! zeta(n + 1, x) (Abramowitz and Stegun 6.4.10), seven terms of
    that sum and the Euler-Maclaurin series of the rest (23.1.30); for x <= 0 the reflection 6.4.7.
    """
    if not 0 <= n <= _LARGEST_ORDER:
        raise ValueError(f"polygamma needs an order from 0 to {_LARGEST_ORDER}, got {n}")
    if n == 0:
        return digamma(x, ops)
    if str(x.dtype) == "float32":
        return ops.cast(polygamma(n, ops.cast(x, "float64"), ops), "float32")
    mirrored = x <= 0.0
    value = _scaled_zeta(n, ops.where(mirrored, 1.0 - x, x))
    distance = x - ops.round(x)
    c = _cotangent(distance, ops)
    if n % 2 == 0:
        c = ops.where(distance < 0.0, -c, c)
    reflected = _cotangent_derivative(n, c)
    if n % 2 == 1:
        return ops.where(mirrored, reflected - value, value)
    return -ops.where(mirrored, reflected + value, value)


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the polynomial in `x` with `coefficients` from the highest power down."""
    first, second, *rest = coefficients
    total = x + second if first == 1.0 else x * first + second
    for coefficient in rest:
        total = total * x + coefficient
    return total


def _cotangent(distance: Any, ops: Any) -> Any:
    """Return |cot(pi d)| for |d| <= 1/2, relatively accurate at both ends; inf for d = 0."""
    size = ops.absolute(distance)
    tangent = ops.tan(math.pi * ops.minimum(size, 0.5 - size))
    return ops.where(size < 0.25, 1.0 / tangent, tangent)


def _cotangent_derivative(n: int, c: Any) -> Any:
    """Return (-1)^n pi times the n-th derivative of cot(pi t), n >= 1, as a polynomial in c = cot.

    By cot' = -(1 + cot^2) the coefficients, lowest power first, are integers of one sign.
    """
    powers = [0, 1]
    for _ in range(n):
        derivative = [k * a for k, a in enumerate(powers)][1:]
        powers = [a + b for a, b in zip(derivative + [0, 0], [0, 0] + derivative, strict=True)]
    scale = math.pi ** (n + 1)
    coefficients = [a * scale for a in powers[(n + 1) % 2 :: 2]]
    total = horner(c * c, coefficients[::-1])
    return total * c if n % 2 == 0 else total


def _scaled_zeta(n: int, x: Any) -> Any:
    """Return n! zeta(n + 1, x) for x > 0.

    Arguments are scaled by a power of two near the n-th root of n!, which is exact and keeps
    the terms within the range of the result.
    """
    exponent = n + 1
    shift = round(math.log2(math.factorial(n)) / exponent)
    unit = 2.0**-shift
    leading = math.factorial(n) / 2 ** (shift * exponent)
    series = _euler_maclaurin(exponent)
    scaled = x * unit if shift else x
    end = scaled + _SUMMED_TERMS * unit
    h = unit / end
    w = h * h
    rest = horner(w, series[::-1]) * w + (0.5 * h + 1.0 / n)
    rest = rest * (leading / unit) / _integer_power(end, n)
    total = leading / _integer_power(scaled + (_SUMMED_TERMS - 1) * unit, exponent)
    for i in range(_SUMMED_TERMS - 2, 0, -1):
        total = total + leading / _integer_power(scaled + i * unit, exponent)
    return total + leading / _integer_power(scaled, exponent) + rest


def _euler_maclaurin(exponent: int) -> list[float]:
    """Return B_2k / (2k)! (s)(s + 1) ... (s + 2k - 2) for s = `exponent` and k = 1, 2, ..."""
    series = []
    above, below = 1, exponent - 1  # integers: their quotient is rounded once
    for k, (numerator, denominator) in enumerate(BERNOULLI, start=1):
        last = exponent + 2 * k - 2
        above *= (last - 1) * last
        below *= (2 * k - 1) * (2 * k)
        series.append(numerator * above / (denominator * below))
    return series


def _integer_power(x: Any, exponent: int) -> Any:
    """Return `x` to a positive integer power by repeated squaring."""
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if not exponent:
            return result
        x = x * x
