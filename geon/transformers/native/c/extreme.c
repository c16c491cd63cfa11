/* The position of each line's extreme: of the largest key, or for LEAST of the smallest, NaN being
   extreme in both. Blocks find their largest in vectors; only one above what was found is searched.
   Floats that adjoin are compared as they are, unless they are few: keys cost several times that.
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

GEON_INLINE int64_t PART(line)(const TYPE *x, int64_t n, int64_t inner)
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

#if FLOATING
#if LEAST
#define BEFORE(a, b) ((a) < (b))
#else
#define BEFORE(a, b) ((a) > (b))
#endif
#define BLOCK 1024 /* elements that are found again in the first cache */
#define SHORT 32   /* elements that leave vectors little to do */

/* The extreme of a block, or NaN where it has one. */
GEON_INLINE TYPE PART(extreme)(const TYPE *x, int32_t count)
{
    TYPE extreme = LEAST ? INFINITY : -INFINITY;
    KEY nan = 0;
#if LEAST
#pragma omp simd reduction(min : extreme) reduction(| : nan)
#else
#pragma omp simd reduction(max : extreme) reduction(| : nan)
#endif
    for (int32_t i = 0; i < count; i++) {
        extreme = BEFORE(x[i], extreme) ? x[i] : extreme;
        nan |= -(KEY)(x[i] != x[i]);
    }
    return nan ? NAN : extreme;
}

/* Where the first element of a block is that equals its extreme, or is NaN. */
GEON_INLINE int32_t PART(first)(const TYPE *x, int32_t count, TYPE extreme)
{
    int32_t first = count;
#pragma omp simd reduction(min : first)
    for (int32_t i = 0; i < count; i++) {
        const int32_t here = (x[i] == extreme) | (x[i] != x[i]) ? i : count;
        first = here < first ? here : first;
    }
    return first;
}

static int64_t PART(adjoining)(const TYPE *x, int64_t n)
{
    if (n < SHORT)
        return PART(line)(x, n, 1);
    TYPE best = 0;
    int64_t found = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int32_t count = n - start < BLOCK ? (int32_t)(n - start) : BLOCK;
        const TYPE *block = x + start;
        const TYPE extreme = PART(extreme)(block, count);
        if (start && !BEFORE(extreme, best) && extreme == extreme)
            continue;
        best = extreme;
        found = start + PART(first)(block, count, extreme);
        if (best != best)
            break;
    }
    return found;
}
#undef BEFORE
#undef BLOCK
#undef SHORT
#else
static int64_t PART(adjoining)(const TYPE *x, int64_t n)
{
    return PART(line)(x, n, 1);
}
#endif

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
            all->out[line] = PART(adjoining)(all->x + line * all->n, all->n);
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
