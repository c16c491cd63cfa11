/* Without vectors LAPACK reduces a copy of the matrix, and needs a part of the work space. */
#include "linalg/calls.h"

typedef void (*PART(syevd))(const char *, const char *, const int *, TYPE *, const int *, TYPE *,
                            TYPE *, const int *, int *, const int *, int *);

static void PART(matrix)(const struct PART(batch) *all, int64_t number, TYPE *scratch)
{
    int64_t n = all->n;
    TYPE *out = all->out + number * n, *copy = scratch, *work = copy + n * n;
    const int size = (int)n, length = (int)(1 + 66 * n), integers = 1;
    int *places = (int *)(work + length), failed = 0;
    __builtin_memcpy(copy, all->x + number * n * n, (size_t)(n * n) * sizeof *copy);
    ((PART(syevd))SYEVD)("N", "L", &size, copy, &size, out, work, &length, places, &integers,
                         &failed);
    if (failed)
        PART(spoil)(out, n);
}
