"""C text of functions with accurate tails: those based on erfc, and activations with derivatives.

One text serves float32 and float64; only numbers differ. It is straight-line code that vectorises,
as in ``f32``. Three techniques keep every digit of a tail:

- an exponent that is a product, such as x^2 / 2, is computed with its rounding error, because exp
  turns an absolute error of its argument into a relative one;
- the power of two of an exponential is applied last and in two steps, after all factors, so that a
  subnormal result is rounded once;
- an argument is clamped where the result has become its limit, which is then reached exactly.

``f(-x)`` follows from ``f(x)`` by symmetry: Phi(x) + Phi(-x) = 1, and the derivatives of x Phi(x)
and of x sigmoid(x) have the same property.

Fits are weighted by the relative error of the function, found by Remez's exchange in 40 digits.
Over two million float32 the error is at most 3.8 ulp for log_ndtr, 3.4 for gelu, ndtr and erfinv,
3.2 for erfc, erfcx and silu and 3.0 for gelu's tanh form; over thousands of float64 at most 2.8 (of
a derivative: 3.1). Without fused multiply-adds polynomials round twice a step: up to 4.7 in
float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ....op_graph.special import erf_formulas
from .f32 import _ERF_SMALL as ERF_F32
from .f32 import _EXP as EXP_F32
from .f64 import _ERF_SMALL as ERF_F64
from .f64 import _EXP as EXP_F64
from .polynomials import definitions_of

__all__ = ["TAILS"]

_TEXT = """
GEON_INLINE @real geon_exp_parts_@s(@real a, @real low, @real *first, @real *second) {
    @real shifted = GEON_FMA_@K(a, @LOG2E, @SHIFT);
    @real k = shifted - @SHIFT;
    @real r = GEON_FMA_@K(k, @LN2_LOW, GEON_FMA_@K(k, @LN2_HIGH, a)) + low;
    @real p = EXP_@K<r>;
    @uint n = geon_bits_@s(shifted);
    @uint half = n >> 1;
    *first = geon_of_bits_@s((n - half + @RAISED_EXPONENT) << @MANTISSA);
    *second = geon_of_bits_@s(half << @MANTISSA);
    return r * GEON_FMA_@K(p, r, 1.0@);
}

GEON_INLINE @real geon_exp_product_@s(@real x, @real y) {
    @real product = x * y;
    @real a = product > @EXP_TOP ? @EXP_TOP : product;
    a = a < @EXP_END ? @EXP_END : a;
    @real low = geon_product_error_@s(x, y, product), first, second;
    @real p = geon_exp_parts_@s(a, a == product ? low : 0.0@, &first, &second);
    return (1.0@ + p) * first * second;
}

GEON_INLINE @real geon_inverse_sum_@s(@real a, @real k, @real rest, @real *low, @real *t) {
    @real s = a + k, q = 1.0@ / s, far = a < k ? k : a, near = a < k ? a : k;
    @real off = -GEON_FMA_@K(near - (s - far) + rest, q, geon_product_error_@s(s, q, 1.0@));
    @real slope = a < k ? 2.0@ * a : -2.0@ * k;
    *low = a < @FAR ? off : 0.0@;
    *t = GEON_FMA_@K(slope, q * *low, GEON_FMA_@K(slope, q, a < k ? -1.0@ : 1.0@));
    return q;
}

GEON_INLINE @real geon_erfcx_above_@s(@real a, @real *low) {
    @real t, q = geon_inverse_sum_@s(a, @SHORT_END, @SHORT_REST, low, &t);
    return q * (ERFCX_@K<t>);
}

GEON_INLINE @real geon_erfc_@s(@real x) {
    @real a = fabs@c(x), first, second;
    a = a > @ERFC_END ? @ERFC_END : a;
    @real z = a * a;
    @real p = geon_exp_parts_@s(-z, -geon_product_error_@s(a, a, z), &first, &second);
    @real low, y = geon_erfcx_above_@s(a, &low);
    y = GEON_FMA_@K(y, p + low, y) * first * second;
    @real small = GEON_FMA_@K(x, ERF_SMALL_@K<z>, x);
    y = x > 0.0@ ? y : 2.0@ - y;
    return a < 0.65@ ? 1.0@ - small : y;
}

