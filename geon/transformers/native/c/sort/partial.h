/* PART(least): sort the least k of the first n words. */
#if PAIRED
#include "sort/prefix.h"
#else
static WORD *PART(least)(const TYPE *x, int64_t n, int64_t inner, WORD *words, WORD *other,
                         int64_t k)
{
    PART(words_of)(x, 0, n, inner, words);
    return PART(words)(words, other, n, k);
}
#endif
