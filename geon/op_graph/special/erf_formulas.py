"""Formulas of erfc, erfcx, ndtr and activations that keep all digits in their tails.

They are written against an abstract namespace `ops`, as in ``gamma_formulas``, for targets that
have no code of their own for these primitives. The C text of ``transformers.elementary_tails`` uses
the same method and polynomials.

For a >= 0 all formulas use erfcx(a) = exp(a^2) erfc(a), a polynomial in 1 / (a + k) (after
Schonfelder, 1978), which is well conditioned: an error of a has little effect. Its factor exp(-a^2)
is sensitive to such an error. There the product is computed with its rounding error (Dekker, 1971),
and the exponential is applied in two factors, so that a subnormal result is rounded once. For small
a the polynomial would lose digits that 1 - erf(a) keeps. Arguments are clamped where the result has
reached its limit. float32 is computed in float64, with shorter polynomials and none of these
precautions.

Coefficients were fitted here with the Remez exchange in 40-digit arithmetic, lowest power first;
"fit" is the largest relative error before rounding. The first nine coefficients of the polynomials
for erfcx are rounded up or down so that their errors cancel best. Errors are measured in
``tests/transformers``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .gamma_formulas import _ERF_SMALL, erf

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

# -erfcx'(a) / (q erfcx(a)) in t = 1 - 4 q, q = 1 / (a + 2), a >= 0; fit 2.9e-18.
ERFCX_SLOPE = (
    *(1.6726432239776567, -0.7673298376614649, -0.04600021700974525, 0.18017758815900825),
    *(0.004633935321749584, -0.05467829412942144, -0.005867086212731105, 0.017590662369046536),
    *(0.004893135073323512, -0.0051257585105046076, -0.0028546899188513692),
    *(0.0010605187222512196, 0.0012695404533204092, 9.946367970491996e-06),
    *(-0.0004207236731877175, -0.00013906656901950887, 8.732110240900424e-05),
    *(7.298741059025518e-05, 1.2206160420082444e-09, -2.0288556047108846e-05),
    *(-7.428948020920107e-06, 1.7126868220479304e-06, 2.23857269236305e-06),
    *(1.0688359641495228e-06, 1.3558766230304504e-07, -4.895963272625928e-07),
    *(-3.0050860601107115e-07, 8.955887896890657e-08, 9.276633323667124e-08),
    *(-6.183259625143603e-09, -1.070910830659045e-08),
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

# The same in sqrt(w) - 4 for 5 <= w <= 37, an initial value for Halley's method; fit 2.8e-8.
ERFINV_FAR_F64 = (
    *(3.83978386293, 1.00949268967, 0.00125811240056, -0.000864509545232, 0.000328026136577),
    *(-0.000128618949506, 4.55304854261e-05, -2.07449813446e-05, 2.48761404668e-05),
    *(-1.56568658304e-05, 1.62493814291e-06, 1.60375990744e-06, -4.06238081802e-07),
)

ERFCX = {"float32": ERFCX_F32, "float64": ERFCX_F64}
MILLS = {"float32": MILLS_F32, "float64": MILLS_F64}
ERFINV_FAR = {"float32": ERFINV_FAR_F32, "float64": ERFINV_FAR_F64}
ROOT_CENTRE = {"float32": 3.0, "float64": 4.0}

# erf(x) / x and (Phi(x) - 1/2) / x in x^2.
ERF_SMALL = tuple(_ERF_SMALL[::-1])
NORMAL_SMALL = tuple(c * 0.5**k * math.sqrt(0.125) for k, c in enumerate(ERF_SMALL))
DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)
# sqrt(8 / pi) x + 0.044715 sqrt(8 / pi) x^3, of which the sigmoid is the tanh form of Phi: the
# constants in two parts, the first of LINEAR short enough for LINEAR - w to be exact.
LINEAR, LINEAR_LOW = 1.595769121605727, 3.675065195634423e-15
CUBIC, CUBIC_LOW = 0.07135481627260025, -6.175149918155315e-19
# Arguments beyond which float64 results have reached their limits; they serve float32 too.
ERFC_END, NORMAL_END, GROWTH_END, EXP_END, CUBIC_END = 28.0, 40.0, 27.0, 1500.0, 22.0


def _for_float32(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a float64 formula: float32 is computed in float64, with ``short`` polynomials."""

    @functools.wraps(formula)
    def both(*args: Any) -> Any:
        *xs, ops = args
        if str(xs[-1].dtype) != "float32":
            return formula(*xs, ops, False)
        wide = [x if isinstance(x, int) else ops.cast(x, "float64") for x in xs]
        return ops.cast(formula(*wide, ops, True), "float32")

    return both


