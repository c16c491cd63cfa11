"""The gcc and clang dialect of emitted C: the prelude of units.

Prototypes of ``math.h`` functions are declared here because reading the header is slow: most
compilers take longer to read it than to compile a kernel.
"""

from __future__ import annotations

from ...printing.scalars.c_types import Dialect

SIMD = "#pragma omp simd"
# Functions by number of arguments.
FUNCTIONS = {
    1: """acos asin atan cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 log log10 log1p
        log2 cbrt fabs sqrt erf erfc lgamma tgamma ceil floor nearbyint rint round trunc""",
    2: "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder",
    3: "fma",
}
MACROS = """\
#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#endif
#define GEON_1(x) double x(double); float x##f(float);
#define GEON_2(x) double x(double, double); float x##f(float, float);
#define GEON_3(x) double x(double, double, double); float x##f(float, float, float);
"""


def declarations() -> str:
    """Return the prototypes of the double and float functions, and the macros that kernels use."""
    calls = [f"GEON_{count}({f})" for count, names in FUNCTIONS.items() for f in names.split()]
    return MACROS + "\n".join(calls) + "\n"


INCLUDES = """\
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""
COMPILERS = """\

#ifdef __clang__
#define GEON_BY_COMPILER(gcc, clang) (clang)
#define GEON_USED(x) (void)(x)
#else
#define GEON_BY_COMPILER(gcc, clang) (gcc)
#define GEON_USED(x) __asm__ volatile("" : : "r"(x))
#endif
"""
TYPES = """\

typedef uint16_t geon_half;   /* the bits of a float16 */
typedef uint16_t geon_bfloat; /* the bits of a bfloat16 */
#define GEON_IN_LINES __attribute__((aligned(64))) /* begins at a cache line */
#define GEON_INLINE static inline __attribute__((always_inline, unused))
#define GEON_OUTLINED static __attribute__((noinline, cold, unused))
#define GEON_LIKELY(x) __builtin_expect(x, 1)
#define GEON_UNLIKELY(x) __builtin_expect(x, 0)
#define GEON_LEADING_ZEROS(x) __builtin_clzll(x)
#define GEON_UNROLL_10 _Pragma("GCC unroll 10")
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define GEON_FMA_F32(a, b, c) fmaf(a, b, c)
#define GEON_FMA_F64(a, b, c) fma(a, b, c)
#define GEON_EXACT_QUOTIENT 0x1p53 /* below it, a quotient times the divisor is exact in an FMA */
#else
#define GEON_FMA_F32(a, b, c) ((a) * (b) + (c))
#define GEON_FMA_F64(a, b, c) ((a) * (b) + (c))
#define GEON_EXACT_QUOTIENT 1.0
#endif
#if defined(__AVX2__) && !defined(__AVX512DQ__) /* it has no such conversions */
#define GEON_WIDE_BY_HALVES
#endif
#define GEON_EACH_F32(k) _Pragma("omp simd") for (int64_t k = 0; k < GEON_LANES_F32; k++)
#define GEON_EACH_F64(k) _Pragma("omp simd") for (int64_t k = 0; k < GEON_LANES_F64; k++)
#ifdef __AVX512F__
#define GEON_LANES_F32 16
#define GEON_LANES_F64 8
typedef float GEON_STRIP_F32 __attribute__((vector_size(64)));
typedef double GEON_STRIP_F64 __attribute__((vector_size(64)));
typedef uint16_t GEON_STRIP_U16 __attribute__((vector_size(32)));
typedef int16_t GEON_STRIP_I16 __attribute__((vector_size(32)));
typedef uint32_t GEON_STRIP_U32 __attribute__((vector_size(64)));
#define GEON_ROUNDED_HALF(a) \\
    (GEON_STRIP_U16)__builtin_ia32_vcvtps2ph512_mask(a, 8, (GEON_STRIP_I16){0}, 0xffff)
