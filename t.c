#include <stdint.h>
#include <stddef.h>
#define GEON_INLINE static inline __attribute__((always_inline, unused))
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define GEON_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#define GEON_FMA_F64(a, b, c) __builtin_fma(a, b, c)
#else
#define GEON_FMA_F32(a, b, c) ((a) * (b) + (c))
#define GEON_FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

GEON_INLINE uint32_t geon_bits_f32(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

GEON_INLINE float geon_of_bits_f32(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

GEON_INLINE float geon_exp_below_89_f32(float x) {
    float a = x < -104.0f ? -104.0f : x;
    float shifted = GEON_FMA_F32(a, 1.44269502f, 12583166.0f);
    float k = shifted - 12583166.0f;
    float r = GEON_FMA_F32(k, 2.12194440e-4f, GEON_FMA_F32(k, -0.693359375f, a));
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.00139377324f, r,
        0.00836655498f), r,
        0.0416664369f), r,
        0.166665435f), r,
        0.500000000f);
    p = GEON_FMA_F32(GEON_FMA_F32(p, r, 1.0f), r, 1.0f);
    uint32_t n = geon_bits_f32(shifted);
    uint32_t half = n >> 1;
    return p * geon_of_bits_f32(half << 23) * geon_of_bits_f32((n - half) << 23);
}

GEON_INLINE float geon_exp_f32(float x) {
    return geon_exp_below_89_f32(x > 89.0f ? 89.0f : x);
}

GEON_INLINE float geon_expm1_scaled_f32(float a, float scale, uint32_t exponent) {
    float shifted = GEON_FMA_F32(a, 1.44269502f, 12582912.0f);
    float k = shifted - 12582912.0f;
    float r = GEON_FMA_F32(k, 2.12194440e-4f, GEON_FMA_F32(k, -0.693359375f, a));
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.00139377324f, r,
        0.00836655498f), r,
        0.0416664369f), r,
        0.166665435f), r,
        0.500000000f);
    p = GEON_FMA_F32(r * r, p, r);
    float power = geon_of_bits_f32((geon_bits_f32(shifted) + exponent) << 23);
    return GEON_FMA_F32(power, p, power - scale);
}

GEON_INLINE float geon_expm1_f32(float x) {
    float a = x > 89.0f ? 89.0f : x;
    a = a < -20.0f ? -20.0f : a;
    float y = 2.0f * geon_expm1_scaled_f32(a, 0.5f, 126);
    return __builtin_fabsf(x) < 0x1p-25f ? x : y;
}

GEON_INLINE float geon_sinh_f32(float x) {
    float a = __builtin_fabsf(x);
    float q = geon_expm1_scaled_f32(a > 89.5f ? 89.5f : a, 0.25f, 125);
    float y = 2.0f * (q + q / GEON_FMA_F32(4.0f, q, 1.0f));
    return __builtin_copysignf(a < 0x1p-13f ? a : y, x);
}

GEON_INLINE float geon_cosh_f32(float x) {
    float a = __builtin_fabsf(x);
    a = a > 89.5f ? 89.5f : a;
    float q = geon_expm1_scaled_f32(a, 0.25f, 125) + 0.25f;
    return GEON_FMA_F32(2.0f, q, 0.125f / q);
}

GEON_INLINE float geon_tanh_f32(float x) {
    float a = -2.0f * __builtin_fabsf(x);
    float t = geon_expm1_scaled_f32(a < -20.0f ? -20.0f : a, 1.0f, 127);
    return __builtin_copysignf(t / (2.0f + t), x);
}

GEON_INLINE float geon_erf_f32(float x) {
    float a = __builtin_fabsf(x);
    float z = a * a;
    float small = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(-0.000606181799f, z,
        0.00500652567f), z,
        -0.0267752670f), z,
        0.112820394f), z,
        -0.376125127f), z,
        0.128379151f);
    small = GEON_FMA_F32(a, small, a);
    a = a > 3.925f ? 3.925f : a;
    float root = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(1.99415263e-05f, a,
        -9.38106532e-05f), a,
        -0.00122343027f), a,
        0.00946498290f), a,
        -0.00573510630f), a,
        -0.0668196306f), a,
        -0.142253891f), a,
        1.00022113f);
    root = root * root;
    root = root * root;
    float y = a < 0.9f ? small : 1.0f - root * root;
    return __builtin_copysignf(y, x);
}

GEON_INLINE float geon_sigmoid_f32(float x) {
    float z = geon_exp_below_89_f32(x > 40.0f ? 40.0f : x);
    return z / (1.0f + z);
}

GEON_INLINE float geon_softplus_f32(float x) {
    float z = geon_exp_below_89_f32(-__builtin_fabsf(x));
    float s = z / (2.0f + z);
    float w = s * s;
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.140131742f, w,
        0.139993325f), w,
        0.200108677f), w,
        0.333332062f);
    s = 2.0f * s;
    return (x > 0.0f ? x : 0.0f) + GEON_FMA_F32(s * w, p, s);
}

