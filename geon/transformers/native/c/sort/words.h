/* Sort the least k of n words, ascending; the result is in `words` or in the other buffer. A word
   has a KEY of KEY_BYTES from bit DOWN on. */
#define FEW (24 + 8 * KEY_BYTES)
#include "move/has_shuffle.h"
#define IS_QUICK                                                                                  \
    (VECTOR_BYTES >= 32 && HAS_PICK && WORD_BYTES == NUMBER_BYTES && WORD_BYTES >= 4)

/* A radix sort takes a byte of the keys at a time, the least significant first. */
static WORD *PART(digits)(WORD *words, WORD *other, int64_t n)
{
    int64_t starts[KEY_BYTES][256];
    __builtin_memset(starts, 0, sizeof starts);
    for (int64_t i = 0; i < n; i++) {
        KEY key = (KEY)(words[i] >> DOWN);
        for (int digit = 0; digit < KEY_BYTES; digit++)
            starts[digit][key >> 8 * digit & 255]++;
    }
    for (int digit = 0; digit < KEY_BYTES; digit++) {
        int64_t *start = starts[digit], total = 0;
        if (start[(KEY)(words[0] >> DOWN) >> 8 * digit & 255] == n)
            continue; /* all have the same byte here */
        for (int byte = 0; byte < 256; byte++) {
            int64_t count = start[byte];
            start[byte] = total;
            total += count;
        }
        for (int64_t i = 0; i < n; i++)
            other[start[(KEY)(words[i] >> DOWN) >> 8 * digit & 255]++] = words[i];
        WORD *sorted = other;
        other = words;
        words = sorted;
    }
    return words;
}

#if IS_QUICK
#include "sort/quicksort.h"
#endif
static WORD *PART(words)(WORD *words, WORD *other, int64_t n, int64_t k)
{
#if IS_QUICK
    PART(quick)(words, other, n, k, 0, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
    return words;
#else
    (void)k;
    if (n > FEW)
        return PART(digits)(words, other, n);
    for (int64_t i = 1; i < n; i++) { /* counters of digits would take more time */
        WORD word = words[i];
        int64_t j = i;
        for (; j > 0 && words[j - 1] > word; j--)
            words[j] = words[j - 1];
        words[j] = word;
    }
    return words;
#endif
}

/* Loops over elements that adjoin become vectors only where they are known to. */
#define EACH_OF(start, end, inner, LOOP)                                                          \
    if ((inner) == 1)                                                                             \
        for (int64_t i = (start); i < (end); i++)                                                 \
            LOOP(i);                                                                              \
    else                                                                                          \
        for (int64_t i = (start); i < (end); i++)                                                 \
            LOOP(i * (inner))
#if !PAIRED
/* The words of elements `start` up to `end`. */
static void PART(words_of)(const TYPE *x, int64_t start, int64_t end, int64_t inner, WORD *words)
{
#define MADE(at) words[i] = WORD_OF(x[at], i)
    EACH_OF(start, end, inner, MADE);
}
#endif

/* What the first n words stand for. */
static void PART(put_found)(const WORD *words, int64_t n, int64_t inner, RESULT *out)
{
#define PUT(at) out[at] = FOUND(words[i])
    EACH_OF(0, n, inner, PUT);
}

#if SIGNS
/* Whether there is a zero with a sign among elements `start` up to `end`. */
static int PART(has_signs)(const TYPE *x, int64_t start, int64_t end, int64_t inner)
{
    KEY any = 0;
#define SEEN(at) any |= (KEY)(BITS_OF(x[at]) == PART(top))
    EACH_OF(start, end, inner, SEEN);
    return any != 0;
}
#endif
