/* Vectors of numbers of NUMBER_BYTES, and rows, which have a word of each of TOGETHER lines: a number
   with key and position, or where lines are PAIRED a number for each. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define TOGETHER (VECTOR_BYTES / NUMBER_BYTES)

typedef NUMBER PART(vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(NUMBER_BYTES), may_alias));

/* Lane by lane the lesser, and the larger. */
#if defined(__clang__)
#define LESSER(x, y) __builtin_elementwise_min(x, y)
#define LARGER(x, y) __builtin_elementwise_max(x, y)
#elif VECTOR_BYTES == 64
#if NUMBER_BYTES == 1
#define X86_LANE char
#define X86_NAME(of) __builtin_ia32_p##of##ub512_mask
#elif NUMBER_BYTES == 2
#define X86_LANE short
#define X86_NAME(of) __builtin_ia32_p##of##uw512_mask
#elif NUMBER_BYTES == 4
#define X86_LANE int
#define X86_NAME(of) __builtin_ia32_p##of##ud512_mask
#else
#define X86_LANE long long
#define X86_NAME(of) __builtin_ia32_p##of##uq512_mask
#endif
typedef X86_LANE PART(lanes) __attribute__((vector_size(64)));
#define X86_OF(of, x, y)                                                                          \
    ((PART(vector))X86_NAME(of)((PART(lanes))(x), (PART(lanes))(y), (PART(lanes))(x), -1))
#define LESSER(x, y) X86_OF(min, x, y)
#define LARGER(x, y) X86_OF(max, x, y)
#else
#define CHOSEN(mask, x, y) (((x) & (PART(vector))(mask)) | ((y) & ~(PART(vector))(mask)))
#define LESSER(x, y) CHOSEN((x) < (y), x, y)
#define LARGER(x, y) CHOSEN((x) < (y), y, x)
#endif

typedef struct {
    PART(vector) key;
#if PAIRED
    PART(vector) at;
#endif
} PART(row);

/* Lane by lane the lesser word to a, the larger to b. */
GEON_INLINE void PART(exchange)(PART(row) *a, PART(row) *b)
{
#if PAIRED
    PART(vector) above = (PART(vector))((a->key > b->key) | ((a->key == b->key) & (a->at > b->at)));
    PART(vector) key = (a->key ^ b->key) & above, at = (a->at ^ b->at) & above;
    a->key ^= key, b->key ^= key, a->at ^= at, b->at ^= at;
#else
    PART(vector) lesser = LESSER(a->key, b->key);
    b->key = LARGER(a->key, b->key);
    a->key = lesser;
#endif
}

#include "sort_pairs.h"
