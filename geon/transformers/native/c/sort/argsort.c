/* Stable argsort of each line, or with PARTIAL the indices of its k largest elements, or of its k
   smallest ones without LARGEST: a word has the key, or its complement, above the index. */
#if PARTIAL
#include "sort/top_k.h"
#else
#include "sort/sort.h"
#endif
#include "sort/vector.h"

GEON_INLINE KEY PART(key)(TYPE x)
{
    KEY key = KEY_OF(x);
    return LARGEST ? (KEY)~key : key;
}

#define SIGNS 0
#define POSITIONS 1
#define SCANNED(k, n) (PARTIAL && (k) <= 64 && (k) < (n) / 4)
#if PAIRED
#define FOUND(word) ((int64_t)(word))
#define ROW_NUMBER(value, i) PART(key)(value)
#define ROW_FOUND(number) ((int64_t)(number))
#else
#define WORD_OF(value, i) ((WORD)PART(key)(value) << DOWN | (WORD)(i))
#define FOUND(word) ((int64_t)(uint32_t)(word))
#define ROW_NUMBER(value, i) ((NUMBER)((NUMBER)PART(key)(value) << ROW_DOWN | (NUMBER)(i)))
#define ROW_FOUND(number) ((int64_t)((number) & (((NUMBER)1 << ROW_DOWN) - 1)))
#endif

#include "sort/words.h"
#if PAIRED
#include "sort/prefix.h"
#else
/* Sort the least k of the first n words. */
static WORD *PART(least)(const TYPE *x, int64_t n, int64_t inner, WORD *words, WORD *other,
                         int64_t k)
{
    PART(words_of)(x, 0, n, inner, words);
    return PART(words)(words, other, n, k);
}
#endif

#if PARTIAL
#if PAIRED
#define KEY_AT(place) PART(key)(x[(int64_t)sorted[place] * inner])
#define WORD_AT(key, i) ((WORD)(i))
#else
#define KEY_AT(place) ((KEY)(sorted[place] >> DOWN))
#define WORD_AT(key, i) ((WORD)(key) << DOWN | (WORD)(i))
#endif
/* Few of many are held in order while the rest is compared with the last of them, 64 at a time. */
static void PART(line)(const TYPE *x, int64_t *out, int64_t n, int64_t inner, WORD *words,
                       int64_t k)
{
    int64_t first = SCANNED(k, n) ? k : n;
    WORD *sorted = PART(least)(x, first, inner, words, words + first, k);
    KEY limit = KEY_AT(k - 1);
    for (int64_t i = first; i < n;) {
        int64_t end = i + 64 < n ? i + 64 : n;
        int closer = 0;
        for (int64_t j = i; j < end; j++)
            closer |= PART(key)(x[j * inner]) < limit;
        for (; closer && i < end; i++) {
            KEY key = PART(key)(x[i * inner]);
            if (key >= limit)
                continue;
            int64_t place = k - 1;
            for (; place > 0 && KEY_AT(place - 1) > key; place--)
                sorted[place] = sorted[place - 1];
            sorted[place] = WORD_AT(key, i);
            limit = KEY_AT(k - 1);
        }
        i = end;
    }
    PART(put_found)(sorted, k, inner, out);
}
#else
static void PART(line)(const TYPE *x, int64_t *out, int64_t n, int64_t inner, WORD *words)
{
    WORD *sorted = PART(least)(x, n, inner, words, words + n, n);
    PART(put_found)(sorted, n, inner, out);
}
#endif

#include "sort/lines.h"
