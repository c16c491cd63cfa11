/* Each line ascending, NaN last; equal elements keep their order. KEY_OF gives an element's key. */
#include "sort.h"
#include "sort_words.h"

static void PART(line)(const TYPE *x, TYPE *out, int64_t n, int64_t inner, WORD *keys)
{
    for (int64_t i = 0; i < n; i++)
        keys[i] = KEY_OF(x[i * inner]);
    WORD *other = keys + n, *sorted = PART(words)(keys, other, n);
    const WORD top = (WORD)1 << (8 * KEY_BYTES - 1);
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

#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#include "sort_lines.h"
