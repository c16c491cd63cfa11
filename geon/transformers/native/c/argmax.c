/* Argmax or argmin of each line: the index of the largest key, or of the smallest one for LEAST;
   NaN is the extreme of both. Blocks compute their maximum in vectors, and only a block with a
   larger maximum than before is searched for the index. Few lines are divided into parts for all
   threads. Contiguous floats are compared directly, unless they are few: computing keys costs
   several times as much. */
#include "argmax.h"

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
        const int32_t here = ((x[i] == extreme) | (x[i] != x[i])) ? i : count;
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
#else
static int64_t PART(adjoining)(const TYPE *x, int64_t n)
{
    return PART(line)(x, n, 1);
}
#endif

/* The position of the extreme of a line whose elements are `inner` apart. */
static int64_t PART(position)(const TYPE *x, int64_t n, int64_t inner)
{
    return inner == 1 ? PART(adjoining)(x, n) : PART(line)(x, n, inner);
}

struct PART(lines) {
    const TYPE *x;
    int64_t *out, lines, n, inner, each;
    int64_t parts, size, *found; /* of each line, where lines are fewer than threads */
};

GEON_INLINE const TYPE *PART(begin)(const struct PART(lines) *all, int64_t line)
{
    return all->x + line / all->inner * all->n * all->inner + line % all->inner;
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(lines) *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    for (int64_t line = start; line < end && line < all->lines; line++)
        all->out[line] = PART(position)(PART(begin)(all, line), all->n, all->inner);
}

static void PART(part)(void *argument, int64_t index)
{
    const struct PART(lines) *all = argument;
    const int64_t start = index % all->parts * all->size, left = all->n - start;
    const TYPE *x = PART(begin)(all, index / all->parts) + start * all->inner;
    all->found[index] = start + PART(position)(x, left < all->size ? left : all->size, all->inner);
}

/* Parts of a line come in order: a later one counts where its key is larger. */
static void PART(join)(const struct PART(lines) *all)
{
    for (int64_t line = 0; line < all->lines; line++) {
        const TYPE *x = PART(begin)(all, line);
        const int64_t *found = all->found + line * all->parts;
        int64_t best = found[0];
        for (int64_t part = 1; part < all->parts; part++)
            if (PART(key)(x[found[part] * all->inner]) > PART(key)(x[best * all->inner]))
                best = found[part];
        all->out[line] = best;
    }
}

#define MAX_PARTS 512 /* of all lines together */
#define PART_GRAINS 16 /* tasks' worth of elements that the least part of a line has */

void NAME(int32_t threads, const TYPE *x, int64_t *out, int64_t outer, int64_t n,
          int64_t inner)
{
    int64_t each = 1 + 4 * GRAIN / (n + 1), found[MAX_PARTS];
    struct PART(lines) all = {x, out, outer * inner, n, inner, each, 1, n, found};
    if (!all.lines)
        return;
    if (threads > 1 && all.lines < 2 * threads && n >= 2 * PART_GRAINS * GRAIN) {
        int64_t parts = (4 * (int64_t)threads + all.lines - 1) / all.lines;
        if (parts > n / (PART_GRAINS * GRAIN))
            parts = n / (PART_GRAINS * GRAIN);
        if (parts > MAX_PARTS / all.lines)
            parts = MAX_PARTS / all.lines;
        if (parts > 1) {
            all.size = (n + parts - 1) / parts;
            all.parts = (n + all.size - 1) / all.size;
            geon_pool_run(PART(part), &all, all.lines * all.parts, threads);
            PART(join)(&all);
            return;
        }
    }
    geon_pool_run(PART(task), &all, (all.lines + each - 1) / each, threads);
}