@_for_float32
def exp_product(x: Any, y: Any, ops: Any, short: bool) -> Any:
    """Return exp(x y) as if the product were not rounded."""
    product = x * y
    if short:
        return ops.exp(product)
    low = _product_error(x, y, product)
    low = ops.where(ops.absolute(low) < 1.0, low, 0.0)  # no correction out of range
    half = ops.exp(0.5 * ops.minimum(ops.maximum(product, -EXP_END), 1400.0))
    return (half + half * low) * half


@_for_float32
def erfc(x: Any, ops: Any, short: bool) -> Any:
    """Return 1 - erf(x) with all digits of its tail."""
    size = ops.absolute(x)
    a = ops.minimum(size, ERFC_END)
    tail = _vanishing(*_erfcx_above(a, ops, short), a, a, ops, short)
    value = ops.where(x > 0.0, tail, 2.0 - tail)
    return value if short else ops.where(size < 0.5, 1.0 - x * _polynomial(x * x, ERF_SMALL), value)


@_for_float32
def erfcx(x: Any, ops: Any, short: bool) -> Any:
    """Return exp(x^2) erfc(x)."""
    size = ops.absolute(x)
    above, low = _erfcx_above(size, ops, short)
    above = above + above * low
    if short:
        a = ops.minimum(ops.maximum(-x, 0.0), GROWTH_END)
        return ops.where(x < 0.0, 2.0 * ops.exp(a * a) - above, above)
    a = ops.minimum(size, GROWTH_END)
    near = size < 0.5
    factor = ops.where(near, 1.0 - x * _polynomial(x * x, ERF_SMALL), 2.0)
    z = a * a
    half = ops.exp(0.5 * z)
    grown = (half * (factor + factor * _product_error(a, a, z))) * half
    return ops.where(near, grown, ops.where(x < 0.0, grown - above, above))


@_for_float32
def erfcx_derivative(n: int, x: Any, ops: Any, short: bool) -> Any:
    """Return the n-th derivative of erfcx, n >= 1.

    The first is erfcx(x) / (x + 2) times a polynomial in 1 / (x + 2) for x >= 0. Others follow from
    the recurrence E(n) = 2 x E(n - 1) + 2 (n - 1) E(n - 2) below 2, where for x > 0 each order
    costs a factor of at most six in accuracy, and above from the continued fraction of the repeated
    integrals of erfc (Abramowitz and Stegun 7.2.5; backwards, after Gautschi, 1967).
    """
    a, low = ops.maximum(x, 0.0), ops.minimum(x, 0.0)
    q = 1.0 / (a + 2.0)
    t = ops.where(a < 2.0, 2.0 * ops.minimum(a, 2.0) * q - 1.0, 1.0 - 4.0 * q)
    before = erfcx(x, ops)
    above = -((_polynomial(t, ERFCX_SLOPE) * q) * before)
    value = ops.where(x < 0.0, 2.0 * (low * before) - 2.0 / math.sqrt(math.pi), above)
    if n == 1:
        return value
    for order in range(2, n + 1):
        value, before = 2.0 * (x * value + (order - 1) * before), value
    return ops.where(x < 2.0, value, _far_derivative(n, ops.maximum(x, 2.0), ops))


@_for_float32
def ndtr(x: Any, ops: Any, short: bool) -> Any:
    """Return the standard normal distribution function."""
    tail = _ndtr_below(ops.absolute(x), ops, short)
    return ops.where(x > 0.0, 1.0 - tail, tail)


@_for_float32
def log_ndtr(x: Any, ops: Any, short: bool) -> Any:
    """Return the logarithm of the standard normal distribution function."""
    a = ops.absolute(x)
    mills, low = _mills(a, ops, short)
    above = ops.log1p(-_ndtr_below(a, ops, short))
    below = ops.log(mills) + low - 0.5 * a * a
    if not short:
        below = ops.where(a < 0.75, ops.log(_ndtr_near(-a)), below)
    return ops.where(x > 0.0, above, below)