GEON_INLINE @real geon_erfcx_@s(@real x) {
    @real a = fabs@c(x), first, second;
    @real low, y = geon_erfcx_above_@s(a, &low);
    y = GEON_FMA_@K(y, low, y);
    a = a > @ERFCX_END ? @ERFCX_END : a;
    @real z = a * a;
    @real p = geon_exp_parts_@s(z, geon_product_error_@s(a, a, z), &first, &second);
    @real small = GEON_FMA_@K(x, ERF_SMALL_@K<z>, x);
    @real factor = a < 0.65@ ? 1.0@ - small : 2.0@;
    p = GEON_FMA_@K(factor, p, factor) * first * second;
    y = x < 0.0@ ? p - y : y;
    return a < 0.65@ ? p : y;
}

GEON_INLINE @real geon_mills_@s(@real a, @real *low) {
    @real t, q = geon_inverse_sum_@s(a, @MILLS_END, -0.0@, low, &t);
    return q * (MILLS_@K<t>);
}

GEON_INLINE @real geon_density_parts_@s(@real a, @real *first, @real *second) {
    @real half = 0.5@ * a;
    @real z = half * a;
    return geon_exp_parts_@s(-z, -geon_product_error_@s(half, a, z), first, second);
}

GEON_INLINE @real geon_ndtr_near_@s(@real x) {
    @real z = x * x;
    return GEON_FMA_@K(x, NORMAL_SMALL_@K<z>, 0.5@);
}

GEON_INLINE @real geon_ndtr_below_@s(@real a) {
    @real first, second, low;
    @real p = geon_density_parts_@s(a, &first, &second), y = geon_mills_@s(a, &low);
    y = GEON_FMA_@K(y, p + low, y) * first * second;
    return a < 0.75@ ? geon_ndtr_near_@s(-a) : y;
}

GEON_INLINE @real geon_ndtr_@s(@real x) {
    @real a = fabs@c(x);
    @real y = geon_ndtr_below_@s(a > @NORMAL_END ? @NORMAL_END : a);
    return x > 0.0@ ? 1.0@ - y : y;
}

GEON_INLINE @real geon_log_ndtr_@s(@real x) {
    @real a = fabs@c(x), first, second, low, y = geon_mills_@s(a, &low);
    @real below = geon_log_@s(a < 0.75@ ? geon_ndtr_near_@s(-a) : y) + (a < 0.75@ ? 0.0@ : low);
    below = GEON_FMA_@K(a < 0.75@ ? 0.0@ : -0.5@ * a, a, below);
    low = low + geon_density_parts_@s(a > @NORMAL_END ? @NORMAL_END : a, &first, &second);
    @real tail = GEON_FMA_@K(y, low, y);
    low = GEON_FMA_@K(y, low, y - tail) * first * second;
    tail = tail * first * second;
    low = a < 0.75@ ? 0.0@ : low;
    tail = a < 0.75@ ? geon_ndtr_near_@s(-a) : tail;
    @real above = geon_log1p_@s(-tail) - low / (1.0@ - tail);
    return x > 0.0@ ? -fabs@c(above) : below;
}

GEON_INLINE @real geon_gelu_@s(@real x) {
    @real a = fabs@c(x);
    a = a > @NORMAL_END ? @NORMAL_END : a;
    @real first, second, low, mills = geon_mills_@s(a, &low);
    @real p = geon_density_parts_@s(a, &first, &second) + low;
    @real y = -a * mills, rest = geon_product_error_@s(-a, mills, y);
    y = (y + GEON_FMA_@K(y, p, GEON_FMA_@K(rest, p, rest))) * first * second;
    y = x > 0.0@ ? x + y : y;
    return a < 0.75@ ? x * geon_ndtr_near_@s(x) : y;
}

GEON_INLINE @real geon_gelu_slope_@s(@real x) {
    @real a = fabs@c(x);
    a = a > @NORMAL_END ? @NORMAL_END : a;
    @real first, second, low;
    @real p = geon_density_parts_@s(a, &first, &second), y = geon_mills_@s(a, &low);
    y = GEON_FMA_@K(@MINUS_DENSITY, a, GEON_FMA_@K(y, low, y));
    y = GEON_FMA_@K(y, p, y) * first * second;
    p = (1.0@ + p) * first * second;
    @real near = GEON_FMA_@K(-x * @MINUS_DENSITY, p, geon_ndtr_near_@s(x));
    y = x > 0.0@ ? 1.0@ - y : y;
    return a < 0.75@ ? near : y;
}