GEON_INLINE float geon_log_of_parts_f32(float k, float f) {
    float z = f * f;
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(-0.0786147863f, f,
        0.128828570f), f,
        -0.131285310f), f,
        0.141809613f), f,
        -0.166245565f), f,
        0.200023010f), f,
        -0.250008106f), f,
        0.333333164f);
    float y = GEON_FMA_F32(k, -2.12194440e-4f, f * z * p);
    y = f + GEON_FMA_F32(-0.5f, z, y);
    return GEON_FMA_F32(k, 0.693359375f, y);
}

GEON_INLINE float geon_log_f32(float x) {
    float normal = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t n = geon_bits_f32(normal) - 0x3f3504f3u;
    float k = (float)((int32_t)n >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
    float f = geon_of_bits_f32((n & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float y = geon_log_of_parts_f32(k, f);
    float edge = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
    return x > 0.0f ? (x < __builtin_inff() ? y : x) : edge;
}

GEON_INLINE float geon_log1p_f32(float x) {
    float u = 1.0f + x;
    uint32_t n = geon_bits_f32(u) - 0x3f3504f3u;
    float k = (float)((int32_t)n >> 23);
    float scale = geon_of_bits_f32(0x40800000u - (n & 0xff800000u));
    float f = 0.25f * GEON_FMA_F32(x, scale, scale - 4.0f);
    float y = geon_log_of_parts_f32(k, f);
    float edge = x == -1.0f ? -__builtin_inff() : __builtin_nanf("");
    y = x < __builtin_inff() && x != 0.0f ? y : x;
    return x > -1.0f ? y : edge;
}

GEON_INLINE float geon_asinh_f32(float x) {
    float a = __builtin_fabsf(x);
    float z = a * a;
    float near = a + z / (1.0f + __builtin_sqrtf(1.0f + z));
    float y = geon_log1p_f32(a < 0x1p30f ? near : a) + (a < 0x1p30f ? 0.0f : 0.693147182f);
    return __builtin_copysignf(y, x);
}

GEON_INLINE float geon_acosh_f32(float x) {
    float t = x - 1.0f;
    float near = t + __builtin_sqrtf(t * (t + 2.0f));
    float y = geon_log1p_f32(x < 0x1p30f ? near : x) + (x < 0x1p30f ? 0.0f : 0.693147182f);
    return x >= 1.0f ? y : __builtin_nanf("");
}

GEON_INLINE float geon_atanh_f32(float x) {
    float a = __builtin_fabsf(x);
    return __builtin_copysignf(0.5f * geon_log1p_f32(2.0f * a / (1.0f - a)), x);
}

GEON_INLINE double geon_of_bits_f64(uint64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

GEON_INLINE uint64_t geon_bits_f64(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

GEON_INLINE double geon_product_less_f64(double single, double factor, double whole) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(single, factor, -whole);
#else
    double high = geon_of_bits_f64(geon_bits_f64(factor) & 0xffffffffff000000u);
    return (single * high - whole) + single * (factor - high);
#endif
}

GEON_INLINE float geon_quarter_f32(float x, uint32_t *quarters) {
    double a = (double)__builtin_fabsf(x);
    double high = a < 0x1p108 ? 1.0760572810738749e-19 : -2.643052792873273e-26;
    double low = a < 0x1p108 ? -1.690193447800753e-36 : -1.3190424939343312e-42;
    high = a < 0x1p87 ? -2.1286911117399287e-13 : high;
    low = a < 0x1p87 ? -5.321602079519459e-31 : low;
    high = a < 0x1p66 ? 2.0449648759307553e-07 : high;
    low = a < 0x1p66 ? 6.074026489649846e-24 : low;
    high = a < 0x1p46 ? 0.6366197723675814 : high;
    low = a < 0x1p46 ? -3.935735335036497e-17 : low;
    double shifted = GEON_FMA_F64(a, high, 6755399441055744.0);
    double rest = geon_product_less_f64(a, high, shifted - 6755399441055744.0);
    rest = GEON_FMA_F64(a, low, rest);
    *quarters = (uint32_t)geon_bits_f64(shifted);
    return (float)(rest * 1.5707963267948966);
}

GEON_INLINE float geon_sin_of_quarter_f32(float r, uint32_t quarters, uint32_t sign) {
    float z = r * r;
    float s = GEON_FMA_F32(GEON_FMA_F32(-0.000195184082f, z,
        0.00833219010f), z,
        -0.166666552f);
    s = GEON_FMA_F32(r * z, s, r);
    float c = GEON_FMA_F32(GEON_FMA_F32(2.44302355e-05f, z,
        -0.00138872990f), z,
        0.0416666456f);
    c = GEON_FMA_F32(z * z, c, GEON_FMA_F32(-0.5f, z, 1.0f));
    float y = quarters & 1u ? c : s;
    return geon_of_bits_f32(geon_bits_f32(y) ^ sign ^ ((quarters & 2u) << 30));
}

GEON_INLINE float geon_sin_f32(float x) {
    uint32_t quarters;
    float r = geon_quarter_f32(x, &quarters);
    return geon_sin_of_quarter_f32(r, quarters, geon_bits_f32(x) & 0x80000000u);
}

GEON_INLINE float geon_cos_f32(float x) {
    uint32_t quarters;
    float r = geon_quarter_f32(x, &quarters);
    return geon_sin_of_quarter_f32(r, quarters + 1u, 0u);
}

GEON_INLINE float geon_tan_f32(float x) {
    uint32_t quarters;
    float r = geon_quarter_f32(x, &quarters);
    float z = r * r;
    float t = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.00947597530f, z,
        0.00295931241f), z,
        0.0245357193f), z,
        0.0533799529f), z,
        0.133392006f), z,
        0.333331406f);
    t = GEON_FMA_F32(r * z, t, r);
    float y = (quarters & 1u ? -1.0f : t) / (quarters & 1u ? t : 1.0f);
    return geon_of_bits_f32(geon_bits_f32(y) ^ (geon_bits_f32(x) & 0x80000000u));
}

