"""Elementary functions in float64 as C text.

Exponentials, logarithms, sigmoid, softplus, tanh, sinh, cosh and erf are straight-line code that
vectorises, as in ``f32``; for angles see ``f64_angles``. The inverse hyperbolic functions are the C
library's, and have its error (glibc's acosh: 2.3 ulp).

Over a million arguments the error is below 1 ulp for exp and log, 1.5 for expm1, log1p, sigmoid and
erf, 1.8 for tanh and softplus, 1.6 for sinh and cosh, 1.5 for sin and cos; without fused
multiply-adds at most 2.5.

In powers, the logarithm has some 64 correct bits, in two numbers, because the exponent multiplies
its error by up to 1,075. Over a million pairs the error is at most 1.1 ulp for pow; without fused
multiply-adds at most 2.5.
"""

from __future__ import annotations

import math

from .polynomials import definitions_of

__all__ = ["ELEMENTARY_F64", "POWERS_F64"]

# Fits as in f32, coefficients rounded to float64.
# (e^r - 1 - r) / r^2 for |r| <= 0.347; fit of e^r - 1: 1.8e-17.
_EXP = (
    *(0.5000000000000006, 0.16666666666666685, 0.041666666666573364),
    *(0.008333333333315228, 0.0013888888932507596, 0.0001984126990147204),
    *(2.4801504254371862e-05, 2.7557229473230046e-06, 2.7626413906748814e-07),
    2.5113960163993417e-08,
)

# (2 atanh(s) / s - 2) / s^2 in s^2 for |s| <= 0.1716; fit of atanh 1.3e-18.
_ATANH = (
    *(0.6666666666666735, 0.39999999999410646, 0.2857142874318073, 0.22222198499035734),
    *(0.18183567913253867, 0.15313963738819855, 0.1479678154038841),
)

# (sinh(x) / x - 1) / x^2 in x^2 for |x| <= 1; interpolated as for powers:
# fit 9.2e-18.
_SINH = (
    *(0.16666666666666666, 0.008333333333333299, 0.00019841269841324198),
    *(2.7557319191381574e-06, 2.5052117695948235e-08, 1.605767962056853e-10),
    7.746178692504591e-13,
)

