/* TOGETHER short lines side by side, sorted by a network. A program says what an element's word is
   (WORD_OF), what a word stands for (FOUND) and which elements only PART(line) orders (APART). */
#define TOGETHER 16

/* Lane by lane the lesser to a, the larger to b. */
GEON_INLINE void PART(exchange)(WORD *restrict a, WORD *restrict b)
{
    for (int64_t lane = 0; lane < TOGETHER; lane++) {
        WORD low = a[lane] < b[lane] ? a[lane] : b[lane];
        b[lane] = a[lane] < b[lane] ? b[lane] : a[lane];
        a[lane] = low;
    }
}

/* Each lane of n neighbours ascending, by Batcher's odd-even merges: which two are compared depends
   on their places alone, so that all lanes do the same. */
static void PART(network)(WORD *words, int64_t n)
{
    for (int64_t p = 1; p < n; p += p)
        for (int64_t k = p; k >= 1; k /= 2)
            for (int64_t j = k % p; j + k < n; j += 2 * k)
                for (int64_t i = j; i < j + k && i + k < n; i++)
                    if ((i ^ (i + k)) < 2 * p)
                        PART(exchange)(words + i * TOGETHER, words + (i + k) * TOGETHER);
}

/* Sorts TOGETHER lines that begin at x + from; 0 where a line holds what is APART. */
static int PART(together)(const TYPE *x, RESULT *out, const int64_t *from, const int64_t *to,
                          int64_t n, int64_t inner, int64_t k)
{
    WORD words[FEW * TOGETHER];
    int special = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t lane = 0; lane < TOGETHER; lane++) {
            TYPE value = x[from[lane] + i * inner];
            special |= APART(value);
            words[i * TOGETHER + lane] = WORD_OF(value, i);
        }
    if (special)
        return 0;
    PART(network)(words, n);
    for (int64_t i = 0; i < k; i++)
        for (int64_t lane = 0; lane < TOGETHER; lane++)
            out[to[lane] + i * inner] = FOUND(words[i * TOGETHER + lane]);
    return 1;
}