GEON_INLINE float geon_asin_of_half_f32(float a) {
    float z = a > 0.5f ? GEON_FMA_F32(-0.5f, a, 0.5f) : a * a;
    float s = a > 0.5f ? __builtin_sqrtf(z) : a;
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.0421424843f, z,
        0.0241970941f), z,
        0.0454657488f), z,
        0.0749534816f), z,
        0.166667506f);
    return GEON_FMA_F32(s * z, p, s);
}

GEON_INLINE float geon_asin_f32(float x) {
    float a = __builtin_fabsf(x);
    float s = geon_asin_of_half_f32(a);
    float y = a > 0.5f ? 1.57079637f - GEON_FMA_F32(2.0f, s, 4.37113883e-8f) : s;
    return __builtin_copysignf(y, x);
}

GEON_INLINE float geon_acos_f32(float x) {
    float a = __builtin_fabsf(x);
    float s = geon_asin_of_half_f32(a);
    float inner = 1.57079637f - (__builtin_copysignf(s, x) + 4.37113883e-8f);
    float outer = x > 0.0f ? 2.0f * s : 3.14159274f - GEON_FMA_F32(2.0f, s, 8.74227766e-8f);
    return a > 0.5f ? outer : inner;
}

GEON_INLINE float geon_atan_to_one_f32(float t) {
    float z = t * t;
    float p = GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(GEON_FMA_F32(0.00298024551f, z,
        -0.0166047066f), z,
        0.0435935706f), z,
        -0.0758415833f), z,
        0.106807344f), z,
        -0.142147049f), z,
        0.199942052f), z,
        -0.333331704f);
    return GEON_FMA_F32(t * z, p, t);
}

GEON_INLINE float geon_atan_f32(float x) {
    float a = __builtin_fabsf(x);
    float t = geon_atan_to_one_f32((a > 1.0f ? 1.0f : a) / (a > 1.0f ? a : 1.0f));
    return __builtin_copysignf(a > 1.0f ? 1.57079637f - (t + 4.37113883e-8f) : t, x);
}

void loop_geon_exp_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_exp_f32(x[i]); }
void loop_geon_expm1_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_expm1_f32(x[i]); }
void loop_geon_sinh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_sinh_f32(x[i]); }
void loop_geon_cosh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_cosh_f32(x[i]); }
void loop_geon_tanh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_tanh_f32(x[i]); }
void loop_geon_erf_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_erf_f32(x[i]); }
void loop_geon_sigmoid_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_sigmoid_f32(x[i]); }
void loop_geon_softplus_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_softplus_f32(x[i]); }
void loop_geon_log_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_log_f32(x[i]); }
void loop_geon_log1p_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_log1p_f32(x[i]); }
void loop_geon_asinh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_asinh_f32(x[i]); }
void loop_geon_acosh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_acosh_f32(x[i]); }
void loop_geon_atanh_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_atanh_f32(x[i]); }
void loop_geon_sin_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_sin_f32(x[i]); }
void loop_geon_cos_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_cos_f32(x[i]); }
void loop_geon_tan_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_tan_f32(x[i]); }
void loop_geon_asin_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_asin_f32(x[i]); }
void loop_geon_acos_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_acos_f32(x[i]); }
void loop_geon_atan_f32(const float *restrict x, float *restrict y, long n) { for (long i = 0; i < n; i++) y[i] = geon_atan_f32(x[i]); }
