/* x with values put in at positions, in order, so that of two at one place the later stays or is
   added: STORED is what a place and a value give. */
#include "scatter.h"

struct PART(work) {
    const TYPE *x, *value;
    const INDEX *positions;
    TYPE *out;
    int64_t columns, width, n, inner, m;
};

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t outer = index / all->columns, column = index % all->columns * all->width;
    int64_t width = all->inner - column < all->width ? all->inner - column : all->width;
    TYPE *out = all->out + outer * all->n * all->inner + column;
    const TYPE *x = all->x + outer * all->n * all->inner + column;
    const TYPE *value = all->value + outer * all->m * all->inner + column;
    for (int64_t i = 0; x != out && i < all->n; i++)
        __builtin_memcpy(out + i * all->inner, x + i * all->inner, (size_t)width * sizeof *x);
    for (int64_t i = 0; i < all->m; i++, value += all->inner) {
        int64_t position = (int64_t)all->positions[i];
        TYPE *place = out + (position < 0 ? position + all->n : position) * all->inner;
        for (int64_t j = 0; j < width; j++)
            place[j] = STORED(place[j], value[j]);
    }
}

void NAME(int32_t threads, const TYPE *x, const INDEX *positions, const TYPE *value,
          TYPE *out, int64_t outer, int64_t n, int64_t inner, int64_t m)
{
    int64_t width = (1 + GRAIN / (n + m + 1) + 63) / 64 * 64;
    struct PART(work) all = {
        x, value, positions, out, (inner + width - 1) / width, width, n, inner, m};
    if (outer > 0 && inner > 0)
        geon_pool_run(PART(task), &all, outer * all.columns, threads);
}
