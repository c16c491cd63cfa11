/* The function NAME, which computes the matrices of a batch one after another in each thread, with
   scratch memory of its own: PART(matrix) computes one. */
#include "linalg/packed.h"

struct PART(batch) {
    const TYPE *x;
    TYPE *out;
    char *scratch;
    int64_t batch, m, n, bytes;
};

static void PART(matrix)(const struct PART(batch) *all, int64_t number, TYPE *scratch);

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(batch) *all = argument;
    PART(matrix)(all, index, (TYPE *)(all->scratch + geon_seat() * all->bytes));
}

static void PART(spoil)(TYPE *x, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        x[i] = (TYPE)__builtin_nan("");
}

void NAME(int32_t threads, const TYPE *x, TYPE *out, char *scratch, int64_t batch, int64_t m,
          int64_t n, int64_t bytes)
{
    struct PART(batch) all = {x, out, scratch, batch, m, n, bytes};
    if (n > 0)
        geon_pool_run(PART(task), &all, batch, threads);
}
