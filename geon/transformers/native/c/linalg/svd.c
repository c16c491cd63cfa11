/* Each column of the result has a left singular vector, and behind it the singular value and the
   right singular vector. */
#include "linalg/calls.h"

typedef void (*PART(gesdd))(const char *, const int *, const int *, TYPE *, const int *, TYPE *,
                            TYPE *, const int *, TYPE *, const int *, TYPE *, const int *, int *,
                            int *);

static void PART(matrix)(const struct PART(batch) *all, int64_t number, TYPE *scratch)
{
    int64_t m = all->m, n = all->n, column = m + 1 + n;
    const TYPE *x = all->x + number * m * n;
    TYPE *out = all->out + number * n * column;
    TYPE *copy = scratch, *right = copy + m * n, *values = right + n * n, *work = values + n;
    const int rows = (int)m, columns = (int)n, stride = (int)column;
    const int length = (int)(5 * n * n + 7 * n + 64 * (m + 3 * n));
    int *places = (int *)(work + length), failed = 0;
    __builtin_memcpy(copy, x, (size_t)(m * n) * sizeof *x);
    ((PART(gesdd))GESDD)("S", &rows, &columns, copy, &rows, values, out, &stride, right, &columns,
                         work, &length, places, &failed);
    for (int64_t k = 0; k < n; k++) {
        out[k * column + m] = values[k];
        for (int64_t j = 0; j < n; j++)
            out[k * column + m + 1 + j] = right[j * n + k];
    }
    if (failed)
        PART(spoil)(out, n * column);
}
