/* What sorts each line: a word has a key above the position it came from. */
#include "sort.h"
#include "sort_words.h"

static void PART(line)(const TYPE *x, int64_t *out, int64_t n, int64_t inner, WORD *words)
{
    for (int64_t i = 0; i < n; i++)
        words[i] = (WORD)KEY_OF(x[i * inner]) << DOWN | (WORD)i;
    WORD *sorted = PART(words)(words, words + n, n);
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = (int64_t)(POSITION)sorted[i];
}

#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#include "sort_lines.h"