GEON_INLINE @real geon_square_above_@s(@real z) {
    @real d = 1.0@ + z;
    return GEON_FMA_@K(d, d, 2.0@ * d * (z - (d - 1.0@)));
}

GEON_INLINE @real geon_sigmoid_slope_@s(@real x) {
    @real a = fabs@c(x), first, second;
    @real p = geon_exp_parts_@s(a > -@EXP_END ? @EXP_END : -a, 0.0@, &first, &second);
    @real z = (1.0@ + p) * first * second, y = 1.0@ / geon_square_above_@s(z);
    return GEON_FMA_@K(y, p, y) * first * second;
}

GEON_INLINE @real geon_held_@s(@real x, @uint lowest) {
    @uint bits = geon_bits_@s(x);
    return geon_of_bits_@s(bits < lowest ? bits : lowest);
}

GEON_INLINE @real geon_gated_@s(@real x, @real a, @real p, @real limit) {
    @real y = a * p / (@RAISED_ONE + p);
    return limit >= x ? y : x;
}

GEON_INLINE @real geon_gated_slope_@s(
    @real x, @real w, @real low, @real p, @real first, @real second) {
    @real z = (1.0@ + p) * first * second;
    @real y = ((1.0@ - w) + (z - low)) / geon_square_above_@s(z);
    y = GEON_FMA_@K(y, p, y) * first * second;
    return x > 0.0@ ? 1.0@ - y : y;
}

GEON_INLINE @real geon_silu_@s(@real x) {
    @real a = geon_held_@s(x, @SILU_LOWEST);
    @real shifted = GEON_FMA_@K(a, @LOG2E, @RAISED);
    @real k = shifted - @RAISED;
    @real r = GEON_FMA_@K(k, @LN2_LOW, GEON_FMA_@K(k, @LN2_HIGH, a));
    @real p = EXP_@K<r>;
    p = GEON_FMA_@K(GEON_FMA_@K(p, r, 1.0@), r, 1.0@);
    p = geon_of_bits_@s(geon_bits_@s(p) + (geon_bits_@s(shifted) << @MANTISSA));
    return geon_gated_@s(x, a, p, @SILU_LIMIT);
}

GEON_INLINE @real geon_silu_slope_@s(@real x) {
    @real a = fabs@c(x), first, second;
    a = a > -@EXP_END ? -@EXP_END : a;
    @real p = geon_exp_parts_@s(-a, 0.0@, &first, &second);
    return geon_gated_slope_@s(x, a, 0.0@, p, first, second);
}

GEON_INLINE @real geon_cubic_parts_@s(@real a, @real *first, @real *second) {
    @real z = a * a;
    @real product = @CUBIC * z;
    @real w = @LINEAR + product;
    @real low = ((@LINEAR - w) + product) + geon_product_error_@s(@CUBIC, z, product);
    @real rest = GEON_FMA_@K(@CUBIC, geon_product_error_@s(a, a, z), @LINEAR_LOW);
    low = low + GEON_FMA_@K(@CUBIC_LOW, z, rest);
    @real u = a * w;
    low = GEON_FMA_@K(a, low, geon_product_error_@s(a, w, u));
    return geon_exp_parts_@s(-u, -low, first, second);
}

GEON_INLINE @real geon_gelu_tanh_@s(@real x) {
    @real a = geon_held_@s(x, @CUBIC_LOWEST);
    @real z = a * a;
    @real w = GEON_FMA_@K(@CUBIC2, z, @LINEAR2);
    @real low = GEON_FMA_@K(@CUBIC2_LOW, z, @LINEAR2_LOW);
    low = GEON_FMA_@K(@CUBIC2, geon_product_error_@s(a, a, z), low);
    low = low + geon_sum_error_@s(@CUBIC2, z, @LINEAR2, w);
    @real shifted = GEON_FMA_@K(a, w, @RAISED);
    @real k = shifted - @RAISED;
    @real r = geon_product_error_@s(a, w, k);
    r = GEON_FMA_@K(a, low, r);
    @real p = EXP2_@K<r>;
    p = GEON_FMA_@K(p, r, 1.0@);
    p = geon_of_bits_@s(geon_bits_@s(p) + (geon_bits_@s(shifted) << @MANTISSA));
    return geon_gated_@s(x, a, p, @CUBIC_LIMIT);
}

