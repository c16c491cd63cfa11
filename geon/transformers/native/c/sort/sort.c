/* Sort each line: ascending, stable, NaN last. KEY_OF returns an element's key. */
#include "sort/sort.h"
#include "sort/vector.h"

static const KEY PART(top) = (KEY)1 << (8 * KEY_BYTES - 1);

#define WORD_OF(value, i) KEY_OF(value)
#define FOUND(word) ROW_FOUND(word)
#define ROW_NUMBER(value, i) KEY_OF(value)
#define SIGNS FLOATING
#define POSITIONS 0
#define SCANNED(k, n) 0
#if FLOATING /* one key stands for both zeros */
#define ROW_FOUND(key) OF_BITS((KEY)((key) & PART(top) ? (key) ^ PART(top) : ~(key)))
#else
#define ROW_FOUND(key) ((TYPE)((key) ^ (IS_SIGNED ? PART(top) : 0)))
#endif

#include "sort/words.h"

static void PART(line)(const TYPE *x, TYPE *out, int64_t n, int64_t inner, WORD *keys)
{
    PART(words_of)(x, 0, n, inner, keys);
    WORD *other = keys + n, *sorted = PART(words)(keys, other, n, n);
#if SIGNS
    /* Zeros of both signs have one key: their signs are put back in the order they had. */
    const WORD top = PART(top);
    WORD *signs = sorted == keys ? other : keys;
    int64_t zeros = 0, before = 0;
    int is_signed = PART(has_signs)(x, 0, n, inner);
    for (int64_t i = 0; is_signed && i < n; i++) {
        before += sorted[i] < top;
        if (x[i * inner] == 0)
            signs[zeros++] = BITS_OF(x[i * inner]);
    }
#endif
    PART(put_found)(sorted, n, inner, out);
#if SIGNS
    for (int64_t i = 0; i < zeros; i++)
        out[(before + i) * inner] = OF_BITS(signs[i]);
#endif
}

#include "sort/lines.h"
