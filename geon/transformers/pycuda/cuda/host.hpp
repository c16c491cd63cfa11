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
/* A barrier in shared memory: how many arrive at it, how many have yet to, and how often all have. */
struct geon_host_barrier {
    uint16_t count, left;
    uint32_t passed;
};
void geon_host_begin_barrier(geon_host_barrier *barrier, unsigned count);
void geon_host_arrive(geon_host_barrier *barrier);
void geon_host_await(geon_host_barrier *barrier, unsigned parity);
void geon_host_meet(unsigned count);
uint64_t geon_host_exchange(uint64_t value, int bits);
void geon_host_show(const void *bytes, unsigned count);
const void *geon_host_shown(unsigned lane);
long long clock64(void);

float fabsf(float), sqrtf(float), floorf(float), ceilf(float), truncf(float), rintf(float);
float fmaf(float, float, float), fmodf(float, float), copysignf(float, float);
float powf(float, float), expf(float), logf(float), fmaxf(float, float), fminf(float, float);
float sinf(float), cosf(float), tanf(float), asinf(float), acosf(float), atanf(float);
float atan2f(float, float), sinhf(float), coshf(float), tanhf(float), asinhf(float), acoshf(float);
float atanhf(float), hypotf(float, float), log1pf(float), expm1f(float), log2f(float);
float log10f(float), exp2f(float), cbrtf(float), erff(float), erfcf(float), tgammaf(float);
float lgammaf(float), roundf(float), nearbyintf(float);
double fabs(double), sqrt(double), floor(double), ceil(double), trunc(double), rint(double);
double fma(double, double, double), fmod(double, double), copysign(double, double);
double pow(double, double), exp(double), log(double), sin(double), cos(double), tan(double);
double asin(double), acos(double), atan(double), atan2(double, double), sinh(double), cosh(double);
double tanh(double), asinh(double), acosh(double), atanh(double), hypot(double, double);
double log1p(double), expm1(double), log2(double), exp2(double), ldexp(double, int);
double log10(double), cbrt(double), erf(double), erfc(double), tgamma(double), lgamma(double);
double round(double), nearbyint(double), fmax(double, double), fmin(double, double);
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
static inline __attribute__((unused)) int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline __attribute__((unused)) int __popc(unsigned x) { return __builtin_popcount(x); }
static inline __attribute__((unused)) unsigned __match_any_sync(unsigned, unsigned value)
{
    geon_host_show(&value, sizeof value);
    unsigned found = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        found |= (unsigned)(*(const unsigned *)geon_host_shown(lane) == value) << lane;
    return found;
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

/* Tensor cores: what a warp's threads hold of matrices is shown to all of them. */
static inline __attribute__((unused)) float geon_host_float(uint16_t bits, bool brain)
{
    uint32_t word = brain ? (uint32_t)bits << 16 : (uint32_t)(bits & 0x7fff) << 13;
    float value;
    memcpy(&value, &word, sizeof value);
    if (brain)
        return value;
    value *= 0x1p112f;
    if ((bits & 0x7c00) == 0x7c00)
        value = (bits & 0x3ff) ? __builtin_nanf("") : __builtin_inff();
    return bits & 0x8000 ? -value : value;
}

static inline __attribute__((unused)) uint32_t geon_host_brain(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline __attribute__((unused)) uint32_t geon_host_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000;
    const float size = x < 0 ? -x : x;
    if (x != x)
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* a multiple of 2^-24, as which it is rounded */
        return sign | (uint32_t)rint((double)size * 0x1p24);
    bits &= 0x7fffffff;
    return sign | ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10);
}

/* Four matrices of 8 lines of 8 halves; thread k shows where line k % 8 of matrix k / 8 lies. */
static inline __attribute__((unused)) void geon_load_matrices(uint32_t (&held)[4],
                                                              const uint16_t *line)
{
    const unsigned lane = threadIdx.x % 32;
    geon_host_show(&line, sizeof line);
    for (unsigned k = 0; k < 4; k++) {
        const uint16_t *const from = *(const uint16_t *const *)geon_host_shown(8 * k + lane / 4);
        held[k] = from[lane % 4 * 2] | (uint32_t)from[lane % 4 * 2 + 1] << 16;
    }
}
static inline __attribute__((unused)) void geon_load_matrices_turned(uint32_t (&held)[4],
                                                                     const uint16_t *line)
{
    const unsigned lane = threadIdx.x % 32;
    geon_host_show(&line, sizeof line);
    for (unsigned k = 0; k < 4; k++) {
        held[k] = 0;
        for (unsigned half = 0; half < 2; half++) {
            const void *const shown = geon_host_shown(8 * k + lane % 4 * 2 + half);
            held[k] |= (uint32_t)(*(const uint16_t *const *)shown)[lane / 4] << 16 * half;
        }
    }
}

static inline __attribute__((unused)) void geon_host_mma(bool brain, float &a, float &b, float &c,
                                                         float &d, const uint32_t *left,
                                                         const uint32_t *right)
{
    const unsigned lane = threadIdx.x % 32;
    uint32_t words[6];
    memcpy(words, left, 16);
    memcpy(words + 4, right, 8);
    geon_host_show(words, sizeof words);
    float rows[2][16], columns[2][16];
    for (unsigned k = 0; k < 16; k++) {
        const unsigned owner = k % 8 / 2, shift = k % 2 * 16;
        const uint32_t *of = (const uint32_t *)geon_host_shown(lane / 4 * 4 + owner);
        for (unsigned side = 0; side < 2; side++) {
            rows[side][k] = geon_host_float((uint16_t)(of[k / 8 * 2 + side] >> shift), brain);
            const unsigned column = lane % 4 * 2 + side;
            const uint32_t *its = (const uint32_t *)geon_host_shown(column * 4 + owner);
            columns[side][k] = geon_host_float((uint16_t)(its[4 + k / 8] >> shift), brain);
        }
    }
    for (unsigned k = 0; k < 16; k++) {
        a += rows[0][k] * columns[0][k];
        b += rows[0][k] * columns[1][k];
        c += rows[1][k] * columns[0][k];
        d += rows[1][k] * columns[1][k];
    }
}

static inline __attribute__((unused)) uint32_t geon_host_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}
static inline __attribute__((unused)) void geon_host_mma_tf32(float &a, float &b, float &c,
                                                              float &d, const uint32_t *left,
                                                              const uint32_t *right)
{
    const unsigned lane = threadIdx.x % 32;
    uint32_t words[6];
    memcpy(words, left, 16);
    memcpy(words + 4, right, 8);
    geon_host_show(words, sizeof words);
    for (unsigned k = 0; k < 8; k++) {
        const float *of = (const float *)geon_host_shown(lane / 4 * 4 + k % 4);
        const float *low = (const float *)geon_host_shown(lane % 4 * 8 + k % 4);
        const float *high = (const float *)geon_host_shown(lane % 4 * 8 + 4 + k % 4);
        const float top = of[k / 4 * 2], below = of[k / 4 * 2 + 1];
        a += top * low[4 + k / 4];
        b += top * high[4 + k / 4];
        c += below * low[4 + k / 4];
        d += below * high[4 + k / 4];
    }
}
