"""Formulas of erfc, erfcx, ndtr, erfinv and activations that keep all digits in their tails.

Each is written once, against an abstract namespace ``ops``. With ``FLOAT64_OPS`` or
``FLOAT32_OPS`` of ``formula_ops`` it builds ops, for targets that lack the primitive; the printer
of ``transformers.printing.elementary.special_text`` makes C functions of it. ``ops.precision`` is
the dtype of the result. ``ops.wide`` is True where float32 is computed in float64, and needs no
corrections.

For a >= 0 all formulas use erfcx(a) = exp(a^2) erfc(a), a polynomial in 1 / (a + k) (after
Schonfelder, 1978), which is well conditioned: an error of a has little effect. Every digit of a
tail is kept by three techniques:

- an exponent that is a product, such as x^2 / 2, is computed with its rounding error (Dekker,
  1971), because exp turns an absolute error of its argument into a relative one;
- the power of two of an exponential is applied last and in two steps, after all factors, so that a
  subnormal result is rounded once;
- an argument is clamped where the result has become its limit, which is then reached exactly.

``f(-x)`` follows from ``f(x)`` by symmetry: Phi(x) + Phi(-x) = 1, and the derivatives of x Phi(x)
and of x sigmoid(x) have the same property. For small a, where the polynomial would lose digits,
1 - erf(a) is computed.

Coefficients were fitted here with the Remez exchange in 40-digit arithmetic, lowest power first;
"fit" is the largest relative error before rounding. The first nine coefficients of the polynomials
for erfcx are rounded up or down so that their errors cancel best. In C, over two million float32
the error is at most 3.8 ulp for log_ndtr, 3.4 for gelu, ndtr and erfinv, 3.2 for erfc, erfcx and
silu and 3.0 for gelu's tanh form; over thousands of float64 at most 2.8 (of a derivative: 3.1).
Without fused multiply-adds polynomials round twice a step: up to 4.7 in float32.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "erfc",
    "erfcx",
    "erfcx_derivative",
    "erfinv",
    "exp_product",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "log_ndtr",
    "ndtr",
    "sigmoid_derivative",
    "silu",
    "silu_derivative",
]

# erf(x) / x - 1 in x^2, for 0 <= x <= 0.9; fit of erf 1.4e-8.
ERF_SMALL_F32 = (
    *(0.128379151, -0.376125127, 0.112820394),
    *(-0.026775267, 0.00500652567, -0.000606181799),
)

# erf(x) / x - 1 in x^2, for 0 <= x <= 1.25; fit of erf 2.4e-17.
ERF_SMALL_F64 = (
    *(0.1283791670955126, -0.37612638903184, 0.11283791670963259, -0.02686617064619356),
    *(0.005223977632652248, -0.0008548327313493864, 0.00012055340397974933),
    *(-1.4925775025938255e-05, 1.6463496987939887e-06, -1.6375575968978597e-07),
    *(1.4844344569827346e-08, -1.2302220859430897e-09, 8.842400838965713e-11),
    -4.139034375887309e-12,
)

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
ERFCX_DERIVATIVE = (
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
ERF_SMALL = {"float32": ERF_SMALL_F32, "float64": ERF_SMALL_F64}
# (Phi(x) - 1/2) / x in x^2.
NORMAL_SMALL = {
    dtype: tuple((c + (k == 0)) * 0.5**k * math.sqrt(0.125) for k, c in enumerate(coefficients))
    for dtype, coefficients in ERF_SMALL.items()
}
ROOT_CENTRE = {"float32": 3.0, "float64": 4.0}
DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)

# The k of MILLS, that of ERFCX, and what the latter lacks.
MILLS_K = {"float32": 5.0, "float64": 5.5}
ERFCX_K = {dtype: k * math.sqrt(0.5) for dtype, k in MILLS_K.items()}
ERFCX_K_REST = {"float32": 9.034407470042219e-10, "float64": -3.2136171735121294e-16}
FAR = {"float32": 1e9, "float64": 1e18}  # 1 / (a + k) is 1 / a from here on

# Arguments at which even 3 x exp(-x) is 0. The exponents nearest to them are -161 and -1087, whose
# second factor in C is 0: a result of 0 is a product with 0 and no underflow, as in ``f32``.
EXP_END = {"float32": 111.6, "float64": 753.5}
EXP_TOP = {"float32": 100.0, "float64": 720.0}
ERFC_END = {dtype: math.sqrt(end) for dtype, end in EXP_END.items()}
NORMAL_END = {dtype: math.sqrt(2 * end) for dtype, end in EXP_END.items()}
ERFCX_END = {"float32": 9.5, "float64": 27.0}
CUBIC_END = {"float32": 10.9662, "float64": 21.5994}  # LINEAR x + CUBIC x^3 is EXP_END

# x sigmoid(u) is 0 below the first of these and x above the second, for u = x and the cubic.
SILU_LOWEST = {"float32": -112.0, "float64": -760.0}
SILU_LIMIT = {"float32": 17.5, "float64": 37.5}
CUBIC_LOWEST = {"float32": -11.0, "float64": -21.6}
CUBIC_LIMIT = {"float32": 5.25, "float64": 7.5}

# sqrt(8 / pi) x + 0.044715 sqrt(8 / pi) x^3, of which the sigmoid is the tanh form of Phi: the
# constants in two parts, the first of LINEAR short enough for LINEAR - w to be exact.
LINEAR = {"float32": 1.595768928527832, "float64": 1.595769121605727}
LINEAR_LOW = {"float32": 1.930778986805098e-07, "float64": 3.675065195634423e-15}
CUBIC = {"float32": 0.07135481387376785, "float64": 0.07135481627260025}
CUBIC_LOW = {"float32": 2.3988323959931355e-09, "float64": -6.175149918155315e-19}
LINEAR_WHOLE, CUBIC_THRICE = 1.5957691216057308, 3 * 0.07135481627260025
# The same for powers of 2 instead of e.
LINEAR2 = {"float32": 2.3022079467773438, "float64": 2.3022081981443137}
LINEAR2_LOW = {"float32": 2.513669811391339e-07, "float64": 1.1233558506659262e-14}
CUBIC2 = {"float32": 0.10294324159622192, "float64": 0.1029432395800235}
CUBIC2_LOW = {"float32": -2.016198436410503e-09, "float64": -5.978177400718744e-18}


def exp_product(x: Any, y: Any, ops: Any) -> Any:
    """Return exp(x y) as if the product were not rounded."""
    product = x * y
    a = _at_most(product, EXP_TOP[ops.precision], ops)
    end = -EXP_END[ops.precision]
    low = ops.product_error(x, y, product)
    if not ops.wide:
        low = ops.where(ops.absolute(low) < 1.0, low, 0.0)  # no correction out of range
    p, first, second = ops.exp_parts(ops.where(a < end, end, a), low)
    return (1.0 + p) * first * second


def erfc(x: Any, ops: Any) -> Any:
    """Return 1 - erf(x) with all digits of its tail."""
    a = _at_most(ops.absolute(x), ERFC_END[ops.precision], ops)
    z = a * a
    p, first, second = ops.exp_parts(-z, -ops.product_error(a, a, z))
    y, low = _erfcx_above(a, ops)
    y = ops.fused(y, p + low, y) * first * second
    y = ops.where(x > 0.0, y, 2.0 - y)
    return _near(a, 0.65, _erfc_near(x, z, ops), y, ops)


def erfcx(x: Any, ops: Any) -> Any:
    """Return exp(x^2) erfc(x)."""
    a = ops.absolute(x)
    y, low = _erfcx_above(a, ops)
    y = ops.fused(y, low, y)
    a = _at_most(a, ERFCX_END[ops.precision], ops)
    z = a * a
    p, first, second = ops.exp_parts(z, ops.product_error(a, a, z))
    factor = _near(a, 0.65, _erfc_near(x, z, ops), 2.0, ops)
    grown = ops.fused(factor, p, factor) * first * second
    return _near(a, 0.65, grown, ops.where(x < 0.0, grown - y, y), ops)


def erfcx_derivative(n: int, x: Any, ops: Any) -> Any:
    """Return the n-th derivative of erfcx, n >= 1.

    The first is erfcx(x) / (x + 2) times a polynomial in 1 / (x + 2) for x >= 0. Others follow from
    the recurrence E(n) = 2 x E(n - 1) + 2 (n - 1) E(n - 2) below 2, where for x > 0 each order
    costs a factor of at most six in accuracy, and above from the continued fraction of the repeated
    integrals of erfc (Abramowitz and Stegun 7.2.5; backwards, after Gautschi, 1967).
    """
    a, low = ops.maximum(x, 0.0), ops.minimum(x, 0.0)
    q = 1.0 / (a + 2.0)
    t = ops.where(a < 2.0, 2.0 * ops.minimum(a, 2.0) * q - 1.0, 1.0 - 4.0 * q)
    before = ops.erfcx(x)
    above = -((ops.polynomial(t, ERFCX_DERIVATIVE) * q) * before)
    value = ops.where(x < 0.0, 2.0 * (low * before) - 2.0 / math.sqrt(math.pi), above)
    if n == 1:
        return value
    for order in range(2, n + 1):
        value, before = 2.0 * (x * value + (order - 1) * before), value
    return ops.where(x < 2.0, value, _far_derivative(n, ops.maximum(x, 2.0), ops))


def ndtr(x: Any, ops: Any) -> Any:
    """Return the standard normal distribution function."""
    a = _at_most(ops.absolute(x), NORMAL_END[ops.precision], ops)
    p, first, second = _density_parts(a, ops)
    y, low = _mills(a, ops)
    y = _near(a, 0.75, _ndtr_near(-a, ops), ops.fused(y, p + low, y) * first * second, ops)
    return ops.where(x > 0.0, 1.0 - y, y)


def log_ndtr(x: Any, ops: Any) -> Any:
    """Return the logarithm of the standard normal distribution function."""
    a = ops.absolute(x)
    y, low = _mills(a, ops)
    near = _ndtr_near(-a, ops)
    below = ops.log(_near(a, 0.75, near, y, ops)) + _near(a, 0.75, 0.0, low, ops)
    below = ops.fused(_near(a, 0.75, 0.0, -0.5 * a, ops), a, below)
    p, first, second = _density_parts(_at_most(a, NORMAL_END[ops.precision], ops), ops)
    low = low + p
    tail = ops.fused(y, low, y)
    low = _near(a, 0.75, 0.0, ops.fused(y, low, y - tail) * first * second, ops)
    tail = _near(a, 0.75, near, tail * first * second, ops)
    above = ops.log1p(-tail) - low / (1.0 - tail)
    return ops.where(x > 0.0, -ops.absolute(above), below)


def erfinv(x: Any, ops: Any) -> Any:
    """Return the inverse of erf: a polynomial, and for float64 a step of Halley's method.

    The step takes 8 digits to all: erf(y) is as flat there as exp(-y^2).
    """
    a = ops.absolute(x)
    w = -ops.log((1.0 - a) * (1.0 + a))
    near = ops.polynomial(w - 2.5, ERFINV)
    far = ops.polynomial(ops.sqrt(w) - ROOT_CENTRE[ops.precision], ERFINV_FAR[ops.precision])
    y = a * ops.where(w < 5.0, near, far)
    if ops.precision == "float64":
        off = ops.where(a < 0.5, ops.erf(y) - a, (1.0 - a) - ops.erfc(y))
        step = off * (0.5 * math.sqrt(math.pi)) * ops.exp(y * y)
        y = y - step / (1.0 + y * step)
    return ops.signed(ops.where(ops.equal(a, 1.0), math.inf, y), x)


def gelu(x: Any, ops: Any) -> Any:
    """Return x times the standard normal distribution function."""
    a = _at_most(ops.absolute(x), NORMAL_END[ops.precision], ops)
    mills, low = _mills(a, ops)
    p, first, second = _density_parts(a, ops)
    p, y = p + low, -a * mills
    if not ops.wide:
        rest = ops.product_error(-a, mills, y)
        y = y + ops.fused(y, p, ops.fused(rest, p, rest))
    y = y * first * second
    y = ops.where(x >= 0.0, x + y, y)
    return _near(a, 0.75, x * _ndtr_near(x, ops), y, ops)


def gelu_derivative(x: Any, ops: Any) -> Any:
    """Return the derivative of gelu: Phi(x) + x phi(x)."""
    a = _at_most(ops.absolute(x), NORMAL_END[ops.precision], ops)
    p, first, second = _density_parts(a, ops)
    y, low = _mills(a, ops)
    y = ops.fused(-DENSITY, a, ops.fused(y, low, y))
    y = ops.fused(y, p, y) * first * second
    near = ops.fused(DENSITY * x, (1.0 + p) * first * second, _ndtr_near(x, ops))
    return _near(a, 0.75, near, ops.where(x > 0.0, 1.0 - y, y), ops)


def sigmoid_derivative(x: Any, ops: Any) -> Any:
    """Return the derivative of sigmoid."""
    a = _at_most(ops.absolute(x), EXP_END[ops.precision], ops)
    p, first, second = ops.exp_parts(-a, 0.0)
    y = 1.0 / _square_above((1.0 + p) * first * second, ops)
    return ops.fused(y, p, y) * first * second


def silu(x: Any, ops: Any) -> Any:
    """Return x sigmoid(x)."""
    a = ops.at_least(x, SILU_LOWEST[ops.precision])
    return _gated(x, a, ops.exp_raised(a), SILU_LIMIT[ops.precision], ops)


def silu_derivative(x: Any, ops: Any) -> Any:
    """Return the derivative of silu."""
    a = _at_most(ops.absolute(x), EXP_END[ops.precision], ops)
    return _gated_derivative(x, a, 0.0, ops.exp_parts(-a, 0.0), ops)


def gelu_tanh(x: Any, ops: Any) -> Any:
    """Return x sigmoid(u), u = sqrt(8 / pi) (x + 0.044715 x^3).

    exp(u) is computed as a power of 2, whose exponent a (w + low) has a correction.
    """
    a = ops.at_least(x, CUBIC_LOWEST[ops.precision])
    z = a * a
    linear, cubic = LINEAR2[ops.precision], CUBIC2[ops.precision]
    w = ops.fused(cubic, z, linear)
    low = ops.fused(CUBIC2_LOW[ops.precision], z, LINEAR2_LOW[ops.precision])
    low = ops.fused(cubic, ops.product_error(a, a, z), low)
    low = low + ops.fused_error(cubic, z, linear, w)
    return _gated(x, a, ops.exp2_raised(a, w, low), CUBIC_LIMIT[ops.precision], ops)


def gelu_tanh_derivative(x: Any, ops: Any) -> Any:
    """Return the derivative of gelu_tanh."""
    a = _at_most(ops.absolute(x), CUBIC_END[ops.precision], ops)
    parts = _cubic_parts(a, ops)
    z = a * a
    slope = ops.fused(CUBIC_THRICE, z, LINEAR_WHOLE)
    w = a * slope
    low = CUBIC_THRICE * ops.product_error(a, a, z)
    low = ops.fused(a, low, ops.product_error(a, slope, w))
    return _gated_derivative(x, w, low, parts, ops)


# Helpers ------------------------------------------------------------------------------------------


def _at_most(x: Any, end: float, ops: Any) -> Any:
    """Return the smaller of x and `end`; NaN for NaN."""
    return ops.where(x > end, end, x)


def _near(a: Any, end: float, near: Any, far: Any, ops: Any) -> Any:
    """Return `near` for a < `end`; where nothing needs it, `far` everywhere."""
    return far if ops.wide else ops.where(a < end, near, far)


def _erfcx_above(a: Any, ops: Any) -> tuple[Any, Any]:
    """Return erfcx(a) for a >= 0, infinity included, and its relative error to be added."""
    k, rest = ERFCX_K[ops.precision], ERFCX_K_REST[ops.precision]
    return _of_inverse(a, k, rest, ERFCX[ops.precision], ops)


def _mills(a: Any, ops: Any) -> tuple[Any, Any]:
    """Return erfcx(a / sqrt(2)) / 2, which times exp(-a^2 / 2) is Phi(-a), and its error."""
    return _of_inverse(a, MILLS_K[ops.precision], -0.0, MILLS[ops.precision], ops)


def _of_inverse(
    a: Any, k: float, rest: float, coefficients: tuple[float, ...], ops: Any
) -> tuple[Any, Any]:
    """Return q P(1 - 2 k q), q = 1 / (a + k + rest), and the relative error of q."""
    s = a + k
    q = 1.0 / s
    if ops.wide:
        return q * ops.polynomial(1.0 - (2 * k) * q, coefficients), 0.0
    far, near = ops.where(a < k, k, a), ops.where(a < k, a, k)
    off = -ops.fused(near - (s - far) + rest, q, ops.product_error(s, q, 1.0))
    slope = ops.where(a < k, 2.0 * a, -2.0 * k)
    low = ops.where(a < FAR[ops.precision], off, 0.0)
    t = ops.fused(slope, q * low, ops.fused(slope, q, ops.where(a < k, -1.0, 1.0)))
    return q * ops.polynomial(t, coefficients), low


def _erfc_near(x: Any, z: Any, ops: Any) -> Any:
    """Return erfc(x) for |x| < 0.65, where z is x^2."""
    return 1.0 - ops.fused(x, ops.polynomial(z, ERF_SMALL[ops.precision]), x)


def _ndtr_near(x: Any, ops: Any) -> Any:
    """Return Phi(x) for |x| < 0.75."""
    return ops.fused(x, ops.polynomial(x * x, NORMAL_SMALL[ops.precision]), 0.5)


def _density_parts(a: Any, ops: Any) -> tuple[Any, Any, Any]:
    """Return the parts of exp(-a^2 / 2)."""
    half = 0.5 * a
    z = half * a
    parts: tuple[Any, Any, Any] = ops.exp_parts(-z, -ops.product_error(half, a, z))
    return parts


def _cubic_parts(a: Any, ops: Any) -> tuple[Any, Any, Any]:
    """Return the parts of exp(-u), u = LINEAR a + CUBIC a^3 with a correction."""
    linear, cubic = LINEAR[ops.precision], CUBIC[ops.precision]
    z = a * a
    product = cubic * z
    w = linear + product
    low = ((linear - w) + product) + ops.product_error(cubic, z, product)
    rest = ops.fused(cubic, ops.product_error(a, a, z), LINEAR_LOW[ops.precision])
    low = low + ops.fused(CUBIC_LOW[ops.precision], z, rest)
    u = a * w
    low = ops.fused(a, low, ops.product_error(a, w, u))
    parts: tuple[Any, Any, Any] = ops.exp_parts(-u, -low)
    return parts


def _gated(x: Any, a: Any, power: tuple[Any, float], limit: float, ops: Any) -> Any:
    """Return x sigmoid(u), from exp(u) times a factor and this factor, and a clamped x."""
    p, one = power
    return ops.where(x <= limit, a * p / (one + p), x)


def _gated_derivative(x: Any, w: Any, low: Any, parts: tuple[Any, Any, Any], ops: Any) -> Any:
    """Return the derivative of x sigmoid(u), from w + low = |x| u' and the parts of exp(-|u|)."""
    p, first, second = parts
    z = (1.0 + p) * first * second
    y = ((1.0 - w) + (z - low)) / _square_above(z, ops)
    y = ops.fused(y, p, y) * first * second
    return ops.where(x > 0.0, 1.0 - y, y)


def _square_above(z: Any, ops: Any) -> Any:
    """Return (1 + z)^2 as if the sum were not rounded."""
    d = 1.0 + z
    return d * d if ops.wide else ops.fused(d, d, 2.0 * d * (z - (d - 1.0)))


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
