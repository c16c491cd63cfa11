/* Each line ascending, NaN last; equal elements keep their order. KEY_OF gives an element's key. */
#include "sort.h"
#include "sort_words.h"

static const WORD PART(top) = (WORD)1 << (8 * KEY_BYTES - 1);

static void PART(line)(const TYPE *x, TYPE *out, int64_t n, int64_t inner, WORD *keys)
{
    for (int64_t i = 0; i < n; i++)
        keys[i] = KEY_OF(x[i * inner]);
    WORD *other = keys + n, *sorted = PART(words)(keys, other, n);
    const WORD top = PART(top);
#if FLOATING
    /* Zeros of both signs have one key: their signs are put back in the order they had. */
    WORD *signs = sorted == keys ? other : keys;
    int64_t zeros = 0, negative = 0, before = 0;
    for (int64_t i = 0; i < n; i++)
        negative += BITS_OF(x[i * inner]) == top;
    for (int64_t i = 0; negative && i < n; i++) {
        before += sorted[i] < top;
        if (x[i * inner] == 0)
            signs[zeros++] = BITS_OF(x[i * inner]);
    }
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = OF_BITS(sorted[i] & top ? sorted[i] ^ top : ~sorted[i]);
    for (int64_t i = 0; i < zeros; i++)
        out[(before + i) * inner] = OF_BITS(signs[i]);
#else
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = (TYPE)(sorted[i] ^ (SIGNED ? top : 0));
#endif
}

#define WORD_OF(value, i) KEY_OF(value)
#if FLOATING /* one key stands for both zeros */
#define FOUND(word) OF_BITS((word) >> (8 * KEY_BYTES - 1) ? (word) ^ PART(top) : (KEY)~(word))
#define APART(value) (BITS_OF(value) == PART(top))
#else
#define FOUND(word) ((TYPE)((word) ^ (SIGNED ? PART(top) : 0)))
#define APART(value) 0
#endif
#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#include "sort_lines.h"
