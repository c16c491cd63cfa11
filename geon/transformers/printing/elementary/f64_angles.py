"""Trigonometric functions in float64 as C text.

Angles up to ``geon_angle_bound_f64()`` are reduced by straight-line code, larger ones by a function
call. The call prevents vectorisation, so there are also ``geon_sin_bounded_f64`` and
``geon_cos_bounded_f64`` without it: they return the same values in vector instructions, for callers
that know (or check) that no finite angle is larger.

Inverse functions are straight-line code. Over a million arguments the error is at most 1.8 ulp for
atan and atan2 and 1.2 for asin and acos.
"""

from __future__ import annotations

from .polynomials import definitions_of

__all__ = ["ANGLES_F64"]

# Fits as in f32, coefficients rounded to float64.
# (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= 0.786; fits 3.6e-18
# and 4.9e-20.
_SIN = (
    *(-0.16666666666666632, 0.008333333333322457, -0.00019841269829815224),
    *(2.7557313688237616e-06, -2.5050756818221143e-08, 1.5896687724618195e-10),
)
_COS = (
    *(0.0416666666666666, -0.0013888888888874441, 2.4801587289636327e-05),
    *(-2.755731438747703e-07, 2.0875727060288042e-09, -1.135980255051541e-11),
)

# (atan(t) / t - 1) / t^2 and (asin(t) / t - 1) / t^2 in t^2 for |t| <= 1/2; interpolated as in
# powers in f64; fits 4.4e-18 and 5.3e-18.
_ATAN = (
    *(-0.3333333333333333, 0.19999999999999488, -0.14285714285599183, 0.11111111100917023),
    *(-0.09090908620311328, 0.07692294712319797, -0.06666435674397458, 0.05879578405012112),
    *(-0.05240099363905195, 0.046280243038849006, -0.038066522558269, 0.025006483013687707),
    -0.00921577892069953,
)
_ASIN = (
    *(0.16666666666666669, 0.07499999999998433, 0.04464285714635563, 0.030381944138519898),
    *(0.022372172942515135, 0.017352392713607605, 0.013971213067835896, 0.011479176592891122),
    *(0.010322819205242754, 0.005457487574523698, 0.017400927725096542, -0.014851957498764721),
    0.028757896558164582,
)

