"""Formulas for what is made of erfc and for activations: with every digit of their tails.

They are written against an abstract namespace `ops`, as in ``approximations``, for targets that
have no text of their own for these rows. The C text of ``transformers.elementary_tails`` follows
the same plan with the same polynomials.

For a >= 0 all rests on erfcx(a) = exp(a^2) erfc(a), a polynomial in 1 / (a + k) (after Schonfelder,
1978) which is as insensitive to an error of a as can be. What multiplies it, exp(-a^2), is
sensitive: there the product comes with its rounding error (Dekker, 1971), and float32 takes the
exponential in float64. An exponential is applied in two equal factors, so that a subnormal result
is rounded once. An argument is held where the result has reached its limit.

Coefficients were fitted here with the Remez exchange in 40-digit arithmetic, lowest power first;
"fit" is the largest relative error before rounding. The first nine
of the polynomials for erfcx are rounded up or down so that the errors of all cancel best. The first nine
of the polynomials for erfcx are rounded up or down so that the errors of all cancel best. The error of every function is in its test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "erfc",
    "erfcx",
    "erfcx_derivative",
    "erfinv",
    "exp_product",
    "gelu",
    "gelu_slope",
    "gelu_tanh",
    "gelu_tanh_slope",
    "log_ndtr",
    "ndtr",
    "sigmoid",
    "sigmoid_slope",
    "silu",
    "silu_slope",
]

MILLS_END = {"float32": 5.0, "float64": 5.5}  # sqrt(2) k below

# erfcx(a) / q in t = 1 - 2 k q, q = 1 / (a + k), k = 5.5 / sqrt(2), a >= 0; fit 1.5e-17.
ERFCX_F64 = (
    *(1.0942755109461642, -0.9689956860894169, 0.7574478187915924, -0.5190857661946515),
    *(0.3081181494149767, -0.15514359765243843, 0.06377761041819156, -0.019690817497611358),
    *(0.003454899232885312, 0.00038127778765363287, -0.00045894432208333096),
    *(0.00010099513188055589, 2.30797560853896e-05, -1.713658173786652e-05),
    *(6.321209474424758e-07, 2.0945163990873104e-06, -3.80998174224963e-07),
    *(-2.4665915339003433e-07, 7.449289336902748e-08, 2.98087917010574e-08),
    *(-1.073224991904805e-08, -3.276240095175924e-09, 9.156549058688522e-10),
    *(2.1739707714155475e-10,),
)

# The same for float32, k = 5 / sqrt(2); fit 6.1e-9.
ERFCX_F32 = (
    *(1.08780324, -0.940993011, 0.700468183, -0.443401188, 0.233369812, -0.0977591574),
    *(0.0294298939, -0.00420426251, -0.00117590162, 0.000733084977, -3.35259683e-05),
    *(-4.75840352e-05,),
)

# The two divided by sqrt(2), for erfcx(a / sqrt(2)) / 2 in q = 1 / (a + sqrt(2) k).
MILLS_F64 = (
    *(0.7737696342764068, -0.6851834205743378, 0.5355964890624942, -0.3670490652936529),
    *(0.21787243285797994, -0.10970308995771653, 0.045097580814577064, -0.013923510579667717),
    *(0.002442982675889406, 0.0002696041091656883, -0.0003245226423321863),
    *(7.141434261957075e-05, 1.6319852036110473e-05, -1.2117393153202967e-05),
    *(4.4697700846663987e-07, 1.4810467491010662e-06, -2.69406392614165e-07),
    *(-1.7441436000382605e-07, 5.267443005144573e-08, 2.1077998750794968e-08),
    *(-7.588846695147653e-09, -2.3166515880941557e-09, 6.474657931665952e-10),
    *(1.5372294745692836e-10,),
)

MILLS_F32 = (
    *(0.769193053, -0.665382564, 0.495305836, -0.313531995, 0.165017366, -0.069126159),
    *(0.020810077, -0.00297286222, -0.000831487996, 0.000518369372, -2.37064396e-05),
    *(-3.3646993e-05,),
)

# -erfcx'(a) / q^2 in t = 1 - 8 q, q = 1 / (a + 4), a >= 0; fit 4.5e-19.
ERFCX_SLOPE = (
    *(2.072544390081373, -3.499514862692238, 3.9421876007354206, -3.486821676764972),
    *(2.524312625589407, -1.5023547128964643, 0.7192609777574207, -0.2598568719448974),
    *(0.05753713053720586, 0.0017409379152880193, -0.006950519172310049, 0.002165377692184081),
    *(0.00019792687134106748, -0.0003297819306893054, 4.9079819078722045e-05),
    *(3.634771793218031e-05, -1.3164020002463718e-05, -3.632484668124566e-06),
    *(2.438637609316315e-06, 3.675047956762149e-07, -4.1786031147621984e-07),
    *(-4.174512572248303e-08, 6.81860521425949e-08, 5.0587979207039545e-09),
    *(-9.389694911009154e-09, -4.2016519392725485e-10, 7.653891608645186e-10),
)

# erfinv(x) / x in w - 2.5, w = -log(1 - x^2), for w < 5; fit 5.6e-9.
ERFINV = (
    *(1.50140936, 0.246640286, -0.00417738688, -0.00125274193, 0.000218344507, -4.96331203e-06),
    *(-3.46272087e-06, 4.66162656e-07, 2.32338728e-08, -8.79047427e-09),
)

# The same in sqrt(w) - 3 for 5 <= w <= 17; fit 1.2e-8.
ERFINV_FAR_F32 = (
    *(2.83297681, 1.00167491, 0.00944500741, -0.00763639186, 0.00568940957, -0.00360163895),
    *(0.00147864088, -4.86735286e-05, -0.000304354516, 0.000110094665),
)

# The same in sqrt(w) - 4 for 5 <= w <= 37, to begin from; fit 2.8e-8.
ERFINV_FAR_F64 = (
    *(3.83978386293, 1.00949268967, 0.00125811240056, -0.000864509545232, 0.000328026136577),
    *(-0.000128618949506, 4.55304854261e-05, -2.07449813446e-05, 2.48761404668e-05),
    *(-1.56568658304e-05, 1.62493814291e-06, 1.60375990744e-06, -4.06238081802e-07),
)

ERFCX = {"float32": ERFCX_F32, "float64": ERFCX_F64}
MILLS = {"float32": MILLS_F32, "float64": MILLS_F64}
ERFINV_FAR = {"float32": ERFINV_FAR_F32, "float64": ERFINV_FAR_F64}
ROOT_CENTRE = {"float32": 3.0, "float64": 4.0}

DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)
# sqrt(8 / pi) x + 0.044715 sqrt(8 / pi) x^3, of which the sigmoid is the tanh form of Phi: the
# constants in two parts, the first of LINEAR short enough for LINEAR - w to be exact.
LINEAR, LINEAR_LOW = 1.595769121605727, 3.675065195634423e-15
CUBIC, CUBIC_LOW = 0.07135481627260025, -6.175149918155315e-19
# Where results have reached their limits, in float64; all that is less serves float32 too.
ERFC_END, NORMAL_END, GROWTH_END, EXP_END, CUBIC_END = 28.0, 40.0, 27.0, 1500.0, 22.0


def exp_product(x: Any, y: Any, ops: Any) -> Any:
    """Return exp(x y), whose product is not rounded."""
    if _single(x):
        product = _double(x, ops) * _double(y, ops)
        return ops.cast(ops.exp(product), "float32")
    product = x * y
    low = _product_error(x, y, product)
    low = ops.where(ops.absolute(low) < 1.0, low, 0.0)  # not of what is out of range
    half = ops.exp(0.5 * ops.minimum(ops.maximum(product, -EXP_END), EXP_END))
    return (half + half * low) * half


def erfc(x: Any, ops: Any) -> Any:
    """Return 1 - erf(x) with all digits of its tail."""
    a = ops.minimum(ops.absolute(x), ERFC_END)
    tail = _vanishing(_erfcx_above(a), a, a, ops)
    return ops.where(x > 0.0, tail, 2.0 - tail)


def erfcx(x: Any, ops: Any) -> Any:
    """Return exp(x^2) erfc(x)."""
    above = _erfcx_above(ops.absolute(x))
    a = ops.minimum(ops.maximum(-x, 0.0), GROWTH_END)
    return ops.where(x < 0.0, _growing(a, ops) - above, above)


def erfcx_derivative(n: int, x: Any, ops: Any) -> Any:
    """Return the n-th derivative of erfcx, n >= 1.

    The first is a polynomial in 1 / (x + 4) for x >= 0. Others follow from the recurrence
    E(n) = 2 x E(n - 1) + 2 (n - 1) E(n - 2) below 2, where for x > 0 each order costs a factor of
    at most six in accuracy, and above from the continued fraction of the repeated integrals of
    erfc (Abramowitz and Stegun 7.2.5; backwards, after Gautschi, 1967). float32 is computed in
    float64.
    """
    if _single(x):
        return ops.cast(erfcx_derivative(n, _double(x, ops), ops), "float32")
    q = 1.0 / (ops.maximum(x, 0.0) + 4.0)
    above = -(_polynomial(1.0 - 8.0 * q, ERFCX_SLOPE) * q) * q
    before = erfcx(x, ops)
    low = ops.minimum(x, 0.0)
    value = ops.where(x < 0.0, 2.0 * (low * before) - 2.0 / math.sqrt(math.pi), above)
    if n == 1:
        return value
    for order in range(2, n + 1):
        value, before = 2.0 * (x * value + (order - 1) * before), value
    return ops.where(x < 2.0, value, _far_derivative(n, ops.maximum(x, 2.0), ops))


def ndtr(x: Any, ops: Any) -> Any:
    """Return the standard normal distribution function."""
    tail = _ndtr_below(ops.minimum(ops.absolute(x), NORMAL_END), ops)
    return ops.where(x > 0.0, 1.0 - tail, tail)


def log_ndtr(x: Any, ops: Any) -> Any:
    """Return the logarithm of the standard normal distribution function."""
    a = ops.absolute(x)
    tail = _ndtr_below(ops.minimum(a, NORMAL_END), ops)
    mills = _mills(a)
    if _single(x):
        a, tail, mills = (_double(v, ops) for v in (a, tail, mills))
    value = ops.where(x > 0.0, ops.log1p(-tail), ops.log(mills) - 0.5 * a * a)
    return ops.cast(value, "float32") if _single(x) else value


def erfinv(x: Any, ops: Any) -> Any:
    """Return the inverse of erf: a polynomial, and for float64 a step of Halley's method."""
    single = _single(x)
    a = ops.absolute(_double(x, ops) if single else x)
    w = -ops.log((1.0 - a) * (1.0 + a))
    far = _polynomial(ops.sqrt(w) - 4.0, ERFINV_FAR_F64)
    y = a * ops.where(w < 5.0, _polynomial(w - 2.5, ERFINV), far)
    if not single:
        from .approximations import erf

        off = ops.where(a < 0.5, erf(y, ops) - a, (1.0 - a) - erfc(y, ops))
        step = off * (0.5 * math.sqrt(math.pi)) * ops.exp(y * y)
        y = y - step / (1.0 + y * step)
    y = ops.where(ops.equal(a, 1.0), math.inf, y)
    y = ops.cast(y, "float32") if single else y
    return ops.where(x > 0.0, y, ops.where(x < 0.0, -y, x + y * 0.0))