# ``geon_corrected`` refines n / (d + rest) from q = n / d and ``inverse``, about 1 / d, by the
# exact remainder. Without fused instructions the remainder is not exact, there is no correction,
# and tanh and sigmoid have errors of up to 2.5 ulp. The first part of log(2) has 32 bits: its
# product with an exponent is exact. For exp of -746 the second factor is 0, as in float32; the
# polynomial compensates for the shifted exponents by a scale of 2^969.
_EXPONENTIAL = definitions_of(
    """
GEON_INLINE double geon_exp_below_710_f64(double x) {
    double a = x < -746.0 ? -746.0 : x;
    double shifted = GEON_FMA_F64(a, 1.4426950408889634, 6755399441056821.0);
    double k = shifted - 6755399441056821.0;
    double r = GEON_FMA_F64(k, -0.6931471803691238, a);
    r = GEON_FMA_F64(k, -1.9082149292705877e-10, r);
    double p = EXP_UP_F64<r>;
    p = GEON_FMA_F64(GEON_FMA_F64(p, r, 0x1p969), r, 0x1p969);
    uint64_t n = geon_bits_f64(shifted);
    uint64_t half = n >> 1;
    return p * geon_of_bits_f64((n - half) << 52) * geon_of_bits_f64(half << 52);
}

GEON_INLINE double geon_exp_f64(double x) {
    return geon_exp_below_710_f64(x > 710.0 ? 710.0 : x);
}

GEON_INLINE double geon_half_exp_f64(double x) {
    double a = x > 712.0 ? 712.0 : x;
    double shifted = GEON_FMA_F64(a, 1.4426950408889634, 6755399441057789.0);
    double k = shifted - 6755399441057789.0;
    double r = GEON_FMA_F64(k, -0.6931471803691238, a);
    r = GEON_FMA_F64(k, -1.9082149292705877e-10, r);
    double p = EXP_F64<r>;
    p = GEON_FMA_F64(GEON_FMA_F64(p, r, 1.0), r, 1.0);
    uint64_t n = geon_bits_f64(shifted);
    uint64_t half = n >> 1;
    return p * geon_of_bits_f64(half << 52) * geon_of_bits_f64((n - half) << 52);
}

GEON_INLINE double geon_sinh_f64(double x) {
    double a = fabs(x);
    double h = geon_half_exp_f64(a);
    double z = x * x;
    double small = SINH_F64<z>;
    small = GEON_FMA_F64(a * z, small, a);
    return copysign(a < 1.0 ? small : h - 0.25 / h, x);
}

GEON_INLINE double geon_cosh_f64(double x) {
    double h = geon_half_exp_f64(fabs(x));
    return h + 0.25 / h;
}

GEON_INLINE double geon_expm1_scaled_f64(double a, double scale, uint64_t exponent) {
    double shifted = GEON_FMA_F64(a, 1.4426950408889634, 6755399441055744.0);
    double k = shifted - 6755399441055744.0;
    double high = GEON_FMA_F64(k, -0.6931471803691238, a);
    double low = k * 1.9082149292705877e-10;
    double r = high - low;
    double p = EXP_F64<r>;
    p = GEON_FMA_F64(r * r, p, (high - r) - low);
    double power = geon_of_bits_f64((geon_bits_f64(shifted) + exponent) << 52);
    double whole = power - scale;
    double sum = GEON_FMA_F64(power, r, whole);
    return sum + GEON_FMA_F64(power, p, GEON_FMA_F64(power, r, whole - sum));
}

GEON_INLINE double geon_expm1_f64(double x) {
    double a = x > 710.0 ? 710.0 : x;
    double y = 2.0 * geon_expm1_scaled_f64(a < -40.0 ? -40.0 : a, 0.5, 1022);
    return fabs(x) < 0x1p-54 ? x : y;
}

GEON_INLINE double geon_corrected_f64(double n, double d, double rest, double q, double inverse) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    double left = fma(-q, rest, fma(-q, d, n));
    return fma(left, inverse, q);
#else
    (void)n, (void)d, (void)rest, (void)inverse;
    return q;
#endif
}

GEON_INLINE double geon_tanh_f64(double x) {
    double a = -2.0 * fabs(x);
    double t = geon_expm1_scaled_f64(a < -40.0 ? -40.0 : a, 1.0, 1023);
    double d = 2.0 + t;
    double q = t / d;
    double y = geon_corrected_f64(t, d, t - (d - 2.0), q, 0.5 - 0.5 * q);
    return copysign(y, x);
}

GEON_INLINE double geon_sigmoid_f64(double x) {
    double z = geon_exp_below_710_f64(-fabs(x));
    double n = x > 0.0 ? 1.0 : z;
    double d = 1.0 + z;
    double q = n / d;
    return geon_corrected_f64(n, d, z - (d - 1.0), q, x > 0.0 ? q : 1.0 - q);
}

GEON_INLINE double geon_log_of_parts_f64(double k, double f) {
    double s = f / (2.0 + f);
    double z = s * s;
    double p = ATANH_F64<z>;
    double half = 0.5 * f * f;
    double y = GEON_FMA_F64(s, GEON_FMA_F64(z, p, half), k * 1.9082149292705877e-10);
    return GEON_FMA_F64(k, 0.6931471803691238, f - (half - y));
}

GEON_INLINE double geon_softplus_f64(double x) {
    double z = geon_exp_below_710_f64(-fabs(x));
    return (x > 0.0 ? x : 0.0) + geon_log1p_f64(z);
}

""",
    EXP=_EXP,
    EXP_UP=[c * 2.0**969 for c in _EXP],
    ATANH=_ATANH,
    SINH=_SINH,
)

_LIBRARY = {
    f"geon_{name}_f64": f"GEON_INLINE double geon_{name}_f64(double x) {{\n"
    f"    return {name}(x);\n}}\n"
    for name in ("asinh", "acosh", "atanh")
}

ELEMENTARY_F64: dict[str, str] = _EXPONENTIAL | _LIBRARY


# (log2(1 + f) / s - c0 - c1 s^2) / s^4 in s^2, s = f / (2 + f), for sqrt(1/2) <= 1 + f <= sqrt(2),
# where c0 = 2 / log(2) and c1 = c0 / 3 are in the text, in two parts each; interpolated at
# Chebyshev's nodes in 60 digits, coefficients rounded to float64; fit of log2 1.6e-20.
_LOG2 = (
    *(0.5770780163555853, 0.4121985831111439, 0.320598897967159, 0.26230819146715817),
    *(0.2219527886918906, 0.19238056020281674, 0.1688854475683054, 0.16912807806290253),
)

