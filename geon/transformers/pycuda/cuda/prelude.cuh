/* What every module begins with. */
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#elif defined(__CUDACC__)
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

typedef uint16_t geon_half;   /* the bits of a float16 */
typedef uint16_t geon_bfloat; /* the bits of a bfloat16 */
#define _Bool bool
#define GEON_INLINE static __device__ __forceinline__
#define GEON_OUTLINED static __device__ __noinline__
#define GEON_LIKELY(x) (x)
#define GEON_UNLIKELY(x) (x)
#define GEON_LEADING_ZEROS(x) __clzll((long long)(x))
#define GEON_UNROLL_10 _Pragma("unroll 10")
#define GEON_FMA_F32(a, b, c) fmaf(a, b, c)
#define GEON_FMA_F64(a, b, c) fma(a, b, c)
#define GEON_EXACT_QUOTIENT 0x1p53
#ifndef __FMA__
#define __FMA__ 1 /* for the formulas that need a product's error */
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define GEON_INSTRUCTIONS 1 /* of conversions */
#endif

/* The blocks of a part of a kernel, or one of them: by the names of all the kernel's. */
struct geon_blocks {
    unsigned x;
};

GEON_INLINE int64_t geon_floor_div(int64_t a, int64_t b)
{
    const int64_t quotient = a / b; /* the remainder takes no second division */
    return quotient - (a != quotient * b && (a < 0) != (b < 0));
}

/* The value of the thread whose number in the warp differs by these bits. */
template <class T> GEON_INLINE T geon_exchanged(T x, int bits)
{
    if (sizeof(T) == 8) {
        unsigned long long held;
        memcpy(&held, &x, sizeof x);
        held = __shfl_xor_sync(0xffffffffu, held, bits);
        memcpy(&x, &held, sizeof x);
    } else {
        unsigned int held = 0;
        memcpy(&held, &x, sizeof x);
        held = __shfl_xor_sync(0xffffffffu, held, bits);
        memcpy(&x, &held, sizeof x);
    }
    return x;
}

/* The sum of a warp's values, for each of its threads. */
template <class T> GEON_INLINE T geon_sum_of_warp(T x)
{
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2)
        x = x + geon_exchanged(x, bits);
    return x;
}

/* The sum of values in shared memory, in their order; of one column of them. */
template <class T, int COUNT> GEON_INLINE T geon_sum_of(const T (&values)[COUNT])
{
    T sum = values[0];
#pragma unroll
    for (int k = 1; k < COUNT; k++)
        sum = sum + values[k];
    return sum;
}
template <class T, int COUNT, int WIDE>
GEON_INLINE T geon_sum_of(const T (&values)[COUNT][WIDE], int column)
{
    T sum = values[0][column];
#pragma unroll
    for (int k = 1; k < COUNT; k++)
        sum = sum + values[k][column];
    return sum;
}

/* Neighbouring elements that are read or written at once. */
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) geon_four {
    T at[4];
};

/* Those from `source` on, of which `inside` are there. */
template <class T> GEON_INLINE geon_four<T> geon_read_fours(const T *source, int64_t inside)
{
    if (inside >= 4)
        return *(const geon_four<T> *)source;
    geon_four<T> found;
#pragma unroll
    for (int k = 0; k < 4; k++)
        found.at[k] = k < inside ? source[k] : (T)0;
    return found;
}

GEON_INLINE float geon_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
GEON_INLINE double geon_multiply_add(double a, double b, double c) { return fma(a, b, c); }
template <class T> GEON_INLINE T geon_multiply_add(T a, T b, T c) { return (T)(a * b + c); }
