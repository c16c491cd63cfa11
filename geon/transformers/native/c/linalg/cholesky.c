/* In LAPACK's order, columns first, a lower triangle in rows is an upper one. */
#include "linalg/cholesky.h"
#include "linalg/batch.h"

typedef void (*PART(potrf))(const char *, const int *, TYPE *, const int *, int *);

static void PART(few)(const struct PART(batch) *all, int64_t first, int64_t count)
{
    int64_t n = all->n;
    PART(lanes) x[FEW * FEW], inverse;
    PART(gather)(all->a + first * n * n, n * n, n * n, count, x);
    for (int64_t j = 0; j < n; j++) {
        TYPE *pivot = x[j * n + j];
        for (int64_t k = 0; k < j; k++)
            PART(less)(pivot, x[j * n + k], x[j * n + k]);
        EACH_LANE {
            pivot[lane] = pivot[lane] > 0 ? SQRT(pivot[lane]) : (TYPE)__builtin_nan("");
            inverse[lane] = 1 / pivot[lane];
        }
        for (int64_t i = j + 1; i < n; i++) {
            for (int64_t k = 0; k < j; k++)
                PART(less)(x[i * n + j], x[i * n + k], x[j * n + k]);
            EACH_LANE x[i * n + j][lane] *= inverse[lane];
            EACH_LANE x[j * n + i][lane] = 0;
        }
    }
    /* The last pivot is NaN if one before it is; then the whole matrix becomes NaN. */
    for (int64_t i = 0; i < n * n; i++)
        EACH_LANE {
            const TYPE last = x[n * n - 1][lane];
            x[i][lane] = last == last ? x[i][lane] : last;
        }
    PART(scatter)(x, n * n, n * n, count, all->out + first * n * n);
}

static void PART(matrix)(const struct PART(batch) *all, int64_t number)
{
    int64_t n = all->n;
    const TYPE *x = all->a + number * n * n;
    TYPE *out = all->out + number * n * n;
    const int size = (int)n;
    int failed = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x != out)
            __builtin_memcpy(out + i * n, x + i * n, (size_t)(i + 1) * sizeof *x);
        __builtin_memset(out + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *x);
    }
    ((PART(potrf))POTRF)("U", &size, out, &size, &failed);
    for (int64_t i = 0; failed && i < n * n; i++)
        out[i] = (TYPE)__builtin_nan("");
}

void NAME(int32_t threads, const TYPE *x, TYPE *out, int64_t batch, int64_t n)
{
    struct PART(batch) all = {x, NULL, out, batch, n, n, 0};
    PART(matrices)(&all, n * n * n / 3, threads);
}
