/* The names of CUDA on a CPU: with this before it a module compiles as C++. ``host.cpp`` runs it:
   the blocks of a launch one after another, the threads of a block as fibers where they meet. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GEON_HOST 1
#define __global__
#define __device__
#define __shared__ static
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline, unused))
#define __noinline__ __attribute__((noinline, unused))
#define __launch_bounds__(...)
#define GEON_ATOMIC static __attribute__((noinline, unused, no_sanitize("thread")))
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#ifndef INT8_MIN
#error "stdint.h has no limits"
#endif

struct geon_index {
    unsigned x;
};
extern "C" {
extern geon_index threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads(void);
void __syncwarp(unsigned mask);
uint64_t geon_host_exchange(uint64_t value, int bits);

float fabsf(float), sqrtf(float), floorf(float), ceilf(float), truncf(float), rintf(float);
float fmaf(float, float, float), fmodf(float, float), copysignf(float, float);
float powf(float, float), expf(float), logf(float);
double fabs(double), sqrt(double), floor(double), ceil(double), trunc(double), rint(double);
double fma(double, double, double), fmod(double, double), copysign(double, double);
double pow(double, double), exp(double), log(double), sin(double), cos(double), tan(double);
double asin(double), acos(double), atan(double), atan2(double, double), sinh(double), cosh(double);
double tanh(double), asinh(double), acosh(double), atanh(double), hypot(double, double);
double log1p(double), expm1(double), log2(double), exp2(double), ldexp(double, int);
double scalbn(double, int), frexp(double, int *);
}

static inline __attribute__((unused)) unsigned __shfl_xor_sync(unsigned, unsigned value, int bits)
{
    return (unsigned)geon_host_exchange(value, bits);
}
static inline __attribute__((unused)) unsigned long long
__shfl_xor_sync(unsigned, unsigned long long value, int bits)
{
    return geon_host_exchange(value, bits);
}
static inline __attribute__((unused)) int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
template <class T> GEON_ATOMIC T atomicAdd(T *place, T value)
{
    T old = *place;
    *place = old + value;
    return old;
}
template <class T> GEON_ATOMIC T atomicMax(T *place, T value)
{
    T old = *place;
    *place = value > old ? value : old;
    return old;
}
