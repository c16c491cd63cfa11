/* Running totals, 64 lines side by side: they accumulate in TOTAL, from START on by COMBINED, and
   IDENTITY stands before the first. */
#include "cumulative.h"

struct PART(work) {
    const TYPE *x;
    RESULT *out;
    int64_t blocks, columns, n, inner, each;
    int exclusive, reverse;
};

static void PART(columns)(const struct PART(work) *all, int64_t at, int64_t width)
{
    TOTAL totals[64];
    for (int64_t j = 0; j < width; j++)
        totals[j] = START;
    int64_t step = all->reverse ? -all->inner : all->inner;
    at += all->reverse ? (all->n - 1) * all->inner : 0;
    for (int64_t i = 0; i < all->n; i++, at += step)
        for (int64_t j = 0; j < width; j++) {
            RESULT before = i ? (RESULT)totals[j] : IDENTITY;
            TOTAL value = (RESULT)all->x[at + j];
            totals[j] = COMBINED(totals[j], value);
            all->out[at + j] = all->exclusive ? before : (RESULT)totals[j];
        }
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    for (int64_t block = start; block < end && block < all->blocks; block++) {
        int64_t column = block % all->columns * 64;
        int64_t width = all->inner - column < 64 ? all->inner - column : 64;
        int64_t at = block / all->columns * all->n * all->inner + column;
        if (all->inner == 1)
            PART(columns)(all, at, 1);
        else
            PART(columns)(all, at, width);
    }
}

void NAME(int32_t threads, const TYPE *x, RESULT *out, int64_t outer, int64_t n,
          int64_t inner, int exclusive, int reverse)
{
    int64_t columns = (inner + 63) / 64, each = 1 + GRAIN / ((inner < 64 ? inner : 64) * n + 1);
    struct PART(work) all = {
        x, out, outer * columns, columns, n, inner, each, exclusive, reverse};
    if (all.blocks && n)
        geon_pool_run(PART(task), &all, (all.blocks + each - 1) / each, threads);
}
