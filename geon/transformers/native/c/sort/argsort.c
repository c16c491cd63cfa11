/* Stable argsort of each line: a word has the key above the element's index. */
#include "sort/sort.h"
#include "sort/vector.h"

GEON_INLINE KEY PART(key)(TYPE x)
{
    return KEY_OF(x);
}

#define SIGNS 0
#if PAIRED
#define FOUND(word) ((int64_t)(word))
#define ROW_NUMBER(value, i) KEY_OF(value)
#define ROW_FOUND(number) ((int64_t)(number))
#else
#define WORD_OF(value, i) ((WORD)PART(key)(value) << DOWN | (WORD)(i))
#define FOUND(word) ((int64_t)(uint32_t)(word))
#define ROW_NUMBER(value, i) ((NUMBER)((NUMBER)KEY_OF(value) << ROW_DOWN | (NUMBER)(i)))
#define ROW_FOUND(number) ((int64_t)((number) & (((NUMBER)1 << ROW_DOWN) - 1)))
#endif

#include "sort/words.h"
#include "sort/partial.h"

static void PART(line)(const TYPE *x, int64_t *out, int64_t n, int64_t inner, WORD *words)
{
    WORD *sorted = PART(least)(x, n, inner, words, words + n, n);
    PART(put_found)(sorted, n, inner, out);
}

#define ONLY(value) 0
#define SCANNED(k, n) 0
#define PARTIAL 0
#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#define K_OF_ALL
#define POSITIONS 1
#if FLOATING /* NaN is the largest */
#define IS_LATER(a, b) (!((a) <= (b)) & ((b) == (b)))
#else
#define IS_LATER(a, b) ((b) < (a))
#endif
#include "sort/lines.h"
#include "sort/undefine.h"
