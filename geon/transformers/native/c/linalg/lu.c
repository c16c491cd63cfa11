/* LAPACK, whose matrices are columns first, factorises the transpose of each: it exchanges columns.
   A pivot of 0 leaves a factor with a 0 on its diagonal. */
#include "linalg/lu.h"
#include "linalg/batch.h"

typedef void (*PART(getrf))(const int *, const int *, TYPE *, const int *, int *, int *);

static void PART(few)(const struct PART(batch) *all, int64_t first, int64_t count)
{
    int64_t n = all->n;
    PART(lanes) x[(FEW + 1) * FEW], most;
    PART(gather)(all->a + first * n * n, n * n, n * n, count, x);
    for (int64_t k = 0; k < n; k++) {
        TYPE *place = x[n * n + k];
        EACH_LANE {
            most[lane] = ABS(x[k * n + k][lane]);
            place[lane] = (TYPE)k;
        }
        for (int64_t j = k + 1; j < n; j++)
            EACH_LANE {
                const TYPE size = ABS(x[k * n + j][lane]);
                place[lane] = size > most[lane] ? (TYPE)j : place[lane];
                most[lane] = size > most[lane] ? size : most[lane];
            }
        for (int64_t j = k + 1; j < n; j++)
            for (int64_t i = 0; i < n; i++) {
                TYPE *here = x[i * n + k], *there = x[i * n + j];
                EACH_LANE {
                    const TYPE a = here[lane], b = there[lane];
                    const int is_found = place[lane] == (TYPE)j;
                    here[lane] = is_found ? b : a;
                    there[lane] = is_found ? a : b;
                }
            }
        EACH_LANE most[lane] = x[k * n + k][lane] == 0 ? 1 : 1 / x[k * n + k][lane];
        for (int64_t j = k + 1; j < n; j++)
            EACH_LANE x[k * n + j][lane] *= most[lane];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = k + 1; j < n; j++)
                PART(less)(x[i * n + j], x[i * n + k], x[k * n + j]);
    }
    PART(scatter)(x, (n + 1) * n, (n + 1) * n, count, all->out + first * (n + 1) * n);
}

static void PART(matrix)(const struct PART(batch) *all, int64_t number)
{
    int64_t n = all->n;
    TYPE *out = all->out + number * (n + 1) * n, *last = out + n * n;
    const int size = (int)n;
    int failed = 0;
    __builtin_memcpy(out, all->a + number * n * n, (size_t)(n * n) * sizeof *out);
    /* The exchanges, counted from 1, are no larger than elements: they become floats in place, from
       the last to the first. */
    ((PART(getrf))GETRF)(&size, &size, out, &size, (int *)last, &failed);
    for (int64_t i = n - 1; i >= 0; i--) {
        int found;
        __builtin_memcpy(&found, (const char *)last + i * (int64_t)sizeof found, sizeof found);
        const TYPE place = (TYPE)(found - 1);
        __builtin_memcpy(last + i, &place, sizeof place);
    }
}

void NAME(int32_t threads, const TYPE *x, TYPE *out, int64_t batch, int64_t n)
{
    struct PART(batch) all = {x, NULL, out, batch, n, n, 0};
    PART(matrices)(&all, 2 * n * n * n / 3, threads);
}