GEON_INLINE @real geon_gelu_tanh_slope_@s(@real x) {
    @real a = fabs@c(x), first, second;
    a = a > @CUBIC_END ? @CUBIC_END : a;
    @real p = geon_cubic_parts_@s(a, &first, &second);
    @real z = a * a, slope = GEON_FMA_@K(@CUBIC_THRICE, z, @LINEAR_WHOLE), w = a * slope;
    @real low = @CUBIC_THRICE * geon_product_error_@s(a, a, z);
    low = GEON_FMA_@K(a, low, geon_product_error_@s(a, slope, w));
    return geon_gated_slope_@s(x, w, low, p, first, second);
}

GEON_INLINE @real geon_erfinv_near_@s(@real a) {
    @real w = -geon_log_@s((1.0@ - a) * (1.0@ + a));
    @real v = w - 2.5@;
    @real t = sqrt@c(w) - @ROOT_CENTRE;
    @real near = ERFINV_@K<v>;
    @real far = ERFINV_FAR_@K<t>;
    return a * (w < 5.0@ ? near : far);
}
"""

_SINGLE = """
GEON_INLINE float geon_sum_error_f32(float x, float y, float z, float sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fmaf(x, y, z - sum);
#else
    return (float)((double)x * (double)y + ((double)z - (double)sum));
#endif
}

GEON_INLINE float geon_product_error_f32(float x, float y, float product) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fmaf(x, y, -product);
#else
    return (float)((double)x * (double)y - (double)product);
#endif
}

GEON_INLINE float geon_erfinv_f32(float x) {
    float a = fabsf(x), y = geon_erfinv_near_f32(a);
    return copysignf(a == 1.0f ? INFINITY : y, x);
}
"""

# Without fused instructions the factors are split in parts of 26 and 27 bits (Dekker, 1971). A
# step of Halley's method takes erfinv from 8 digits to all: erf(y) is as flat there as exp(-y^2).
_DOUBLE = """
GEON_INLINE double geon_sum_error_f64(double x, double y, double z, double sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma(x, y, z - sum);
#else
    double product = x * y;
    return (product + (z - sum)) + geon_product_error_f64(x, y, product);
#endif
}

GEON_INLINE double geon_product_error_f64(double x, double y, double product) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma(x, y, -product);
#else
    double a = geon_of_bits_f64(geon_bits_f64(x) & 0xfffffffff8000000u);
    double b = geon_of_bits_f64(geon_bits_f64(y) & 0xfffffffff8000000u);
    double cross = a * (y - b) + (x - a) * b;
    return ((a * b - product) + cross) + (x - a) * (y - b);
#endif
}

