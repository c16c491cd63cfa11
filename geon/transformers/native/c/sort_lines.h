#include "sort_network.h"

/* The function NAME, which gives lines to tasks: PART(line) works on one. Lines of the result have
   LENGTH elements; K_DECLARED and K_GIVEN are what PART(line) takes besides, or nothing. */
struct PART(lines) {
    const TYPE *x;
    RESULT *out;
    char *scratch;
    int64_t lines, n, inner, k, each;
};

static void PART(task)(void *argument, int64_t index)
{
    struct PART(lines) *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    end = end < all->lines ? end : all->lines;
    int64_t part = (2 * all->n * (int64_t)sizeof(WORD) + 63) / 64 * 64;
    WORD *words = (WORD *)(all->scratch + geon_seat() * part);
    int64_t outer = start / all->inner, inner = start % all->inner;
    for (int64_t line = start; line < end;) {
        int64_t some = end - line < TOGETHER ? end - line : TOGETHER;
        int64_t from[TOGETHER], to[TOGETHER];
        for (int64_t lane = 0; lane < some; lane++) {
            from[lane] = outer * all->n * all->inner + inner;
            to[lane] = outer * all->k * all->inner + inner;
            if (++inner == all->inner)
                inner = 0, outer++;
        }
        line += some;
        if (all->n <= FEW && some == TOGETHER && sizeof(WORD) <= 8 &&
            PART(together)(all->x, all->out, from, to, all->n, all->inner, all->k))
            continue;
        for (int64_t lane = 0; lane < some; lane++)
            PART(line)(all->x + from[lane], all->out + to[lane], all->n, all->inner, words
                       K_GIVEN);
    }
}

void NAME(int32_t threads, const TYPE *x, RESULT *out, char *scratch, int64_t outer,
          int64_t n, int64_t inner K_DECLARED)
{
    int64_t each = 1 + GRAIN / (n + 1);
    struct PART(lines) all = {x, out, scratch, outer * inner, n, inner, LENGTH, each};
    if (all.lines && n)
        geon_pool_run(PART(task), &all, (all.lines + each - 1) / each, threads);
}
#undef K_DECLARED
#undef K_GIVEN
#undef LENGTH
#undef FEW
#undef WORD_OF
#undef FOUND
#undef APART
#undef TOGETHER
