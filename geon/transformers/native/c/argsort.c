/* What sorts each line: a word has a key above the position it came from. */
#include "sort.h"
#include "sort_words.h"

#define WORD_OF(value, i) ((WORD)KEY_OF(value) << DOWN | (WORD)(i))
#define FOUND(word) ((int64_t)(POSITION)(word))
#define APART(value) 0

static void PART(line)(const TYPE *x, int64_t *out, int64_t n, int64_t inner, WORD *words)
{
    for (int64_t i = 0; i < n; i++)
        words[i] = WORD_OF(x[i * inner], i);
    WORD *sorted = PART(words)(words, words + n, n);
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = FOUND(sorted[i]);
}

#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#include "sort_lines.h"
