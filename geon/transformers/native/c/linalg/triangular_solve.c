#include "linalg/triangular_solve.h"
#include "linalg/batch.h"
#include "linalg/triangles.h"

struct PART(flags) {
    struct PART(batch) all;
    int exchanged, lower, unit;
};

static void PART(few)(const struct PART(batch) *all, int64_t first, int64_t count)
{
    const struct PART(flags) *flags = (const struct PART(flags) *)all;
    int64_t n = all->n, m = all->m;
    PART(lanes) t[FEW * FEW], x[FEW * SIDES];
    PART(gather)(all->a + first * n * n, n * n, n * n, count, t);
    for (int64_t side = 0; side < m; side += SIDES) {
        int64_t sides = m - side < SIDES ? m - side : SIDES;
        for (int64_t i = 0; i < n; i++)
            PART(gather)(all->b + (first * n + i) * m + side, n * m, sides, count, x + i * sides);
        PART(substitute)(t, flags->exchanged ? 1 : n, flags->exchanged ? n : 1, !flags->lower,
                         flags->unit, n, sides, x);
        for (int64_t i = 0; i < n; i++)
            PART(scatter)(x + i * sides, n * m, sides, count,
                          all->out + (first * n + i) * m + side);
    }
}

static void PART(matrix)(const struct PART(batch) *all, int64_t number)
{
    const struct PART(flags) *flags = (const struct PART(flags) *)all;
    int64_t n = all->n, m = all->m;
    const TYPE *b = all->b + number * n * m;
    TYPE *out = all->out + number * n * m;
    if (b != out)
        __builtin_memcpy(out, b, (size_t)(n * m) * sizeof *b);
    PART(solve)(flags->lower == flags->exchanged ? "L" : "U", flags->exchanged,
                flags->unit ? "U" : "N", n, m, all->a + number * n * n, out);
}

void NAME(int32_t threads, const TYPE *a, const TYPE *b, TYPE *out, int64_t batch, int64_t n,
          int64_t m, int exchanged, int lower, int unit)
{
    struct PART(flags) flags = {{a, b, out, batch, n, m, 0}, exchanged, lower, unit};
    if (m > 0)
        PART(matrices)(&flags.all, n * n * m, threads);
}
