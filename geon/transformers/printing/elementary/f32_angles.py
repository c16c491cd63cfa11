"""Trigonometric functions, their inverses and powers in float32 as C text.

As in ``f32``: straight-line code that vectorises, correct on the whole domain. The reduction to a
quarter turn and powers need more digits than float32 has; they run in float64, everything after the
reduction in float32.

Over every third float32 the error is at most 1.6 ulp for sin, cos, atan and acos, 2.4 for asin and
3.2 for tan; over millions of pairs 0.6 for pow and 1.6 for atan2.
"""

from __future__ import annotations

from .polynomials import definitions_of

__all__ = ["ANGLES_F32"]

# Fits as in f32. (sin(r) / r - 1) / r^2, (cos(r) - 1 + r^2 / 2) / r^4 and
# (tan(r) / r - 1) / r^2 in r^2 for |r| <= 0.787; fits 3.7e-9, 1.1e-10, 2.2e-8.
_SIN = (-0.166666552, 0.0083321901, -0.000195184082)
_COS = (0.0416666456, -0.0013887299, 2.44302355e-05)
_TAN = (0.333331406, 0.133392006, 0.0533799529, 0.0245357193, 0.00295931241, 0.0094759753)

# (asin(x) / x - 1) / x^2 in x^2 for |x| <= 1/2; fit 5.2e-9.
_ASIN = (0.166667506, 0.0749534816, 0.0454657488, 0.0241970941, 0.0421424843)

# (atan(t) / t - 1) / t^2 in t^2 for |t| <= 1; fit 2.4e-8.
_ATAN = (
    *(-0.333331704, 0.199942052, -0.142147049, 0.106807344),
    *(-0.0758415833, 0.0435935706, -0.0166047066, 0.00298024551),
)

# log2(1 + f) / s in s^2, s = f / (2 + f), for sqrt(1/2) <= 1 + f <= sqrt(2); fit 2.7e-14.
_LOG2 = (
    *(2.88539008177785, 0.9617966941134661, 0.5770779423239999),
    *(0.4122092569253879, 0.31990549473935095, 0.2829032561642055),
)

# 2^g for |g| <= 1/2; fit 1.9e-9.
_EXP2 = (
    *(1.0000000005543481, 0.6931472057366559, 0.240226468892106, 0.0555032877797288),
    *(0.009618489112848272, 0.0013399930892626145, 0.00015345769919604003),
)

