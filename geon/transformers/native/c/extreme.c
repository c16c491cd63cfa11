/* The position of each line's extreme: of the largest key, or for LEAST of the smallest, NaN being
   extreme in both. Blocks find their largest in vectors; only one above what was found is searched.
   */
#include "extreme.h"

GEON_INLINE KEY PART(key)(TYPE x)
{
    KEY key = KEY_OF(x);
#if LEAST && FLOATING
    return x != x ? key : (KEY)~key;
#elif LEAST
    return (KEY)~key;
#else
    return key;
#endif
}

static int64_t PART(line)(const TYPE *x, int64_t n, int64_t inner)
{
    KEY best = 0;
    int64_t found = 0;
    for (int64_t start = 0; start < n; start += 512) {
        int32_t count = n - start < 512 ? (int32_t)(n - start) : 512, first = 512;
        KEY largest = 0;
        for (int32_t i = 0; i < count; i++) {
            KEY key = PART(key)(x[(start + i) * inner]);
            largest = key > largest ? key : largest;
        }
        if (largest <= best)
            continue;
        best = largest;
        for (int32_t i = 0; i < count; i++) {
            int32_t here = PART(key)(x[(start + i) * inner]) == best ? i : 512;
            first = here < first ? here : first;
        }
        found = start + first;
    }
    return found;
}

struct PART(lines) {
    const TYPE *x;
    int64_t *out, lines, n, inner, each;
};

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(lines) *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    for (int64_t line = start; line < end && line < all->lines; line++) {
        if (all->inner == 1)
            all->out[line] = PART(line)(all->x + line * all->n, all->n, 1);
        else
            all->out[line] = PART(line)(all->x + line / all->inner * all->n * all->inner
                                        + line % all->inner, all->n, all->inner);
    }
}

void NAME(int32_t threads, const TYPE *x, int64_t *out, int64_t outer, int64_t n,
          int64_t inner)
{
    int64_t each = 1 + 4 * GRAIN / (n + 1);
    struct PART(lines) all = {x, out, outer * inner, n, inner, each};
    if (all.lines)
        geon_pool_run(PART(task), &all, (all.lines + each - 1) / each, threads);
}
