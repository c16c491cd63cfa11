/* In LAPACK's order the factors are those of the transpose: aᵀ = P L U, so a = Uᵀ Lᵀ Pᵀ. */
#include "linalg/lu_solve.h"
#include "linalg/batch.h"
#include "linalg/triangles.h"

struct PART(flags) {
    struct PART(batch) all;
    int transposed;
};

static void PART(exchange)(TYPE *x, int64_t i, int64_t j, int64_t m)
{
    for (int64_t k = 0; i != j && k < m; k++) {
        const TYPE kept = x[i * m + k];
        x[i * m + k] = x[j * m + k];
        x[j * m + k] = kept;
    }
}

/* Exchange rows of right-hand sides in the lanes where `place` is j. */
static void PART(exchange_lanes)(PART(lanes) *x, const TYPE *place, int64_t i, int64_t j, int64_t m)
{
    for (int64_t k = 0; k < m; k++)
        EACH_LANE {
            const TYPE a = x[i * m + k][lane], b = x[j * m + k][lane];
            const int is_found = place[lane] == (TYPE)j;
            x[i * m + k][lane] = is_found ? b : a;
            x[j * m + k][lane] = is_found ? a : b;
        }
}

static void PART(few)(const struct PART(batch) *all, int64_t first, int64_t count)
{
    int64_t n = all->n, m = all->m;
    int transposed = ((const struct PART(flags) *)all)->transposed;
    PART(lanes) f[(FEW + 1) * FEW], x[FEW * SIDES];
    PART(gather)(all->a + first * (n + 1) * n, (n + 1) * n, (n + 1) * n, count, f);
    for (int64_t side = 0; side < m; side += SIDES) {
        int64_t sides = m - side < SIDES ? m - side : SIDES;
        for (int64_t i = 0; i < n; i++)
            PART(gather)(all->b + (first * n + i) * m + side, n * m, sides, count, x + i * sides);
        if (transposed) {
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = i + 1; j < n; j++)
                    PART(exchange_lanes)(x, f[n * n + i], i, j, sides);
            PART(substitute)(f, 1, n, 0, 1, n, sides, x);
            PART(substitute)(f, 1, n, 1, 0, n, sides, x);
        } else {
            PART(substitute)(f, n, 1, 0, 0, n, sides, x);
            PART(substitute)(f, n, 1, 1, 1, n, sides, x);
            for (int64_t i = n - 1; i >= 0; i--)
                for (int64_t j = i + 1; j < n; j++)
                    PART(exchange_lanes)(x, f[n * n + i], i, j, sides);
        }
        for (int64_t i = 0; i < n; i++)
            PART(scatter)(x + i * sides, n * m, sides, count,
                          all->out + (first * n + i) * m + side);
    }
}

static void PART(matrix)(const struct PART(batch) *all, int64_t number)
{
    int64_t n = all->n, m = all->m;
    const TYPE *f = all->a + number * (n + 1) * n, *b = all->b + number * n * m;
    const TYPE *last = f + n * n;
    TYPE *out = all->out + number * n * m;
    if (b != out)
        __builtin_memcpy(out, b, (size_t)(n * m) * sizeof *b);
    if (((const struct PART(flags) *)all)->transposed) {
        for (int64_t i = 0; i < n; i++)
            PART(exchange)(out, i, (int64_t)last[i], m);
        PART(solve)("L", 1, "U", n, m, f, out);
        PART(solve)("U", 1, "N", n, m, f, out);
    } else {
        PART(solve)("U", 0, "N", n, m, f, out);
        PART(solve)("L", 0, "U", n, m, f, out);
        for (int64_t i = n - 1; i >= 0; i--)
            PART(exchange)(out, i, (int64_t)last[i], m);
    }
}

void NAME(int32_t threads, const TYPE *f, const TYPE *b, TYPE *out, int64_t batch, int64_t n,
          int64_t m, int transposed)
{
    struct PART(flags) flags = {{f, b, out, batch, n, m, 0}, transposed};
    if (m > 0)
        PART(matrices)(&flags.all, 2 * n * n * m, threads);
}
