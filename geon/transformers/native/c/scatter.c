/* Scatter: x with values set or combined at positions, in their order; STORED combines an element
   with a value. If many values are combined (ADDED) in few elements, parts of the positions are
   combined in private copies, which start from the identity NOTHING, and the copies are combined in
   order. Else, if rows are wide, each task processes all positions for some columns. Else, if the
   result is larger than the caches, each task processes a range of its elements. The order in which
   an element receives values is the same for all of these. */
#include "scatter.h"

struct PART(work) {
    const TYPE *x, *value;
    const INDEX *positions;
    TYPE *out, *copies;
    int64_t outer, n, inner, m, blocks, parts, pieces, far, ranges;
};

/* Where a position lies: negative ones count from the end. */
GEON_INLINE int64_t PART(at)(const struct PART(work) *all, const INDEX *positions, int64_t i)
{
    int64_t position = (int64_t)positions[i];
    return position < 0 ? position + all->n : position;
}

/* Rows of known length put at places, one after another. */
GEON_INLINE void PART(rows)(const struct PART(work) *all, TYPE *out, const TYPE *value,
                            const INDEX *positions, int64_t m, int64_t column, int64_t columns)
{
    for (int64_t i = 0; i < m; i++) {
        TYPE *place = out + PART(at)(all, positions, i) * all->inner + column;
        const TYPE *put = value + i * all->inner + column;
        if (all->far && i + AHEAD < m)
            __builtin_prefetch(out + PART(at)(all, positions, i + AHEAD) * all->inner + column, 1);
#pragma omp simd
        for (int64_t j = 0; j < columns; j++)
            place[j] = STORED(place[j], put[j]);
    }
}

/* Columns from `column` on put at places, as many as there are. */
GEON_INLINE void PART(put)(const struct PART(work) *all, TYPE *out, const TYPE *value,
                           const INDEX *positions, int64_t m, int64_t column, int64_t columns)
{
    if (all->inner == 1 && !all->far) {
        for (int64_t i = 0; i < m; i++) {
            TYPE *place = out + PART(at)(all, positions, i);
            *place = STORED(*place, value[i]);
        }
    } else if (columns == 1) {
        PART(rows)(all, out, value, positions, m, column, 1);
    } else if (columns == 2) {
        PART(rows)(all, out, value, positions, m, column, 2);
    } else if (columns == 3) {
        PART(rows)(all, out, value, positions, m, column, 3);
    } else if (columns == 4) {
        PART(rows)(all, out, value, positions, m, column, 4);
    } else if (columns == 8) {
        PART(rows)(all, out, value, positions, m, column, 8);
    } else {
        PART(rows)(all, out, value, positions, m, column, columns);
    }
}

/* Rows of known length, of these positions, put at these places. */
GEON_INLINE void PART(found)(TYPE *out, const TYPE *value, const int64_t *places,
                             const int64_t *from, int64_t count, int64_t inner)
{
    for (int64_t k = 0; k < count; k++) {
        TYPE *place = out + places[k] * inner;
        const TYPE *put = value + from[k] * inner;
        if (k + AHEAD < count)
            __builtin_prefetch(out + places[k + AHEAD] * inner, 1);
        for (int64_t j = 0; j < inner; j++)
            place[j] = STORED(place[j], put[j]);
    }
}

/* One range of places, for which all positions are looked through: those that lie in it are listed
   first, which needs no branch that is foreseen badly. */
static void PART(range)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t outer = index / all->ranges, range = index % all->ranges;
    int64_t low = range * all->n / all->ranges, high = (range + 1) * all->n / all->ranges;
    TYPE *out = all->out + outer * all->n * all->inner;
    const TYPE *value = all->value + outer * all->m * all->inner;
    for (int64_t start = 0; start < all->m; start += LISTED) {
        int64_t places[LISTED], from[LISTED], count = 0;
        int64_t end = start + LISTED < all->m ? start + LISTED : all->m;
        for (int64_t i = start; i < end; i++) {
            int64_t at = PART(at)(all, all->positions, i);
            places[count] = at;
            from[count] = i;
            count += (at >= low) & (at < high);
        }
        if (all->inner == 1)
            PART(found)(out, value, places, from, count, 1);
        else
            PART(found)(out, value, places, from, count, all->inner);
    }
}

static void PART(copy)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t start = index * GRAIN, left = all->outer * all->n * all->inner - start;
    __builtin_memcpy(all->out + start, all->x + start,
                     (size_t)(left < GRAIN ? left : GRAIN) * sizeof *all->x);
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t outer = index / all->blocks, column = index % all->blocks * COLUMNS;
    int64_t left = all->inner - column, last = index % all->blocks == all->blocks - 1;
    PART(put)(all, all->out + outer * all->n * all->inner,
              all->value + outer * all->m * all->inner, all->positions, all->m, column,
              last ? left : COLUMNS);
}

#if ADDED
static void PART(part)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t outer = index / all->parts, part = index % all->parts, size = all->n * all->inner;
    int64_t start = part * all->m / all->parts, end = (part + 1) * all->m / all->parts;
    TYPE *copy = all->copies + index * size;
    for (int64_t i = 0; i < size; i++)
        copy[i] = NOTHING;
    PART(put)(all, copy, all->value + (outer * all->m + start) * all->inner,
              all->positions + start, end - start, 0, all->inner);
}

static void PART(join)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t outer = index / all->pieces, size = all->n * all->inner;
    int64_t start = index % all->pieces * PIECE, end = start + PIECE < size ? start + PIECE : size;
    TYPE *out = all->out + outer * size;
    const TYPE *x = all->x + outer * size;
    for (int64_t part = 0; part < all->parts; part++, x = out) {
        const TYPE *copy = all->copies + (outer * all->parts + part) * size;
#pragma omp simd
        for (int64_t i = start; i < end; i++)
            out[i] = STORED(x[i], copy[i]);
    }
}
#endif

void NAME(int32_t threads, const TYPE *x, const INDEX *positions, const TYPE *value, TYPE *out,
          char *scratch, int64_t outer, int64_t n, int64_t inner, int64_t m)
{
    if (outer == 0 || inner == 0 || n == 0)
        return;
    int64_t size = n * inner, blocks = inner < COLUMNS ? 1 : inner / COLUMNS;
    struct PART(work) all = {x, value, positions, out, (TYPE *)scratch, outer, n, inner, m, blocks,
                             1, (size + PIECE - 1) / PIECE,
                             size * (int64_t)sizeof *x > FAR, 1};
#if ADDED
    if (outer < MOST_PARTS && m * inner >= GRAIN)
        all.parts = m / (FEW_PLACES * n) < MOST_PARTS ? m / (FEW_PLACES * n) : MOST_PARTS;
    if (all.parts > 1) {
        geon_pool_run(PART(part), &all, outer * all.parts, threads);
        geon_pool_run(PART(join), &all, outer * all.pieces, threads);
        return;
    }
#endif
    if (x != out)
        geon_pool_run(PART(copy), &all, (outer * size + GRAIN - 1) / GRAIN, threads);
    if (all.far && m * inner >= GRAIN && outer * blocks < threads) {
        all.ranges = threads / outer < MOST_RANGES ? threads / outer : MOST_RANGES;
        geon_pool_run(PART(range), &all, outer * all.ranges, threads);
        return;
    }
    geon_pool_run(PART(task), &all, outer * blocks, threads);
}