# A float32 of at least 2^e is a multiple of 2^(e - 23), so multiples of 2^(25 - e) can be
# subtracted from 2 / pi: the product then changes by full turns. The remainder, in two parts of 53
# bits, serves at least 20 exponents; five such pairs serve all (Payne and Hanek's reduction,
# without a table). Adding 1.5 2^52 rounds to the nearest integer, whose last bits are the quadrant.
ANGLES_F32 = definitions_of(
    """
GEON_INLINE double geon_product_less_f64(double single, double factor, double whole) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma(single, factor, -whole);
#else
    double high = geon_of_bits_f64(geon_bits_f64(factor) & 0xffffffffff000000u);
    return (single * high - whole) + single * (factor - high);
#endif
}

GEON_INLINE float geon_rest_of_quarters_f32(
    double a, double high, double low, uint32_t *quarters) {
    double shifted = GEON_FMA_F64(a, high, 6755399441055744.0);
    double rest = geon_product_less_f64(a, high, shifted - 6755399441055744.0);
    rest = GEON_FMA_F64(a, low, rest);
    *quarters = (uint32_t)geon_bits_f64(shifted);
    return (float)(rest * 1.5707963267948966);
}

GEON_INLINE float geon_quarter_f32(float x, uint32_t *quarters) {
    double a = (double)fabsf(x);
    double high = a < 0x1p108 ? 1.0760572810738749e-19 : -2.643052792873273e-26;
    double low = a < 0x1p108 ? -1.690193447800753e-36 : -1.3190424939343312e-42;
    high = a < 0x1p87 ? -2.1286911117399287e-13 : high;
    low = a < 0x1p87 ? -5.321602079519459e-31 : low;
    high = a < 0x1p66 ? 2.0449648759307553e-07 : high;
    low = a < 0x1p66 ? 6.074026489649846e-24 : low;
    high = a < 0x1p46 ? 0.6366197723675814 : high;
    low = a < 0x1p46 ? -3.935735335036497e-17 : low;
    return geon_rest_of_quarters_f32(a, high, low, quarters);
}

GEON_INLINE float geon_near_quarter_f32(float x, uint32_t *quarters) {
    double a = (double)fabsf(x);
    return geon_rest_of_quarters_f32(a, 0.6366197723675814, -3.935735335036497e-17, quarters);
}

GEON_INLINE float geon_sin_of_quarter_f32(float r, uint32_t quarters, uint32_t sign) {
    float z = r * r;
    float s = SIN_F32<z>;
    s = GEON_FMA_F32(r * z, s, r);
    float c = COS_F32<z>;
    c = GEON_FMA_F32(z * z, c, GEON_FMA_F32(-0.5f, z, 1.0f));
    float y = quarters & 1u ? c : s;
    return geon_of_bits_f32(geon_bits_f32(y) ^ sign ^ ((quarters & 2u) << 30));
}

GEON_INLINE float geon_tan_f32(float x) {
    uint32_t quarters;
    float r = geon_quarter_f32(x, &quarters);
    float z = r * r;
    float t = TAN_F32<z>;
    t = GEON_FMA_F32(r * z, t, r);
    float y = (quarters & 1u ? -1.0f : t) / (quarters & 1u ? t : 1.0f);
    return geon_of_bits_f32(geon_bits_f32(y) ^ (geon_bits_f32(x) & 0x80000000u));
}

GEON_INLINE float geon_asin_of_half_f32(float a) {
    float z = a > 0.5f ? GEON_FMA_F32(-0.5f, a, 0.5f) : a * a;
    float s = a > 0.5f ? sqrtf(z) : a;
    float p = ASIN_F32<z>;
    return GEON_FMA_F32(s * z, p, s);
}

GEON_INLINE float geon_asin_f32(float x) {
    float a = fabsf(x);
    float s = geon_asin_of_half_f32(a);
    float y = a > 0.5f ? 1.57079637f - GEON_FMA_F32(2.0f, s, 4.37113883e-8f) : s;
    return copysignf(y, x);
}

GEON_INLINE float geon_acos_f32(float x) {
    float a = fabsf(x);
    float s = geon_asin_of_half_f32(a);
    float inner = 1.57079637f - (copysignf(s, x) + 4.37113883e-8f);
    float outer = x > 0.0f ? 2.0f * s : 3.14159274f - GEON_FMA_F32(2.0f, s, 8.74227766e-8f);
    return a > 0.5f ? outer : inner;
}

GEON_INLINE float geon_atan_to_one_f32(float t) {
    float z = t * t;
    float p = ATAN_F32<z>;
    return GEON_FMA_F32(t * z, p, t);
}

GEON_INLINE float geon_atan_f32(float x) {
    float a = fabsf(x);
    float t = geon_atan_to_one_f32((a > 1.0f ? 1.0f : a) / (a > 1.0f ? a : 1.0f));
    return copysignf(a > 1.0f ? 1.57079637f - (t + 4.37113883e-8f) : t, x);
}

GEON_INLINE float geon_atan2_f32(float y, float x) {
    float a = fabsf(x);
    float b = fabsf(y);
    float small = b < a ? b : a;
    float large = b < a ? a : b;
    float ratio = small == large ? 1.0f : small / large;
    float t = geon_atan_to_one_f32(large == 0.0f ? 0.0f : ratio);
    t = b > a ? 1.57079637f - (t + 4.37113883e-8f) : t;
    t = geon_bits_f32(x) >> 31 ? 3.14159274f - (t + 8.74227766e-8f) : t;
    return x != x || y != y ? x + y : copysignf(t, y);
}

GEON_INLINE float geon_pow_f32(float x, float y) {
    float a = fabsf(x);
    float b = fabsf(y);
    float normal = a < 0x1p-126f ? a * 0x1p23f : a;
    uint32_t n = geon_bits_f32(normal) - 0x3f3504f3u;
    float k = (float)((int32_t)n >> 23) - (a < 0x1p-126f ? 23.0f : 0.0f);
    double f = (double)(geon_of_bits_f32((n & 0x7fffffu) + 0x3f3504f3u) - 1.0f);
    double s = f / (2.0 + f);
    double w = s * s;
    double logarithm = LOG2_F64<w>;
    logarithm = GEON_FMA_F64(s, logarithm, (double)k);
    logarithm = a < INFINITY ? logarithm : (double)a;
    double t = (double)y * (a == 0.0f ? -INFINITY : logarithm);
    t = t > 200.0 ? 200.0 : t;
    t = t < -200.0 ? -200.0 : t;
    double shifted = t + 6755399441055744.0;
    double g = t - (shifted - 6755399441055744.0);
    double p = EXP2_F64<g>;
    float magnitude = (float)(p * geon_of_bits_f64((geon_bits_f64(shifted) + 1023u) << 52));
    double bounded = (double)(b < 0x1p24f ? b : 0x1p24f);
    double rounded = bounded + 6755399441055744.0;
    uint32_t is_whole = -(uint32_t)(rounded - 6755399441055744.0 == bounded);
    uint32_t negated = is_whole & ((uint32_t)geon_bits_f64(rounded) << 31) & geon_bits_f32(x);
    uint32_t no_number = ~is_whole & -(uint32_t)((x < 0.0f) & (a < INFINITY));
    magnitude = ((a == 1.0f) & (y == y)) ? 1.0f : magnitude;
    magnitude = geon_of_bits_f32((geon_bits_f32(magnitude) ^ negated) | (no_number & 0x7fc00000u));
    return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : magnitude;
}
""",
    SIN=_SIN,
    COS=_COS,
    TAN=_TAN,
    ASIN=_ASIN,
    ATAN=_ATAN,
    LOG2=_LOG2,
    EXP2=_EXP2,
)