def gelu(x: Any, ops: Any) -> Any:
    """Return x times the standard normal distribution function."""
    a = ops.minimum(ops.absolute(x), NORMAL_END)
    tail = _vanishing(-(a * _mills(a)), 0.5 * a, a, ops)
    return ops.where(x >= 0.0, x + tail, tail)


def gelu_slope(x: Any, ops: Any) -> Any:
    """Return the derivative of gelu: Phi(x) + x phi(x)."""
    a = ops.minimum(ops.absolute(x), NORMAL_END)
    tail = _vanishing(_mills(a) - DENSITY * a, 0.5 * a, a, ops)
    return ops.where(x > 0.0, 1.0 - tail, tail)


def sigmoid(x: Any, ops: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    z = ops.exp(-ops.absolute(x))
    return ops.where(x > 0.0, 1.0, z) / (1.0 + z)


def sigmoid_slope(x: Any, ops: Any) -> Any:
    """Return the derivative of sigmoid."""
    if _single(x):
        return ops.cast(sigmoid_slope(_double(x, ops), ops), "float32")
    z = ops.exp(-ops.absolute(x))
    return z / ops.square(1.0 + z)


def silu(x: Any, ops: Any) -> Any:
    """Return x sigmoid(x)."""
    if _single(x):
        return ops.cast(silu(_double(x, ops), ops), "float32")
    return _gated(x, EXP_END, ops.exp(-0.5 * ops.absolute(x)), ops)


def silu_slope(x: Any, ops: Any) -> Any:
    """Return the derivative of silu."""
    if _single(x):
        return ops.cast(silu_slope(_double(x, ops), ops), "float32")
    a = ops.minimum(ops.absolute(x), EXP_END)
    return _gated_slope(x, a, ops.exp(-0.5 * a), ops)


def gelu_tanh(x: Any, ops: Any) -> Any:
    """Return x sigmoid(u), u = sqrt(8 / pi) (x + 0.044715 x^3)."""
    if _single(x):
        return ops.cast(gelu_tanh(_double(x, ops), ops), "float32")
    a = ops.minimum(ops.absolute(x), CUBIC_END)
    return _gated(x, CUBIC_END, _half_of_cubic(a, ops), ops)


def gelu_tanh_slope(x: Any, ops: Any) -> Any:
    """Return the derivative of gelu_tanh."""
    if _single(x):
        return ops.cast(gelu_tanh_slope(_double(x, ops), ops), "float32")
    a = ops.minimum(ops.absolute(x), CUBIC_END)
    w = a * (LINEAR + (3 * CUBIC) * (a * a))
    return _gated_slope(x, w, _half_of_cubic(a, ops), ops)


# Parts --------------------------------------------------------------------------------------------


def _single(x: Any) -> bool:
    return str(x.dtype) == "float32"


def _double(x: Any, ops: Any) -> Any:
    return ops.cast(x, "float64")


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _erfcx_above(a: Any) -> Any:
    """Return erfcx(a) for a >= 0, infinity included."""
    dtype = str(a.dtype)
    k = MILLS_END[dtype] * math.sqrt(0.5)
    q = 1.0 / (a + k)
    return q * _polynomial(1.0 - (2 * k) * q, ERFCX[dtype])


def _mills(a: Any) -> Any:
    """Return erfcx(a / sqrt(2)) / 2: what multiplies exp(-a^2 / 2) in Phi(-a)."""
    dtype = str(a.dtype)
    q = 1.0 / (a + MILLS_END[dtype])
    return q * _polynomial(1.0 - (2 * MILLS_END[dtype]) * q, MILLS[dtype])


def _ndtr_below(a: Any, ops: Any) -> Any:
    return _vanishing(_mills(a), 0.5 * a, a, ops)


def _product_error(x: Any, y: Any, product: Any) -> Any:
    """Return x y - product, exactly, for float64 of less than 1e290."""
    a, b = _upper(x), _upper(y)
    c, d = x - a, y - b
    return ((a * b - product) + (a * d + c * b)) + c * d


def _upper(x: Any) -> Any:
    """Return the upper 26 bits of x (Veltkamp's split)."""
    c = 134217729.0 * x
    return c - (c - x)


def _vanishing(factor: Any, x: Any, y: Any, ops: Any) -> Any:
    """Return factor exp(-x y), the product not rounded."""
    if _single(factor):
        z = _double(x, ops) * _double(y, ops)
        return ops.cast(_double(factor, ops) * ops.exp(-z), "float32")
    z = x * y
    half = ops.exp(-0.5 * z)
    return (half * (factor - factor * _product_error(x, y, z))) * half


def _growing(a: Any, ops: Any) -> Any:
    """Return 2 exp(a^2), the square not rounded."""
    if _single(a):
        wide = _double(a, ops)
        return ops.cast(2.0 * ops.exp(wide * wide), "float32")
    z = a * a
    half = ops.exp(0.5 * z)
    return (half * (2.0 + 2.0 * _product_error(a, a, z))) * half


def _half_of_cubic(a: Any, ops: Any) -> Any:
    """Return exp(-u / 2), u = LINEAR a + CUBIC a^3 with more digits than float64 has."""
    z = a * a
    product = CUBIC * z
    w = LINEAR + product
    low = ((LINEAR - w) + product) + _product_error(CUBIC, z, product)
    low = low + (CUBIC * _product_error(a, a, z) + (LINEAR_LOW + CUBIC_LOW * z))
    u = a * w
    low = a * low + _product_error(a, w, u)
    half = ops.exp(-0.5 * u)
    return half - half * (0.5 * low)


def _gated(x: Any, end: float, half: Any, ops: Any) -> Any:
    """Return x / (1 + exp(-u)) where half is exp(-|u| / 2), and u has the sign of x."""
    y = ops.maximum(x, -end) / (1.0 + half * half)
    return ops.where(x > 0.0, y, (y * half) * half)


def _gated_slope(x: Any, w: Any, half: Any, ops: Any) -> Any:
    """Return the derivative of x sigmoid(u), where w is x u' and half is exp(-|u| / 2)."""
    z = half * half
    y = (((1.0 - w) + z) / ops.square(1.0 + z) * half) * half
    return ops.where(x > 0.0, 1.0 - y, y)


def _far_derivative(n: int, x: Any, ops: Any) -> Any:
    """Return the n-th derivative of erfcx for x >= 2.

    It is (-2)^n n! J(n), J(j) = exp(x^2) i^j erfc(x); the ratios r(j) = J(j) / J(j - 1) fulfil
    r(j - 1) = 1 / (2 x + 2 j r(j)), and J(-1) = 2 / sqrt(pi).
    """
    first = n + 48 + 8 * math.isqrt(n)
    ratio: Any = 1.0 / (ops.sqrt(x * x + 2.0 * first) + x)
    value: Any = 2.0 / math.sqrt(math.pi)
    for j in range(first, -1, -1):
        if j < first:
            ratio = 1.0 / (2.0 * x + (2.0 * (j + 1)) * ratio)
        if j <= n:
            value = value * (ratio if j == 0 else (-2.0 * j) * ratio)
    return value
