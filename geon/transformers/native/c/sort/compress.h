/* Compare the words of a vector with a limit to a bit mask, and compress a vector by a mask: one
   instruction of AVX-512; a permutation from a table indexed by the mask for AVX2. */
#define LANES (VECTOR_BYTES / WORD_BYTES)
#if VECTOR_BYTES == 64
#if WORD_BYTES == 4
typedef int PART(numbers) __attribute__((vector_size(64)));
#define X86_NAME_OF(what) __builtin_ia32_##what##si512_mask
#define X86_ABOVE __builtin_ia32_ucmpd512_mask
typedef uint16_t PART(mask);
#else
typedef long long PART(numbers) __attribute__((vector_size(64)));
#define X86_NAME_OF(what) __builtin_ia32_##what##di512_mask
#define X86_ABOVE __builtin_ia32_ucmpq512_mask
typedef uint8_t PART(mask);
#endif
#define ABOVE(x, limit)                                                                           \
    ((PART(mask))X86_ABOVE((PART(numbers))(x), (PART(numbers))(limit), 6, -1))
#define PRESSED(x, mask)                                                                          \
    ((PART(vector))X86_NAME_OF(compress)((PART(numbers))(x), (PART(numbers)){0}, mask))
#else
typedef int PART(numbers) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t PART(lanes_of_mask) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t PART(mask);

/* For each mask the numbers of its lanes of 4 bytes, one in four bits; of 8 bytes two for a lane. */
#if WORD_BYTES == 4
#define LANE_OF_MASK(mask, lane) ((uint32_t)(lane) << 4 * BITS_BELOW(mask, lane))
#else
#define LANE_OF_MASK(mask, lane) ((uint32_t)(34 * (lane) + 16) << 8 * BITS_BELOW(mask, lane))
#endif
#define BITS_BELOW(mask, lane) __builtin_popcount((mask) & ((1 << (lane)) - 1))
#define LANE_IN(mask, lane) ((mask) >> (lane) & 1 ? LANE_OF_MASK(mask, lane) : 0)
#define OF_FOUR(mask, lane)                                                                       \
    (LANE_IN(mask, lane) | LANE_IN(mask, lane + 1) | LANE_IN(mask, lane + 2) |                    \
     LANE_IN(mask, lane + 3))
#define MASKS_4(M, mask) M(mask), M((mask) + 1), M((mask) + 2), M((mask) + 3)
#define MASKS_16(M, mask)                                                                         \
    MASKS_4(M, mask), MASKS_4(M, (mask) + 4), MASKS_4(M, (mask) + 8), MASKS_4(M, (mask) + 12)
#if WORD_BYTES == 4
#define OF_MASK(mask) (OF_FOUR(mask, 0) | OF_FOUR(mask, 4))
#define MASKS_64(M, mask)                                                                         \
    MASKS_16(M, mask), MASKS_16(M, (mask) + 16), MASKS_16(M, (mask) + 32), MASKS_16(M, (mask) + 48)
#define MASKS(M) MASKS_64(M, 0), MASKS_64(M, 64), MASKS_64(M, 128), MASKS_64(M, 192)
#define LANE_BITS __builtin_ia32_movmskps256
typedef float PART(floats) __attribute__((vector_size(VECTOR_BYTES)));
#else
#define OF_MASK(mask) OF_FOUR(mask, 0)
#define MASKS(M) MASKS_16(M, 0)
#define LANE_BITS __builtin_ia32_movmskpd256
typedef double PART(floats) __attribute__((vector_size(VECTOR_BYTES)));
#endif
static const uint32_t PART(lanes_of)[1 << LANES] = {MASKS(OF_MASK)};

GEON_INLINE unsigned PART(above)(PART(vector) x, PART(vector) limit)
{
#if WORD_BYTES == 4
    PART(vector) is_not = (PART(vector))(LARGER(x, limit) == limit);
    return LANE_BITS((PART(floats))is_not) ^ 255;
#else
    PART(ordered) held = (PART(ordered))(x ^ HELD), bound = (PART(ordered))(limit ^ HELD);
    return LANE_BITS((PART(floats))(held > bound));
#endif
}

/* A choice of lanes looks at the three lowest bits of a number alone. */
GEON_INLINE PART(vector) PART(pressed)(PART(vector) x, unsigned mask)
{
    const PART(lanes_of_mask) places = {0, 4, 8, 12, 16, 20, 24, 28};
    PART(lanes_of_mask) from = (PART(lanes_of)[mask] - (PART(lanes_of_mask)){0}) >> places;
    return (PART(vector))__builtin_ia32_permvarsi256((PART(numbers))x, (PART(numbers))from);
}
#define ABOVE(x, limit) PART(above)(x, limit)
#define PRESSED(x, mask) PART(pressed)(x, (mask) & ((1 << LANES) - 1))
#endif
