"""Elementary functions of a strip, the elements of one register, for AVX-512 and partly for AVX2.

With AVX2, an exponential of float32 is that of one element. Clamps return their second operand for
NaN, and two products scale, so that NaN need not be restored. AVX-512's instruction ``vscalef``
multiplies by a power of two, rounds once also where the result is subnormal, and handles infinities
and NaN. It replaces exponent arithmetic and the restoring of NaN. Where the power is so small that
the result is 0, a mask skips the instruction, since an underflow takes it a hundred cycles
(processors by Intel). In float32 it replaces the upper clamp, too: far above, the polynomial, whose
degree is even, is large, infinite or NaN, and k is as large, which gives infinity. In float64 the
degree is odd, and the sign could be wrong. Results have the bits of the functions of one element.
The types of strips and the instructions are in the prelude.

``vcvtps2ph`` rounds to float16 but keeps the payload of NaN, which is cleared; ``vcvtph2ps``
changes only signalling NaN, which no rounding gives. Compilers vectorise a loop over numbers of two
widths with vectors of half the size, and loads of these as whole vectors would stall on store
forwarding: therefore casts are functions of strips, too.
"""

from __future__ import annotations

from .f32 import _EXP as EXP_F32
from .f64 import _EXP as EXP_F64
from .polynomials import definitions_of

__all__ = ["STRIPS"]

# Few angles of a strip, if any, are far from 0: these are recomputed one by one.
_ANGLES_STRIP = """\
GEON_OUTLINED {type} geon_far_{name}_{suffix}({type} x) {{
    return geon_{name}_{suffix}(x);
}}

GEON_INLINE void geon_{name}_strip_{suffix}({type} *restrict y, const {type} *x) {{
    {integer} far[GEON_LANES_{SUFFIX}], some = 0;
    GEON_EACH_{SUFFIX}(i) {{
        far[i] = !({near});
        y[i] = geon_{nearby}_{suffix}(x[i]);
    }}
    GEON_EACH_{SUFFIX}(i) some |= far[i];
    for (int64_t i = 0; i < (GEON_UNLIKELY(some) ? GEON_LANES_{SUFFIX} : 0); i++)
        y[i] = far[i] ? geon_far_{name}_{suffix}(x[i]) : y[i];
}}
"""
_ANGLES = {
    "f32": ("float", "int32_t", "fabsf(x[i]) < 0x1p46f", "near_{name}"),
    "f64": ("double", "int64_t", "geon_angle_bound_f64() >= fabs(x[i])", "{name}_bounded"),
}


def _strips_of_angles() -> str:
    """Return the sines and cosines of a strip."""
    return "\n".join(
        _ANGLES_STRIP.format(
            name=name,
            suffix=suffix,
            SUFFIX=suffix.upper(),
            type=ctype,
            integer=integer,
            near=near,
            nearby=nearby.format(name=name),
        )
        for suffix, (ctype, integer, near, nearby) in _ANGLES.items()
        for name in ("sin", "cos")
    )


# The polynomial of a vector. Its scale is 2^102, so that a factor of results below 2^-150 is 0, as
# for one element.
_STEPS = [f"{c * 2.0**102:#.9g}f" for c in (*reversed(EXP_F32), 1.0, 1.0)]
_EXP_STEPS = [f"    GEON_STEP(p, a, {c})" for c in _STEPS[1:]]

_EXP_STRIP = """
GEON_INLINE void geon_exp_strip_f32(float *restrict y, const float *x) {
#ifdef __AVX512F__
    float a[16], p[16], k[16];
    GEON_STRIP_F32 v, scale;
    memcpy(&v, x, 64);
    memcpy(a, &v, 64);
    GEON_EACH_F32(i) {
        k[i] = GEON_FMA_F32(a[i], 1.44269502f, 12582912.0f) - 12582912.0f;
        float r = GEON_FMA_F32(k[i], -0.693359375f, a[i]);
        r = GEON_FMA_F32(k[i], 2.12194440e-4f, r);
        float q = EXP_F32<r>;
        p[i] = GEON_FMA_F32(GEON_FMA_F32(q, r, 1.0f), r, 1.0f);
    }
    memcpy(&v, p, 64);
    memcpy(&scale, k, 64);
    v = GEON_SCALED_F32(v, scale);
    memcpy(y, &v, 64);
#else
    GEON_STRIP_F32 a, s, p;
    GEON_STRIP_I32 n;
    memcpy(&a, x, sizeof a);
    a = GEON_CLAMP(a, -105.0f, 89.0f);
    s = GEON_FMA_EIGHT(a, GEON_EIGHT(1.44269502f), GEON_EIGHT(12583064.0f));
    n = (GEON_STRIP_I32)s;
    s -= 12583064.0f;
    a = GEON_FMA_EIGHT(s, GEON_EIGHT(-0.693359375f), a);
    a = GEON_FMA_EIGHT(s, GEON_EIGHT(2.12194440e-4f), a);
    p = EXP_LAST;
EXP_STEPS
    p *= (GEON_STRIP_F32)((n - (n >> 1)) << 23);
    p *= (GEON_STRIP_F32)(n >> 1 << 23);
    memcpy(y, &p, sizeof p);
#endif
}
"""

