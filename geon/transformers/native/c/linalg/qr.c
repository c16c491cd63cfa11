/* Each column of the result has one of Q, and behind it the row of R. */
#include "linalg/calls.h"

typedef void (*PART(geqrf))(const int *, const int *, TYPE *, const int *, TYPE *, TYPE *,
                            const int *, int *);
typedef void (*PART(orgqr))(const int *, const int *, const int *, TYPE *, const int *,
                            const TYPE *, TYPE *, const int *, int *);

static void PART(matrix)(const struct PART(batch) *all, int64_t number, TYPE *scratch)
{
    int64_t m = all->m, n = all->n, column = m + n;
    const TYPE *x = all->x + number * m * n;
    TYPE *out = all->out + number * n * column, *factors = scratch, *work = factors + n;
    const int rows = (int)m, columns = (int)n, stride = (int)column, length = (int)(64 * n);
    int failed = 0;
    for (int64_t j = 0; j < n; j++)
        __builtin_memcpy(out + j * column, x + j * m, (size_t)m * sizeof *x);
    ((PART(geqrf))GEQRF)(&rows, &columns, out, &stride, factors, work, &length, &failed);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            out[j * column + m + i] = i < j ? 0 : out[i * column + j];
    ((PART(orgqr))ORGQR)(&rows, &columns, &columns, out, &stride, factors, work, &length, &failed);
}
