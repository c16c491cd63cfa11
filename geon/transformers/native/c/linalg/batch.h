/* The matrices of a batch, divided among threads: a task is of so many that it takes long enough.
   Matrices of at most FEW rows are factorised by the code here, LANES of them side by side, each in
   a lane of vectors. Larger ones are given to LAPACK, one by one. */
#define FEW 8
#define SIDES 8 /* right-hand sides that are taken at once */
#define LANES (64 / (int64_t)sizeof(TYPE))

struct PART(batch) {
    const TYPE *a, *b;
    TYPE *out;
    int64_t batch, n, m, each;
};

typedef TYPE PART(lanes)[LANES];

#define EACH_LANE \
    _Pragma("omp simd") for (int64_t lane = 0; lane < LANES; lane++)

static void PART(matrix)(const struct PART(batch) *all, int64_t number);
static void PART(few)(const struct PART(batch) *all, int64_t first, int64_t count);

/* The elements of `count` arrays side by side; further lanes are as the last. */
static void PART(gather)(const TYPE *x, int64_t step, int64_t size, int64_t count,
                         PART(lanes) *found)
{
    for (int64_t lane = 0; lane < LANES; lane++)
        for (int64_t i = 0; i < size; i++)
            found[i][lane] = x[(lane < count ? lane : count - 1) * step + i];
}

static void PART(scatter)(const PART(lanes) *found, int64_t step, int64_t size, int64_t count,
                          TYPE *out)
{
    for (int64_t lane = 0; lane < count; lane++)
        for (int64_t i = 0; i < size; i++)
            out[lane * step + i] = found[i][lane];
}

/* x -= a y, and x /= a, in each lane. */
GEON_INLINE void PART(less)(TYPE *x, const TYPE *a, const TYPE *y)
{
    EACH_LANE x[lane] -= a[lane] * y[lane];
}

GEON_INLINE void PART(over)(TYPE *x, const TYPE *a)
{
    EACH_LANE x[lane] /= a[lane];
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(batch) *all = argument;
    int64_t begin = index * all->each, end = begin + all->each;
    end = end < all->batch ? end : all->batch;
    if (all->n <= FEW)
        for (int64_t first = begin; first < end; first += LANES)
            PART(few)(all, first, end - first < LANES ? end - first : LANES);
    else
        for (int64_t number = begin; number < end; number++)
            PART(matrix)(all, number);
}

/* `work` is the number of operations of a matrix. */
static void PART(matrices)(struct PART(batch) *all, int64_t work, int32_t threads)
{
    all->each = 1 + GRAIN / (work + 1);
    if (all->n <= FEW)
        all->each = (all->each + LANES - 1) / LANES * LANES;
    if (all->n > 0)
        geon_pool_run(PART(task), all, (all->batch + all->each - 1) / all->each, threads);
}
