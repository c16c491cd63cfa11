/* Vectors of numbers of NUMBER_BYTES, and rows with a word of each of TOGETHER lines. A word is a
   number with key and index or, if PAIRED, one number for each. */
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

/* AVX2 compares 64 bits with signs alone: where numbers are HELD their top bit is another. */
#if VECTOR_BYTES == 32 && NUMBER_BYTES == 8
#define HELD ((NUMBER)1 << 63)
typedef int64_t PART(ordered) __attribute__((vector_size(VECTOR_BYTES)));
#else
#define HELD ((NUMBER)0)
typedef PART(vector) PART(ordered);
#endif
#define LAST ((NUMBER)(~(NUMBER)0 ^ HELD)) /* held, no number is beyond it */

/* Lane by lane the lesser of numbers that are held, and the larger. */
#if defined(__clang__)
#define X86_OF(of, x, y)                                                                          \
    ((PART(vector))__builtin_elementwise_##of((PART(ordered))(x), (PART(ordered))(y)))
#define LESSER(x, y) X86_OF(min, x, y)
#define LARGER(x, y) X86_OF(max, x, y)
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
#elif VECTOR_BYTES == 32 && NUMBER_BYTES == 8
typedef double PART(lanes) __attribute__((vector_size(VECTOR_BYTES)));
#define X86_OF(x, y, mask)                                                                        \
    ((PART(vector))__builtin_ia32_blendvpd256((PART(lanes))(x), (PART(lanes))(y),                 \
                                              (PART(lanes))(mask)))
#define LESSER(x, y) X86_OF(x, y, (PART(ordered))(x) > (PART(ordered))(y))
#define LARGER(x, y) X86_OF(y, x, (PART(ordered))(x) > (PART(ordered))(y))
#elif VECTOR_BYTES == 32
#if NUMBER_BYTES == 1
#define X86_LANE char
#define X86_NAME(of) __builtin_ia32_p##of##ub256
#elif NUMBER_BYTES == 2
#define X86_LANE short
#define X86_NAME(of) __builtin_ia32_p##of##uw256
#else
#define X86_LANE int
#define X86_NAME(of) __builtin_ia32_p##of##ud256
#endif
typedef X86_LANE PART(lanes) __attribute__((vector_size(VECTOR_BYTES)));
#define X86_OF(of, x, y) ((PART(vector))X86_NAME(of)((PART(lanes))(x), (PART(lanes))(y)))
#define LESSER(x, y) X86_OF(min, x, y)
#define LARGER(x, y) X86_OF(max, x, y)
#else
#define CHOSEN(mask, x, y) (((x) & (PART(vector))(mask)) | ((y) & ~(PART(vector))(mask)))
#define LESSER(x, y) CHOSEN((x) < (y), x, y)
#define LARGER(x, y) CHOSEN((x) < (y), y, x)
#endif

/* Rows compare numbers of 61 bits as doubles, whose lesser is one instruction of AVX2 and SSE2:
   with bit 61 they are neither NaN nor too small. */
#if VECTOR_BYTES < 64 && defined(__SSE2__) && ROW_DOWN == 29 && !PAIRED
#define ARE_DOUBLES 1
typedef double PART(doubles) __attribute__((vector_size(VECTOR_BYTES)));
#define ROW_HELD ((NUMBER)1 << 61)
#define ROW_LAST (((NUMBER)1 << 62) - 1)
#define ROW_OF(of, x, y) ((PART(vector))of((PART(doubles))(x), (PART(doubles))(y)))
#if VECTOR_BYTES == 32
#define ROW_LESSER(x, y) ROW_OF(__builtin_ia32_minpd256, x, y)
#define ROW_LARGER(x, y) ROW_OF(__builtin_ia32_maxpd256, x, y)
#else
#define ROW_LESSER(x, y) ROW_OF(__builtin_ia32_minpd, x, y)
#define ROW_LARGER(x, y) ROW_OF(__builtin_ia32_maxpd, x, y)
#endif
#else
#define ARE_DOUBLES 0
#define ROW_HELD HELD
#define ROW_LAST LAST
#define ROW_LESSER LESSER
#define ROW_LARGER LARGER
#endif

typedef struct {
    PART(vector) key; /* held */
#if PAIRED
    PART(vector) at;
#endif
} PART(row);

/* Lane by lane the lesser word to a, the larger to b. */
GEON_INLINE void PART(exchange)(PART(row) *a, PART(row) *b)
{
#if PAIRED
    PART(ordered) x = (PART(ordered))a->key, y = (PART(ordered))b->key;
    PART(ordered) i = (PART(ordered))a->at, j = (PART(ordered))b->at;
    PART(vector) above = (PART(vector))((x > y) | ((x == y) & (i > j)));
    PART(vector) key = (a->key ^ b->key) & above, at = (a->at ^ b->at) & above;
    a->key ^= key, b->key ^= key, a->at ^= at, b->at ^= at;
#else
    PART(vector) lesser = ROW_LESSER(a->key, b->key);
    b->key = ROW_LARGER(a->key, b->key);
    a->key = lesser;
#endif
}

#include "sort/compare_exchanges.h"
