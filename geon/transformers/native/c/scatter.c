/* x with values put in at positions, in order, so that of two at one place the later stays or is
   added: STORED is what a place and a value give. Where many are ADDED to few places, parts of the
   positions are added in copies of their own, from NOTHING on, and the copies then in order. Else
   tasks have columns of wide rows, each going over all positions. */
#include "scatter.h"

struct PART(work) {
    const TYPE *x, *value;
    const INDEX *positions;
    TYPE *out, *copies;
    int64_t outer, n, inner, m, blocks, parts, pieces;
};

/* Columns from `column` on put at places, as many as there are. */
GEON_INLINE void PART(put)(const struct PART(work) *all, TYPE *out, const TYPE *value,
                           const INDEX *positions, int64_t m, int64_t column, int64_t columns)
{
    int64_t n = all->n, inner = all->inner;
    for (int64_t i = 0; inner == 1 && i < m; i++) {
        int64_t position = (int64_t)positions[i];
        TYPE *place = out + (position < 0 ? position + n : position);
        *place = STORED(*place, value[i]);
    }
    for (int64_t i = 0; inner != 1 && i < m; i++) {
        int64_t position = (int64_t)positions[i];
        TYPE *place = out + (position < 0 ? position + n : position) * inner + column;
        const TYPE *put = value + i * inner + column;
#pragma omp simd
        for (int64_t j = 0; j < columns; j++)
            place[j] = STORED(place[j], put[j]);
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
                             1, (size + PIECE - 1) / PIECE};
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
    geon_pool_run(PART(task), &all, outer * blocks, threads);
}
