/* Argsort of 64-bit elements: a word has the index and as many leading bits of the key as fit above
   it. The least key is subtracted first, so that keys of a small range fit as a whole; otherwise
   elements with equal words are then sorted by the remaining bits. */
#define LONGEST_RUN 16 /* of words that begin alike, put in order one by one */

struct PART(prefix) {
    KEY least;
    int shift, bits; /* of a key are left out, and of a position are below it */
};

/* Makes words of the n positions that words have, or of all up to n. */
GEON_INLINE struct PART(prefix) PART(prefixed)(const TYPE *x, int64_t inner, WORD *words, int64_t n,
                                               int bits, int are_all)
{
    const WORD below = ((WORD)1 << bits) - 1;
    struct PART(prefix) of = {.least = ~(KEY)0, .bits = bits};
    KEY most = 0;
    for (int64_t i = 0; i < n; i++) {
        KEY key = PART(key)(x[(are_all ? i : (int64_t)(words[i] & below)) * inner]);
        of.least = key < of.least ? key : of.least;
        most = key > most ? key : most;
    }
    int needed = most > of.least ? 64 - __builtin_clzll(most - of.least) : 0;
    of.shift = needed > 64 - bits ? needed - (64 - bits) : 0;
    for (int64_t i = 0; i < n; i++) {
        WORD at = are_all ? (WORD)i : words[i] & below;
        words[i] = (PART(key)(x[(int64_t)at * inner]) - of.least) >> of.shift << bits | at;
    }
    return of;
}

/* Puts n words that begin alike in order; they are in the order of their positions. */
static void PART(run)(const TYPE *x, int64_t inner, WORD *words, WORD *other, int64_t n, int bits)
{
    const WORD below = ((WORD)1 << bits) - 1;
    if (n > LONGEST_RUN) {
        struct PART(prefix) of = PART(prefixed)(x, inner, words, n, bits, 0);
        WORD *sorted = PART(words)(words, other, n, n);
        if (sorted != words)
            __builtin_memcpy(words, sorted, (size_t)n * sizeof(WORD));
        for (int64_t i = 0, end; of.shift && i < n; i = end) {
            for (end = i + 1; end < n && words[end] >> bits == words[i] >> bits;)
                end++;
            PART(run)(x, inner, words + i, other + i, end - i, bits);
        }
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        WORD word = words[i];
        KEY key = PART(key)(x[(int64_t)(word & below) * inner]);
        int64_t j = i;
        for (; j > 0 && PART(key)(x[(int64_t)(words[j - 1] & below) * inner]) > key; j--)
            words[j] = words[j - 1];
        words[j] = word;
    }
}

/* The positions of the least k of the first n elements in order, in the one memory or the other. */
static WORD *PART(least)(const TYPE *x, int64_t n, int64_t inner, WORD *words, WORD *other,
                         int64_t k)
{
    const int bits = 64 - __builtin_clzll((uint64_t)n);
    const WORD below = ((WORD)1 << bits) - 1;
    struct PART(prefix) of = PART(prefixed)(x, inner, words, n, bits, 1);
    WORD *sorted = PART(words)(words, other, n, k);
    other = sorted == words ? other : words;
    for (int64_t i = 0, end; of.shift && i < k; i = end) {
        KEY begin = sorted[i] >> bits;
        for (end = i + 1; end < k && sorted[end] >> bits == begin;)
            end++;
        if (end == k && k < n) { /* others that begin so may come before them */
            end = i;
            for (int64_t at = 0; at < n; at++)
                if ((PART(key)(x[at * inner]) - of.least) >> of.shift == begin)
                    sorted[end++] = (WORD)at;
        }
        PART(run)(x, inner, sorted + i, other + i, end - i, bits);
    }
    for (int64_t i = 0; i < k; i++)
        sorted[i] &= below;
    return sorted;
}
