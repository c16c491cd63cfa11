/* PART(least): the words of the least k of the first n elements in order. */
#if PAIRED
#include "sort_prefix.h"
#else
static WORD *PART(least)(const TYPE *x, int64_t n, int64_t inner, WORD *words, WORD *other,
                         int64_t k)
{
    for (int64_t i = 0; i < n; i++)
        words[i] = WORD_OF(x[i * inner], i);
    return PART(words)(words, other, n, k);
}
#endif