STRIPS = (
    definitions_of(_strips_of_angles())
    | definitions_of(
        _EXP_STRIP.replace("EXP_LAST", f"GEON_EIGHT({_STEPS[0]})").replace(
            "EXP_STEPS", "\n".join(_EXP_STEPS)
        ),
        EXP=EXP_F32,
    )
    | definitions_of(
        """
GEON_INLINE void geon_half_to_f32_strip(float *restrict y, const geon_half *x) {
#ifdef __AVX512F__
    GEON_STRIP_U16 narrow;
    memcpy(&narrow, x, sizeof narrow);
    const GEON_STRIP_U32 wide = GEON_WIDE_U16(narrow);
    uint32_t h[16];
    memcpy(h, &wide, sizeof h);
    GEON_EACH_F32(i) {
        uint32_t sign = (h[i] & 0x8000) << 16, rest = (h[i] & 0x7fff) << 13;
        uint32_t moved = geon_bits_f32(geon_of_bits_f32(rest) * 0x1p112f);
        y[i] = geon_of_bits_f32(sign | (rest >= 0x0f800000 ? rest | 0x7f800000 : moved));
    }
#elif defined GEON_OF_EIGHT_HALVES
    GEON_EIGHT_I16 h;
    memcpy(&h, x, sizeof h);
    const GEON_STRIP_F32 f = GEON_OF_EIGHT_HALVES(h);
    const GEON_STRIP_I32 nan = f != f, kept = GEON_WIDE_I16(h) << 13 | 0x7f800000;
    const GEON_STRIP_I32 bits = (nan & kept) | (~nan & (GEON_STRIP_I32)f);
    memcpy(y, &bits, sizeof bits);
#else
    GEON_EACH_F32(i) y[i] = geon_half_to_f32(x[i]);
#endif
}

GEON_INLINE void geon_rounded_half_to_f32_strip(float *restrict y, const geon_half *x) {
#ifdef __AVX512F__
    GEON_STRIP_U16 narrow;
    memcpy(&narrow, x, sizeof narrow);
    const GEON_STRIP_F32 wide = GEON_OF_HALF(narrow);
    memcpy(y, &wide, sizeof wide);
#elif defined GEON_OF_EIGHT_HALVES
    GEON_EIGHT_I16 h;
    memcpy(&h, x, sizeof h);
    const GEON_STRIP_F32 f = GEON_OF_EIGHT_HALVES(h);
    memcpy(y, &f, sizeof f);
#else
    GEON_EACH_F32(i) y[i] = geon_half_to_f32(x[i]);
#endif
}

GEON_INLINE void geon_f32_to_half_strip(geon_half *restrict y, const float *x) {
#ifdef __AVX512F__
    GEON_STRIP_F32 exact;
    memcpy(&exact, x, sizeof exact);
    const GEON_STRIP_U16 rounded = GEON_ROUNDED_HALF(exact);
    geon_half h[16];
    memcpy(h, &rounded, sizeof h);
    GEON_EACH_F32(i) y[i] = (geon_half)((h[i] & 0x7fff) > 0x7c00 ? h[i] & 0xfe00 : h[i]);
#elif defined GEON_EIGHT_ROUNDED_HALVES
    GEON_STRIP_F32 exact;
    memcpy(&exact, x, sizeof exact);
    const GEON_EIGHT_I16 zero = {0}, least = 0x7e00 - zero, last = (int16_t)0xfe00 - zero;
    GEON_EIGHT_I16 h = GEON_EIGHT_ROUNDED_HALVES(exact);
    h = GEON_SMALLER_U16(GEON_SMALLER_I16(h, least), last); /* of NaN no more than the sign */
    memcpy(y, &h, sizeof h);
#else
    GEON_EACH_F32(i) y[i] = geon_f32_to_half(x[i]);
#endif
}

GEON_INLINE void geon_exp_strip_f64(double *restrict y, const double *x) {
    double a[8], p[8], k[8];
    GEON_STRIP_F64 v, scale, zero = {0}, highest = 710.0 - zero;
    memcpy(&v, x, sizeof v);
    v = GEON_SMALLER_F64(highest, v);
    memcpy(a, &v, sizeof a);
    GEON_EACH_F64(i) {
        double shifted = GEON_FMA_F64(a[i], 1.4426950408889634, 6755399441055744.0);
        k[i] = shifted - 6755399441055744.0;
        double r = GEON_FMA_F64(k[i], -0.6931471803691238, a[i]);
        r = GEON_FMA_F64(k[i], -1.9082149292705877e-10, r);
        double q = WIDE_EXP_F64<r>;
        p[i] = GEON_FMA_F64(GEON_FMA_F64(q, r, 1.0), r, 1.0);
    }
    memcpy(&v, p, sizeof v);
    memcpy(&scale, k, sizeof scale);
    v = GEON_SCALED_F64(v, scale);
    memcpy(y, &v, sizeof v);
}

GEON_INLINE void geon_sigmoid_strip_f32(float *restrict y, const float *x) {
    GEON_STRIP_F32 clamped, highest = 40.0f - (GEON_STRIP_F32){0};
    memcpy(&clamped, x, sizeof clamped);
    clamped = GEON_SMALLER_F32(highest, clamped);
    float a[16], z[16];
    memcpy(a, &clamped, sizeof a);
    geon_exp_strip_f32(z, a);
    GEON_EACH_F32(i) y[i] = z[i] / (1.0f + z[i]);
}

GEON_INLINE void geon_softplus_strip_f32(float *restrict y, const float *x) {
    float a[16], z[16];
    GEON_EACH_F32(i) a[i] = -fabsf(x[i]);
    geon_exp_strip_f32(z, a);
    GEON_EACH_F32(i) y[i] = geon_softplus_of_f32(x[i], z[i]);
}

GEON_INLINE void geon_softplus_strip_f64(double *restrict y, const double *x) {
    double a[8], z[8];
    GEON_EACH_F64(i) a[i] = -fabs(x[i]);
    geon_exp_strip_f64(z, a);
    GEON_EACH_F64(i)
        y[i] = (x[i] > 0.0 ? x[i] : 0.0) + geon_log1p_f64(z[i]);
}
""",
        WIDE_EXP=EXP_F64,
    )
)