@_for_float32
def erfinv(x: Any, ops: Any, short: bool) -> Any:
    """Return the inverse of erf: a polynomial, and for float64 a step of Halley's method."""
    a = ops.absolute(x)
    w = -ops.log((1.0 - a) * (1.0 + a))
    far = _polynomial(ops.sqrt(w) - 4.0, ERFINV_FAR_F64)
    y = a * ops.where(w < 5.0, _polynomial(w - 2.5, ERFINV), far)
    if not short:
        off = ops.where(a < 0.5, erf(y, ops) - a, (1.0 - a) - erfc(y, ops))
        step = off * (0.5 * math.sqrt(math.pi)) * ops.exp(y * y)
        y = y - step / (1.0 + y * step)
    y = ops.where(ops.equal(a, 1.0), math.inf, y)
    return ops.where(x > 0.0, y, ops.where(x < 0.0, -y, x))  # a zero keeps its sign


@_for_float32
def gelu(x: Any, ops: Any, short: bool) -> Any:
    """Return x times the standard normal distribution function."""
    size = ops.absolute(x)
    a = ops.minimum(size, NORMAL_END)
    mills, low = _mills(a, ops, short)
    tail = _vanishing(-(a * mills), low, 0.5 * a, a, ops, short)
    value = ops.where(x >= 0.0, x + tail, tail)
    return value if short else ops.where(size < 0.75, x * _ndtr_near(x), value)


@_for_float32
def gelu_slope(x: Any, ops: Any, short: bool) -> Any:
    """Return the derivative of gelu: Phi(x) + x phi(x)."""
    size = ops.absolute(x)
    a = ops.minimum(size, NORMAL_END)
    mills, low = _mills(a, ops, short)
    tail = _vanishing(mills + mills * low - DENSITY * a, 0.0, 0.5 * a, a, ops, short)
    value = ops.where(x > 0.0, 1.0 - tail, tail)
    if short:
        return value
    near = _ndtr_near(x) + x * (DENSITY * ops.exp(-0.5 * (a * a)))
    return ops.where(size < 0.75, near, value)


