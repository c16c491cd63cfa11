/* Common definitions of both units of products. */

/* For functions written in vectors already: what more a compiler looks for costs it time. Where their
   loops happen to lie is 5 % of some. */
#if defined(__clang__)
#define QUICK_INSIDE
#else
#define QUICK_INSIDE __attribute__((optimize("O1", "align-loops=64")))
#endif
#define QUICK QUICK_INSIDE __attribute__((noinline))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define GREATEST(a, b) ((a) > (b) ? (a) : (b))

#include "module.h"
#include "product/product.h"
#include "repeat.h"

typedef struct TAG(geon_operand) geon_operand;
typedef struct TAG(geon_product) geon_product;

/* How many blocks of a size there are. */
GEON_INLINE QUICK_INSIDE int64_t geon_blocks(int64_t total, int64_t block)
{
    return (total + block - 1) / block;
}

/* The vector type of products: VECTOR elements of TYPE. */
typedef TYPE geon_vector
    __attribute__((vector_size(VECTOR * TYPE_BYTES), aligned(TYPE_BYTES), may_alias));

/* a * b + c, rounded once where the processor can. */
#if TYPE_BYTES == 4
#define X86_FMA(width) __builtin_ia32_vfmaddps##width
#define SCALAR_FMA_ONCE(a, b, c) __builtin_fmaf(a, b, c)
#else
#define X86_FMA(width) __builtin_ia32_vfmaddpd##width
#define SCALAR_FMA_ONCE(a, b, c) __builtin_fma(a, b, c)
#endif
#if defined(__aarch64__) && VECTOR * TYPE_BYTES == 16
#define NEON 1
#else
#define NEON 0
#endif
#if __has_builtin(__builtin_elementwise_fma) /* clang from version 16 on */
#define VECTOR_FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif defined(__AVX512F__) && VECTOR * TYPE_BYTES == 64
#define VECTOR_FMA(a, b, c) ((geon_vector)X86_FMA(512_mask)(a, b, c, -1, 4))
#elif defined(__FMA__) && VECTOR * TYPE_BYTES == 32
#define VECTOR_FMA(a, b, c) ((geon_vector)X86_FMA(256)(a, b, c))
#elif defined(__FMA__) && VECTOR * TYPE_BYTES == 16
#define VECTOR_FMA(a, b, c) ((geon_vector)X86_FMA()(a, b, c))
#elif NEON && TYPE_BYTES == 4 && __has_builtin(__builtin_aarch64_fmav4sf)
#define VECTOR_FMA(a, b, c) ((geon_vector)__builtin_aarch64_fmav4sf(a, b, c))
#elif NEON && TYPE_BYTES == 8 && __has_builtin(__builtin_aarch64_fmav2df)
#define VECTOR_FMA(a, b, c) ((geon_vector)__builtin_aarch64_fmav2df(a, b, c))
#else
#define VECTOR_FMA(a, b, c) ((a) * (b) + (c))
#endif
#if __has_builtin(__builtin_elementwise_fma) || defined(__FMA__) || NEON
#define SCALAR_FMA(a, b, c) SCALAR_FMA_ONCE(a, b, c)
#else
#define SCALAR_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* HOLD keeps a value in a register: without this some compilers load it again for each use in a
   loop. USED says that it is there until now, so that a sum is not taken over in its place: sums
   that change their places are moved back at the end of a loop. */
#if defined(__x86_64__)                                                                           \
    && (defined(__AVX512F__) && VECTOR * TYPE_BYTES == 64                                         \
        || defined(__AVX512VL__) && VECTOR * TYPE_BYTES == 32)
#define HOLD(x) __asm__("" : "+v"(x))
#define USED(x) __asm__("" : : "v"(x))
#elif defined(__x86_64__) && defined(__AVX__) && VECTOR * TYPE_BYTES == 32
#define HOLD(x) __asm__("" : "+x"(x))
#define USED(x) __asm__("" : : "x"(x))
#elif defined(__x86_64__) && defined(__SSE2__) && VECTOR * TYPE_BYTES == 16
#define HOLD(x) __asm__("" : "+x"(x))
#define USED(x) __asm__("" : : "x"(x))
#elif NEON
#define HOLD(x) __asm__("" : "+w"(x))
#define USED(x) __asm__("" : : "w"(x))
#else
#define HOLD(x) ((void)0)
#define USED(x) ((void)0)
#endif

/* M(0, x), M(1, x) and so on, for each element of a vector. */
#define LANES_2(M, x) M(0, x), M(1, x)
#define LANES_4(M, x) LANES_2(M, x), M(2, x), M(3, x)
#define LANES_8(M, x) LANES_4(M, x), M(4, x), M(5, x), M(6, x), M(7, x)
#define LANES_16(M, x)                                                                            \
    LANES_8(M, x), M(8, x), M(9, x), M(10, x), M(11, x), M(12, x), M(13, x), M(14, x), M(15, x)
#define LANES_TIMES(n, M, x) LANES_##n(M, x)
#define LANES(n, M, x) LANES_TIMES(n, M, x)
#define LANE_SAME(i, x) x
#define LANE_ROTATED(i, by) ((i) + (by)) % VECTOR
#define LANE_INTERLEAVED(i, start) (start) + (i) / 2 + (i) % 2 * VECTOR

/* A vector of equal elements, one whose elements moved, and two whose elements take turns, from
   element `start` of each on. */
#define SPLAT(x) ((geon_vector){LANES(VECTOR, LANE_SAME, x)})
#define ROTATE(x, by) __builtin_shufflevector(x, x, LANES(VECTOR, LANE_ROTATED, by))
#define INTERLEAVE(x, y, start)                                                                   \
    __builtin_shufflevector(x, y, LANES(VECTOR, LANE_INTERLEAVED, start))
#if VECTOR == 2
#define HALF_VECTOR 1
#elif VECTOR == 4
#define HALF_VECTOR 2
#elif VECTOR == 8
#define HALF_VECTOR 4
#else
#define HALF_VECTOR 8
#endif
#include "product/kernels.h"