GEON_INLINE double geon_erfinv_f64(double x) {
    double a = fabs(x);
    double y = geon_erfinv_near_f64(a);
    double off = a < 0.5 ? geon_erf_f64(y) - a : (1.0 - a) - geon_erfc_f64(y);
    double step = off * 0.8862269254527580 * geon_exp_f64(y * y);
    y = y - step / (1.0 + y * step);
    return copysign(a == 1.0 ? INFINITY : y, x);
}
"""


# Arguments at which even 3 x exp(-x) is 0, for float32 and float64. The exponents nearest to them
# are -161 and -1087, whose second factor is 0.
_LAST = (111.6, 753.5)

# Constants of the text for float32 and float64. Those named END bound arguments beyond which
# results equal their limits. The parts of LINEAR and CUBIC are those of ``erf_formulas``; the first
# part of LINEAR is short enough for LINEAR - w to be exact.
_NUMBERS: dict[str, tuple[float, float]] = {
    "LOG2E": (1.44269502, 1.4426950408889634),
    # 1.5 2^23 + 162 and 1.5 2^52 + 1088, of which half is the exponent of the second factor: 0 at
    # an end, where a result of 0 is a product with 0 and no underflow, as in ``f32``.
    "SHIFT": (12583074.0, 6755399441056832.0),
    "LN2_HIGH": (-0.693359375, -0.6931471803691238),
    "LN2_LOW": (2.12194440e-4, -1.9082149292705877e-10),
    "EXP_TOP": (100.0, 720.0),
    "EXP_END": (-_LAST[0], -_LAST[1]),
    "ERFC_END": (math.sqrt(_LAST[0]), math.sqrt(_LAST[1])),
    "ERFCX_END": (9.5, erf_formulas.GROWTH_END),
    "NORMAL_END": (math.sqrt(2 * _LAST[0]), math.sqrt(2 * _LAST[1])),
    "CUBIC_END": (10.9662, 21.5994),  # LINEAR x + CUBIC x^3 is LAST
    "SHORT_END": (5.0 * math.sqrt(0.5), 5.5 * math.sqrt(0.5)),
    "SHORT_REST": (9.034407470042219e-10, -3.2136171735121294e-16),
    "MILLS_END": (5.0, 5.5),
    "FAR": (1e9, 1e18),
    "MINUS_DENSITY": (-erf_formulas.DENSITY, -erf_formulas.DENSITY),
    "LINEAR": (1.595768928527832, erf_formulas.LINEAR),
    "LINEAR_LOW": (1.930778986805098e-07, erf_formulas.LINEAR_LOW),
    "LINEAR_WHOLE": (1.5957691216057308, 1.5957691216057308),
    "CUBIC": (0.07135481387376785, erf_formulas.CUBIC),
    "CUBIC_LOW": (2.3988323959931355e-09, erf_formulas.CUBIC_LOW),
    # The factors of x and x^3 for powers of 2 instead of e, in two parts as above.
    "LINEAR2": (2.3022079467773438, 2.3022081981443137),
    "LINEAR2_LOW": (2.513669811391339e-07, 1.1233558506659262e-14),
    "CUBIC2": (0.10294324159622192, 0.1029432395800235),
    "CUBIC2_LOW": (-2.016198436410503e-09, -5.978177400718744e-18),
    # 1.5 2^23 + 40 and 1.5 2^52 + 80: powers are 2^40 and 2^80 times too large, so that the product
    # with x is normal where the result is not.
    "RAISED": (12582952.0, 6755399441055824.0),
    "RAISED_ONE": (2.0**40, 2.0**80),
    "SILU_LIMIT": (17.5, 37.5),
    "CUBIC_LIMIT": (5.25, 7.5),
    "CUBIC_THRICE": (3 * erf_formulas.CUBIC, 3 * erf_formulas.CUBIC),
    "ROOT_CENTRE": (3.0, 4.0),
}


def _written(dtype: str) -> str:
    """Return the text for a dtype, with names and constants of its precision."""
    single = dtype == "float32"
    words = {"real": "float", "s": "f32", "K": "F32", "uint": "uint32_t", "c": "f"}
    if not single:
        words = {"real": "double", "s": "f64", "K": "F64", "uint": "uint64_t", "c": ""}
    words["SILU_LOWEST"] = "0xc2e00000u" if single else "0xc087c00000000000u"  # -112, -760
    words["CUBIC_LOWEST"] = "0xc1300000u" if single else "0xc03599999999999au"  # -11, -21.6
    words["MANTISSA"] = "23" if single else "52"
    words["RAISED_EXPONENT"] = "92" if single else "958"
    for name, values in _NUMBERS.items():
        words[name] = f"({values[not single]:#.{9 if single else 17}g}{words['c']})"
    text = re.sub(r"(?<=\d)@(?!\w)", words["c"], _TEXT)
    return re.sub(r"@(\w+)", lambda at: words[at[1]], text)


def _exp2(exponential: Sequence[float]) -> list[float]:
    """Return coefficients of (2^r - 1) / r in r, from those of (e^r - 1 - r) / r^2."""
    return [math.log(2), *(c * math.log(2) ** (k + 2) for k, c in enumerate(exponential))]


def _normal_small(erf_small: Sequence[float]) -> list[float]:
    """Return coefficients of (Phi(x) - 1/2) / x in x^2, from those of (erf(x) / x - 1) in x^2."""
    whole = [1 + erf_small[0], *erf_small[1:]]
    return [c * 0.5**k * math.sqrt(0.125) for k, c in enumerate(whole)]


def _defined(
    dtype: str, exponential: Sequence[float], erf_small: Sequence[float], more: str
) -> dict[str, str]:
    return definitions_of(
        more.strip() + "\n\n" + _written(dtype).strip(),
        EXP=exponential,
        EXP2=_exp2(exponential),
        ERFCX=erf_formulas.ERFCX[dtype],
        MILLS=erf_formulas.MILLS[dtype],
        ERF_SMALL=erf_small,
        NORMAL_SMALL=_normal_small(erf_small),
        ERFINV=erf_formulas.ERFINV,
        ERFINV_FAR=erf_formulas.ERFINV_FAR[dtype],
    )


TAILS: dict[str, str] = _defined("float32", EXP_F32, ERF_F32, _SINGLE) | _defined(
    "float64", EXP_F64, ERF_F64, _DOUBLE
)