#define GEON_WIDE_U16(h) __builtin_convertvector(h, GEON_STRIP_U32)
#define GEON_OF_HALF(h) \\
    __builtin_ia32_vcvtph2ps512_mask((GEON_STRIP_I16)(h), (GEON_STRIP_F32){0}, 0xffff, 4)
#define GEON_FROM_F32(k, least) \\
    __builtin_ia32_cmpps512_mask(k, least - (GEON_STRIP_F32){0}, 21, 0xffff, 4)
#define GEON_FROM_F64(k, least) \\
    __builtin_ia32_cmppd512_mask(k, least - (GEON_STRIP_F64){0}, 21, 0xff, 4)
#define GEON_SCALED_F32(a, k) \\
    __builtin_ia32_scalefps512_mask(a, k, (GEON_STRIP_F32){0}, GEON_FROM_F32(k, -150.0f), 4)
#define GEON_SCALED_F64(a, k) \\
    __builtin_ia32_scalefpd512_mask(a, k, (GEON_STRIP_F64){0}, GEON_FROM_F64(k, -1075.0), 4)
#ifdef __clang__ /* one instruction; of two that have no order, the second */
#define GEON_SMALLER_F32(a, b) __builtin_ia32_minps512(a, b, 4)
#define GEON_SMALLER_F64(a, b) __builtin_ia32_minpd512(a, b, 4)
#else
#define GEON_SMALLER_F32(a, b) __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4)
#define GEON_SMALLER_F64(a, b) __builtin_ia32_minpd512_mask(a, b, a, 0xff, 4)
#endif
#else
#define GEON_LANES_F32 8
#define GEON_LANES_F64 4
typedef float GEON_STRIP_F32 __attribute__((vector_size(32)));
typedef int32_t GEON_STRIP_I32 __attribute__((vector_size(32)));
#define GEON_EIGHT(x) ((x) - (GEON_STRIP_F32){0})
#if defined(__FMA__) && __has_builtin(__builtin_elementwise_fma)
#define GEON_FMA_EIGHT(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif defined(__FMA__)
#define GEON_FMA_EIGHT(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#else
#define GEON_FMA_EIGHT(a, b, c) ((a) * (b) + (c))
#endif
#define GEON_CLAMP(a, x, y) \\
    __builtin_ia32_maxps256(GEON_EIGHT(x), __builtin_ia32_minps256(GEON_EIGHT(y), a))
#define GEON_STEP(p, x, c) p = GEON_FMA_EIGHT(p, x, GEON_EIGHT(c));
#ifdef __F16C__
typedef int16_t GEON_EIGHT_I16 __attribute__((vector_size(16)));
#define GEON_EIGHT_ROUNDED_HALVES(a) (GEON_EIGHT_I16)__builtin_ia32_vcvtps2ph256(a, 0)
#define GEON_WIDE_I16(h) __builtin_convertvector(h, GEON_STRIP_I32)
#ifdef __clang__
typedef _Float16 GEON_EIGHT_HALVES __attribute__((vector_size(16)));
#define GEON_OF_EIGHT_HALVES(h) __builtin_convertvector((GEON_EIGHT_HALVES)(h), GEON_STRIP_F32)
typedef uint16_t GEON_EIGHT_U16 __attribute__((vector_size(16)));
#define GEON_SMALLER_I16(a, b) __builtin_elementwise_min(a, b)
#define GEON_SMALLER_U16(a, b) \\
    (GEON_EIGHT_I16)__builtin_elementwise_min((GEON_EIGHT_U16)(a), (GEON_EIGHT_U16)(b))
#else
#define GEON_OF_EIGHT_HALVES(h) __builtin_ia32_vcvtph2ps256(h)
#define GEON_SMALLER_I16(a, b) __builtin_ia32_pminsw128(a, b)
#define GEON_SMALLER_U16(a, b) __builtin_ia32_pminuw128(a, b)
#endif
#endif
#endif
"""
PRELUDE = INCLUDES + declarations() + COMPILERS + TYPES


# Empty arrays point to zeros: no load needs a guard.
NATIVE = Dialect(wraps=True, spares=False, masks=True)