def sigmoid(x: Any, ops: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    z = ops.exp(-ops.absolute(x))
    return ops.where(x > 0.0, 1.0, z) / (1.0 + z)


@_for_float32
def sigmoid_slope(x: Any, ops: Any, short: bool) -> Any:
    """Return the derivative of sigmoid."""
    z = ops.exp(-ops.absolute(x))
    return z / _square_above(z, short)


@_for_float32
def silu(x: Any, ops: Any, short: bool) -> Any:
    """Return x sigmoid(x)."""
    return _gated(x, EXP_END, ops.exp(-0.5 * ops.absolute(x)), ops)


@_for_float32
def silu_slope(x: Any, ops: Any, short: bool) -> Any:
    """Return the derivative of silu."""
    a = ops.minimum(ops.absolute(x), EXP_END)
    return _gated_slope(x, a, 0.0, ops.exp(-0.5 * a), ops, short)


@_for_float32
def gelu_tanh(x: Any, ops: Any, short: bool) -> Any:
    """Return x sigmoid(u), u = sqrt(8 / pi) (x + 0.044715 x^3)."""
    a = ops.minimum(ops.absolute(x), CUBIC_END)
    return _gated(x, CUBIC_END, _half_of_cubic(a, ops, short), ops)


@_for_float32
def gelu_tanh_slope(x: Any, ops: Any, short: bool) -> Any:
    """Return the derivative of gelu_tanh."""
    a = ops.minimum(ops.absolute(x), CUBIC_END)
    z = a * a
    slope = (LINEAR + LINEAR_LOW) + (3 * CUBIC) * z
    w, low = a * slope, 0.0
    if not short:
        low = _product_error(a, slope, w) + a * ((3 * CUBIC) * _product_error(a, a, z))
    return _gated_slope(x, w, low, _half_of_cubic(a, ops, short), ops, short)


# Helpers ------------------------------------------------------------------------------------------


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _erfcx_above(a: Any, ops: Any, short: bool) -> tuple[Any, Any]:
    """Return erfcx(a) for a >= 0, infinity included, and its relative error to be added."""
    k = MILLS_END["float32" if short else "float64"] * math.sqrt(0.5)
    return _of_inverse(a, k, ERFCX, ops, short)


def _mills(a: Any, ops: Any, short: bool) -> tuple[Any, Any]:
    """Return erfcx(a / sqrt(2)) / 2, which times exp(-a^2 / 2) is Phi(-a), and its error."""
    return _of_inverse(a, MILLS_END["float32" if short else "float64"], MILLS, ops, short)


def _of_inverse(
    a: Any, k: float, tables: dict[str, tuple[float, ...]], ops: Any, short: bool
) -> tuple[Any, Any]:
    """Return q P(1 - 2 k q), q = 1 / (a + k), and the relative error of q."""
    s = a + k
    q = 1.0 / s
    if short:
        return q * _polynomial(1.0 - (2 * k) * q, tables["float32"]), 0.0
    held = ops.minimum(a, 1e18)
    off = ops.where(a < k, held - (s - k), k - (s - held))
    low = -(_product_error(s, q, 1.0) + off * q)
    low = ops.where(a < 1e18, low, 0.0)
    slope = ops.where(a < k, 2.0 * held, -2.0 * k)
    t = (slope * q + ops.where(a < k, -1.0, 1.0)) + slope * (q * low)
    return q * _polynomial(t, tables["float64"]), low


def _ndtr_near(x: Any) -> Any:
    """Return Phi(x) for |x| < 0.9."""
    return 0.5 + x * _polynomial(x * x, NORMAL_SMALL)


def _ndtr_below(a: Any, ops: Any, short: bool) -> Any:
    """Return Phi(-a) for a >= 0."""
    held = ops.minimum(a, NORMAL_END)
    mills, low = _mills(held, ops, short)
    tail = _vanishing(mills, low, 0.5 * held, held, ops, short)
    return tail if short else ops.where(a < 0.9, _ndtr_near(-a), tail)


def _product_error(x: Any, y: Any, product: Any) -> Any:
    """Return x y - product, exactly, for float64 of less than 1e290."""
    a, b = _upper(x), _upper(y)
    c, d = x - a, y - b
    return ((a * b - product) + (a * d + c * b)) + c * d


def _upper(x: Any) -> Any:
    """Return the upper 26 bits of x (Veltkamp's split)."""
    c = 134217729.0 * x
    return c - (c - x)


def _vanishing(factor: Any, low: Any, x: Any, y: Any, ops: Any, short: bool) -> Any:
    """Return factor (1 + low) exp(-x y) as if the product were not rounded."""
    z = x * y
    if short:
        return factor * ops.exp(-z)
    near = ops.minimum(z, 690.0)
    error = low - _product_error(x, y, z)
    return (ops.exp(-near) * (factor + factor * error)) * ops.exp(near - z)


def _half_of_cubic(a: Any, ops: Any, short: bool) -> Any:
    """Return exp(-u / 2), u = LINEAR a + CUBIC a^3 with more digits than float64 has."""
    z = a * a
    product = CUBIC * z
    w = LINEAR + product
    u = a * w
    half = ops.exp(-0.5 * u)
    if short:
        return half
    low = ((LINEAR - w) + product) + _product_error(CUBIC, z, product)
    low = low + (CUBIC * _product_error(a, a, z) + (LINEAR_LOW + CUBIC_LOW * z))
    low = a * low + _product_error(a, w, u)
    return half - half * (0.5 * low)


def _gated(x: Any, end: float, half: Any, ops: Any) -> Any:
    """Return x / (1 + exp(-u)) where half is exp(-|u| / 2), and u has the sign of x."""
    y = ops.maximum(x, -end) / (1.0 + half * half)
    return ops.where(x > 0.0, y, (y * half) * half)


def _gated_slope(x: Any, w: Any, low: Any, half: Any, ops: Any, short: bool) -> Any:
    """Return the derivative of x sigmoid(u), w + low is |x| u' and half is exp(-|u| / 2)."""
    z = half * half
    y = (((1.0 - w) + (z - low)) / _square_above(z, short) * half) * half
    return ops.where(x > 0.0, 1.0 - y, y)


def _square_above(z: Any, short: bool) -> Any:
    """Return (1 + z)^2 as if the sum were not rounded."""
    d = 1.0 + z
    return d * d if short else d * d + 2.0 * d * (z - (d - 1.0))


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