# (2^g - 1) / g in g for |g| <= 1/2, from that of e^r.
_EXP2 = (math.log(2), *(c * math.log(2) ** (k + 2) for k, c in enumerate(_EXP)))

# Rounding errors of sums and products that matter are computed, too (Dekker, 1971). The exponent is
# an integer if adding 2^52 does not round it; the last bit of the sum is then its parity.
POWERS_F64 = definitions_of(
    """
GEON_INLINE double geon_log2_of_parts_f64(double k, double m, double *low) {
    double f = m - 1.0;
    double d = m + 1.0;
    double s = f / d;
    double rest = geon_sum_error_f64(-s, d, f, 0.0);
    rest = GEON_FMA_F64(-s, m - (d - 1.0), rest) * GEON_FMA_F64(-0.5, s, 0.5);
    double z = s * s;
    double z_low = GEON_FMA_F64(2.0 * s, rest, geon_product_error_f64(s, s, z));
    double q = LOG2_F64<z>;
    double c = GEON_FMA_F64(z, q, 0.96179669392597560);
    double c_low = GEON_FMA_F64(z, q, 0.96179669392597560 - c) + 5.0577616648125907e-17;
    double p = z * c;
    double p_low = GEON_FMA_F64(z, c_low, GEON_FMA_F64(z_low, c, geon_product_error_f64(z, c, p)));
    double w = 2.8853900817779268 + p;
    double w_low = ((2.8853900817779268 - w) + p) + (p_low + 4.0710547481862066e-17);
    double v = s * w;
    double v_low = GEON_FMA_F64(s, w_low, GEON_FMA_F64(rest, w, geon_product_error_f64(s, w, v)));
    double y = k + v;
    *low = ((k - y) + v) + v_low;
    return y;
}

GEON_INLINE double geon_pow_f64(double x, double y) {
    double a = fabs(x);
    double b = fabs(y);
    uint64_t n = geon_bits_f64(a < 0x1p-1022 ? a * 0x1p52 : a) - 0x3fe6a09e667f3bcdu;
    double exponent = geon_exponent_f64(n) - (a < 0x1p-1022 ? 52.0 : 0.0);
    double mantissa = geon_of_bits_f64((n & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double low;
    double logarithm = geon_log2_of_parts_f64(exponent, mantissa, &low);
    logarithm = a < INFINITY ? logarithm : a;
    logarithm = a == 0.0 ? -INFINITY : logarithm;
    double whole = y * logarithm;
    low = GEON_FMA_F64(y, low, geon_product_error_f64(y, logarithm, whole));
    low = fabs(whole) < 1100.0 ? low : 0.0;
    whole = whole > 1100.0 ? 1100.0 : whole;
    whole = whole < -1100.0 ? -1100.0 : whole;
    double shifted = whole + 6755399441057790.0;
    double g = (whole - (shifted - 6755399441057790.0)) + low;
    double p = EXP2_F64<g>;
    p = GEON_FMA_F64(p, g, 1.0);
    uint64_t power = geon_bits_f64(shifted);
    uint64_t half = power >> 1;
    p = p * geon_of_bits_f64(half << 52) * geon_of_bits_f64((power - half) << 52);
    double bounded = b < 0x1p53 ? b : 0x1p53;
    double rounded = bounded < 0x1p52 ? bounded + 0x1p52 : bounded;
    double fraction = bounded < 0x1p52 ? bounded - (rounded - 0x1p52) : 0.0;
    uint64_t odd = fraction == 0.0 ? geon_bits_f64(rounded) << 63 : 0u;
    p = ((a == 1.0) & (y == y)) ? 1.0 : p;
    p = geon_of_bits_f64(geon_bits_f64(p) ^ (odd & geon_bits_f64(x)));
    p = ((x < 0.0) & (a < INFINITY) & (fraction != 0.0)) ? NAN : p;
    return ((x == 1.0) | (y == 0.0)) ? 1.0 : p;
}
""",
    LOG2=_LOG2,
    EXP2=_EXP2,
)