# Cody and Waite's reduction: pi / 2 in parts. With a fused instruction three parts of 53 bits
# suffice up to 2^45; without, parts of 33 bits, whose products with the quadrant number are exact,
# suffice up to 2^19. Larger angles take Payne and Hanek's reduction in integers: the 53 bits of x
# times those 192 bits of 2 / pi (the table, after a word of zeros) that matter modulo full turns,
# down to 2^-137. C libraries use fewer, and have errors of a dozen ulp where an angle is nearly a
# multiple of pi / 2. The inverse tangent is relative to eighths of a turn: if both sides are nearly
# equal, their difference is exact, and is divided by their sum.
ANGLES_F64 = definitions_of(
    """
GEON_INLINE double geon_angle_bound_f64(void) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return 0x1p45;
#else
    return 0x1p19;
#endif
}

GEON_INLINE double geon_quarter_f64(double x, uint64_t *quarters) {
    double a = fabs(x);
    double shifted = GEON_FMA_F64(a, 0.6366197723675814, 6755399441055744.0);
    double k = shifted - 6755399441055744.0;
    *quarters = geon_bits_f64(shifted);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    double r = fma(k, -1.5707963267948966, a);
    r = fma(k, -6.123233995736766e-17, r);
    return fma(k, 1.4973849048591698e-33, r);
#else
    double r = a - k * 1.5707963267341256;
    r = r - k * 6.077100506303966e-11;
    r = r - k * 2.0222662487111665e-21;
    return r - k * 8.4784276603689e-32;
#endif
}

GEON_INLINE double geon_sin_of_quarter_f64(double r, uint64_t quarters, uint64_t sign) {
    double z = r * r;
    double s = SIN_F64<z>;
    s = GEON_FMA_F64(r * z, s, r);
    double c = COS_F64<z>;
    double half = 0.5 * z;
    double w = 1.0 - half;
    c = w + GEON_FMA_F64(z * z, c, (1.0 - w) - half);
    double y = quarters & 1u ? c : s;
    return geon_of_bits_f64(geon_bits_f64(y) ^ sign ^ ((quarters & 2u) << 62));
}

GEON_OUTLINED double geon_quarter_of_huge_f64(
    double x, uint64_t *quarters) {
    static const uint64_t two_over_pi[] = {
        0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
        0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
        0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
        0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
        0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
        0xf0cfbc209af4361du, 0xa9e391615ee61b08u,
    };
    uint64_t bits = geon_bits_f64(x) & 0x7fffffffffffffffu;
    uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    unsigned position = (unsigned)(bits >> 52) - 1013u;
    const uint64_t *word = two_over_pi + position / 64u;
    unsigned left = position % 64u;
    uint64_t chosen[3];
    for (int i = 0; i < 3; i++)
        chosen[i] = left ? word[i] << left | word[i + 1] >> (64u - left) : word[i];
    unsigned __int128 low = (unsigned __int128)mantissa * chosen[2];
    unsigned __int128 sum = (unsigned __int128)mantissa * chosen[1] + (uint64_t)(low >> 64);
    uint64_t high = mantissa * chosen[0] + (uint64_t)(sum >> 64);
    unsigned __int128 rest = (unsigned __int128)high << 64 | (uint64_t)sum;
    rest = rest << 2 | (uint64_t)low >> 62;
    uint64_t negative = (uint64_t)(rest >> 127);
    *quarters = (high >> 62) + negative;
    rest = negative ? -rest : rest;
    unsigned zeros = (unsigned)(rest >> 64 ? GEON_LEADING_ZEROS((uint64_t)(rest >> 64))
                                           : 64 + GEON_LEADING_ZEROS((uint64_t)rest | 1u));
    uint64_t leading = (uint64_t)((rest << zeros) >> 64);
    double r = (double)(uint64_t)(((unsigned __int128)leading * 0xc90fdaa22168c235u) >> 64);
    r = r * geon_of_bits_f64((uint64_t)(960u - zeros) << 52);
    return negative ? -r : r;
}

GEON_INLINE double geon_quarter_of_any_f64(double x, uint64_t *quarters) {
    double a = fabs(x);
    if (GEON_UNLIKELY(a > geon_angle_bound_f64() && a < INFINITY))
        return geon_quarter_of_huge_f64(x, quarters);
    return geon_quarter_f64(x, quarters);
}

GEON_INLINE double geon_tan_f64(double x) {
    double a = fabs(x);
    if (GEON_LIKELY(!(a > geon_angle_bound_f64() && a < INFINITY)))
        return tan(x);
    uint64_t quarters;
    double t = tan(geon_quarter_of_huge_f64(x, &quarters));
    return copysign(1.0, x) * (quarters & 1u ? -1.0 / t : t);
}

GEON_INLINE double geon_atan_to_half_f64(double t) {
    double z = t * t;
    double p = ATAN_F64<z>;
    return GEON_FMA_F64(t * z, p, t);
}

GEON_INLINE double geon_add_eighths_f64(double eighths, double t) {
    t = GEON_FMA_F64(eighths, 3.0616169978683830e-17, t);
    return GEON_FMA_F64(eighths, 0.78539816339744828, t);
}

GEON_INLINE double geon_atan_f64(double x) {
    double a = fabs(x);
    double n = a > 0.5 ? a - 1.0 : a;
    double d = a > 0.5 ? a + 1.0 : 1.0;
    double t = geon_atan_to_half_f64((a > 2.0 ? -1.0 : n) / (a > 2.0 ? a : d));
    double eighths = a > 0.5 ? 1.0 : 0.0;
    return copysign(geon_add_eighths_f64(a > 2.0 ? 2.0 : eighths, t), x);
}

GEON_INLINE double geon_atan2_f64(double y, double x) {
    double a = fabs(x);
    double b = fabs(y);
    double small = b < a ? b : a;
    double large = b < a ? a : b;
    double scale = large > 0x1p1000 ? 0.25 : 1.0;
    double n = (small - large) * scale;
    double d = small * scale + large * scale;
    int middle = (small > 0.5 * large) | (small == INFINITY);
    n = middle ? n : small;
    d = middle ? d : large;
    n = small == large ? 0.0 : n;
    d = small == large ? 1.0 : d;
    double t = geon_atan_to_half_f64(n / d);
    double eighths = middle ? 1.0 : 0.0;
    t = b > a ? -t : t;
    eighths = b > a ? 2.0 - eighths : eighths;
    double side = copysign(1.0, x);
    eighths = side < 0.0 ? 4.0 - eighths : eighths;
    t = geon_add_eighths_f64(eighths, side * t);
    return x != x || y != y ? x + y : copysign(t, y);
}

GEON_INLINE double geon_asin_of_half_f64(double a, double *more) {
    double z = a > 0.5 ? GEON_FMA_F64(-0.5, a, 0.5) : a * a;
    double s = a > 0.5 ? sqrt(z) : a;
    double p = ASIN_F64<z>;
    *more = s * z * p;
    return s;
}

GEON_INLINE double geon_asin_f64(double x) {
    double more, a = fabs(x);
    double s = geon_asin_of_half_f64(a, &more);
    double y = 1.5707963267948966 - 2.0 * s;
    double low = 6.1232339957367660e-17 + ((1.5707963267948966 - y) - 2.0 * s);
    y = y - GEON_FMA_F64(2.0, more, -low);
    return copysign(a > 0.5 ? y : s + more, x);
}

GEON_INLINE double geon_acos_f64(double x) {
    double more, a = fabs(x);
    double s = geon_asin_of_half_f64(a, &more);
    s = s + more;
    double inner = 1.5707963267948966 - (copysign(s, x) - 6.1232339957367660e-17);
    double outer = 3.1415926535897931 - GEON_FMA_F64(2.0, s, -1.2246467991473532e-16);
    return a > 0.5 ? (x > 0.0 ? 2.0 * s : outer) : inner;
}
""",
    SIN=_SIN,
    COS=_COS,
    ATAN=_ATAN,
    ASIN=_ASIN,
)
