/* Each column of the result has an eigenvector, and behind it its eigenvalue. */
#include "linalg/calls.h"

typedef void (*PART(syevd))(const char *, const char *, const int *, TYPE *, const int *, TYPE *,
                            TYPE *, const int *, int *, const int *, int *);

static void PART(matrix)(const struct PART(batch) *all, int64_t number, TYPE *scratch)
{
    int64_t n = all->n, column = n + 1;
    const TYPE *x = all->x + number * n * n;
    TYPE *out = all->out + number * n * column, *values = scratch, *work = values + n;
    const int size = (int)n, stride = (int)column, length = (int)(1 + 70 * n + 2 * n * n);
    const int integers = (int)(3 + 5 * n);
    int *places = (int *)(work + length), failed = 0;
    for (int64_t j = 0; j < n; j++)
        __builtin_memcpy(out + j * column, x + j * n, (size_t)n * sizeof *x);
    ((PART(syevd))SYEVD)("V", "L", &size, out, &stride, values, work, &length, places, &integers,
                         &failed);
    for (int64_t j = 0; j < n; j++)
        out[j * column + n] = values[j];
    if (failed)
        PART(spoil)(out, n * column);
}
