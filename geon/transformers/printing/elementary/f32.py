"""Elementary functions in float32 as C text: exponentials, logarithms and functions based on them.

Every function is straight-line code without branches, tables or calls, so that a compiler
vectorises a loop over it at any width. NaN gives NaN, signed zeros and infinities are as in C's
Annex F, and subnormal numbers are as accurate as all others.

Coefficients are fitted here: least squares in 60-digit arithmetic, reweighted until the largest
relative error of the function (not of the polynomial) is least, the first three coefficients
rounded to float32 before the others are fitted again. "Fit" is that error after rounding.
"""

from __future__ import annotations

import numpy as np

from .polynomials import definitions_of

__all__ = ["EXPONENTIAL_F32"]

# (e^r - 1 - r) / r^2 for |r| <= 0.347; fit of e^r - 1: 1.4e-8.
_EXP = (0.5, 0.166665435, 0.0416664369, 0.00836655498, 0.00139377324)
_EXP_DOWN = tuple(float(np.float32(c)) * 2.0**-25 for c in _EXP)

# (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2); fit 6.0e-9.
_LOG = (
    *(0.333333164, -0.250008106, 0.20002301, -0.166245565),
    *(0.141809613, -0.13128531, 0.12882857, -0.0786147863),
)

# (atanh(s) / s - 1) / s^2 in s^2, for 0 <= s <= 1/3; fit 4.6e-9.
_ATANH = (0.333332062, 0.200108677, 0.139993325, 0.140131742)

# x = k log(2) + r, k the nearest integer: adding 1.5 2^23 rounds to k, and the low bits of the sum
# hold it. The first part of log(2) has 9 bits, so that its product with k is exact without a fused
# instruction. Results from 2^-149 to 2^128 need two factors: the polynomial is scaled by 2^-25,
# half of k + 152 is the exponent of a factor, bias included, and the other half is added to the
# polynomial's exponent; this holds for -152 <= k <= 128. Below 2^-150, where arguments are clamped
# to -105, the factor is 0: results of 0 are products with it instead of underflows, which take
# processors by Intel a hundred cycles. Arguments are clamped by their bits, as integers: that
# compiles to one instruction, a comparison that preserves NaN to several; NaN is restored at the
# end.
EXPONENTIAL_F32 = definitions_of(
    """
GEON_INLINE float geon_exp_clamp_f32(float x, uint32_t top) {
    int32_t below = (int32_t)geon_bits_f32(x);
    uint32_t bits = (uint32_t)(below < (int32_t)top ? below : (int32_t)top);
    return geon_of_bits_f32(bits < 0xc2d20000u ? bits : 0xc2d20000u);
}

GEON_INLINE float geon_exp_inside_f32(float a) {
    float shifted = GEON_FMA_F32(a, 1.44269502f, 12583064.0f);
    float k = shifted - 12583064.0f;
    float r = GEON_FMA_F32(k, 2.12194440e-4f, GEON_FMA_F32(k, -0.693359375f, a));
    float p = EXP_DOWN_F32<r>;
    p = GEON_FMA_F32(GEON_FMA_F32(p, r, 0x1p-25f), r, 0x1p-25f);
    uint32_t n = geon_bits_f32(shifted);
    uint32_t half = n >> 1;
    p = geon_of_bits_f32(geon_bits_f32(p) + ((n - half) << 23));
    return p * geon_of_bits_f32(half << 23);
}

GEON_INLINE float geon_exp_f32(float x) {
    float y = geon_exp_inside_f32(geon_exp_clamp_f32(x, 0x42b20000u));
    return x != x ? x : y;
}

GEON_INLINE float geon_expm1_scaled_f32(float a, float scale, uint32_t exponent) {
    float shifted = GEON_FMA_F32(a, 1.44269502f, 12582912.0f);
    float k = shifted - 12582912.0f;
    float r = GEON_FMA_F32(k, 2.12194440e-4f, GEON_FMA_F32(k, -0.693359375f, a));
    float p = EXP_F32<r>;
    p = GEON_FMA_F32(r * r, p, r);
    float power = geon_of_bits_f32((geon_bits_f32(shifted) + exponent) << 23);
    return GEON_FMA_F32(power, p, power - scale);
}

GEON_INLINE float geon_expm1_f32(float x) {
    float a = geon_exp_clamp_f32(x < -20.0f ? -20.0f : x, 0x42b20000u);
    float y = 2.0f * geon_expm1_scaled_f32(a, 0.5f, 126);
    return fabsf(x) >= 0x1p-25f ? y : x;
}

GEON_INLINE float geon_sinh_f32(float x) {
    float a = fabsf(x);
    float q = geon_expm1_scaled_f32(a > 89.5f ? 89.5f : a, 0.25f, 125);
    float y = 2.0f * (q + q / GEON_FMA_F32(4.0f, q, 1.0f));
    return copysignf(a < 0x1p-13f ? a : y, x);
}

GEON_INLINE float geon_cosh_f32(float x) {
    float a = fabsf(x);
    a = a > 89.5f ? 89.5f : a;
    float q = geon_expm1_scaled_f32(a, 0.25f, 125) + 0.25f;
    return GEON_FMA_F32(2.0f, q, 0.125f / q);
}

GEON_INLINE float geon_tanh_f32(float x) {
    float a = -2.0f * fabsf(x);
    float t = geon_expm1_scaled_f32(a < -20.0f ? -20.0f : a, 1.0f, 127);
    return copysignf(t / (2.0f + t), x);
}

GEON_INLINE float geon_sigmoid_f32(float x) {
    float z = geon_exp_inside_f32(geon_exp_clamp_f32(x, 0x42200000u));
    float y = z / (1.0f + z);
    return x != x ? x : y;
}

GEON_INLINE float geon_softplus_of_f32(float x, float z) {
    float s = z / (2.0f + z);
    float w = s * s;
    float p = ATANH_F32<w>;
    s = 2.0f * s;
    return (x > 0.0f ? x : 0.0f) + GEON_FMA_F32(s * w, p, s);
}

GEON_INLINE float geon_softplus_f32(float x) {
    float y = geon_softplus_of_f32(x, geon_exp_inside_f32(geon_exp_clamp_f32(-fabsf(x), 0)));
    return x != x ? x : y;
}

GEON_INLINE float geon_log_of_parts_f32(float k, float f) {
    float z = f * f;
    float p = LOG_F32<f>;
    float y = GEON_FMA_F32(k, -2.12194440e-4f, f * z * p);
    y = f + GEON_FMA_F32(-0.5f, z, y);
    return GEON_FMA_F32(k, 0.693359375f, y);
}

GEON_INLINE float geon_asinh_f32(float x) {
    float a = fabsf(x);
    float z = a * a;
    float near = a + z / (1.0f + sqrtf(1.0f + z));
    float y = geon_log1p_f32(a < 0x1p30f ? near : a) + (a < 0x1p30f ? 0.0f : 0.693147182f);
    return copysignf(y, x);
}

GEON_INLINE float geon_acosh_f32(float x) {
    float t = x - 1.0f;
    float near = t + sqrtf(t * (t + 2.0f));
    float y = geon_log1p_f32(x < 0x1p30f ? near : x) + (x < 0x1p30f ? 0.0f : 0.693147182f);
    return x >= 1.0f ? y : NAN;
}

GEON_INLINE float geon_atanh_f32(float x) {
    float a = fabsf(x);
    return copysignf(0.5f * geon_log1p_f32(2.0f * a / (1.0f - a)), x);
}
""",
    EXP=_EXP,
    EXP_DOWN=_EXP_DOWN,
    LOG=_LOG,
    ATANH=_ATANH,
)
