/* A product of halves by tiles of 128 rows and 256 columns, of which each of two groups of four warps
   has 64 rows, or, where warps multiply for themselves, each of eight 64 rows and 64 columns. */
enum {
    GEON_ROWS = 128,
    GEON_COLUMNS = 256,
    GEON_OWN_WIDTH = GEON_COLUMNS + 4,
    GEON_MULTIPLYING = 256 /* threads */
};

template <class KIND, bool LEFT_TURNED, bool RIGHT_TURNED> struct geon_large {
    enum {
        LEFT_FAR = LEFT_TURNED ? GEON_STEP : GEON_ROWS,
        RIGHT_FAR = RIGHT_TURNED ? GEON_STEP : GEON_COLUMNS,
        LEFT_BYTES = GEON_ROWS * GEON_LINE,
        BYTES = LEFT_BYTES + GEON_COLUMNS * GEON_LINE
    };
#ifdef GEON_BY_GROUPS
    enum { HIGH = 2, WIDE = GEON_COLUMNS / 4 };
    /* The half of the rows that a thread has sums of, and of each where it lies in that. */
    static __device__ __forceinline__ int half() { return threadIdx.x / 128; }
    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + 8 * i;
    }
    static __device__ __forceinline__ int column(int j)
    {
        return threadIdx.x % 4 * 2 + j % 2 + j / 2 * 8;
    }
    enum { LATER = 1 }; /* steps whose products are added while those of the next are begun */
    /* Begins to add the products of a step. */
    static __device__ __forceinline__ void begin(const unsigned char *tiles,
                                                 float (&sums)[HIGH][WIDE])
    {
        const int own = half();
        geon_settle(sums);
        geon_begin_groups();
        const unsigned left = geon_described(tiles + own * (LEFT_TURNED ? LEFT_FAR : 64) * GEON_LINE,
                                             LEFT_FAR * GEON_LINE);
        const unsigned right = geon_described(tiles + LEFT_BYTES, RIGHT_FAR * GEON_LINE);
#pragma unroll
        for (int deep = 0; deep < GEON_STEP; deep += 16)
            geon_group<KIND, GEON_COLUMNS>::template multiply<LEFT_TURNED, RIGHT_TURNED>(
                sums, geon_inside(left, deep * (LEFT_TURNED ? GEON_LINE : 2)),
                geon_inside(right, deep * (RIGHT_TURNED ? GEON_LINE : 2)));
        geon_commit_groups();
    }
    /* Waits until products are added, but for those of so many steps that were begun last. */
    template <int BUT> static __device__ __forceinline__ void end(float (&sums)[HIGH][WIDE])
    {
        geon_wait_groups<BUT>();
        geon_settle(sums);
    }
#else
    enum { HIGH = 8, WIDE = 16 };
    static __device__ __forceinline__ int half() { return threadIdx.x / 32 % 2; }
    static __device__ __forceinline__ int row(int i) { return threadIdx.x % 32 / 4 + 8 * i; }
    static __device__ __forceinline__ int across() { return threadIdx.x / 64 * 64; }
    static __device__ __forceinline__ int column(int j)
    {
        return across() + threadIdx.x % 4 * 2 + j % 2 + j / 2 * 8;
    }
    enum { LATER = 0 };
    static __device__ __forceinline__ void begin(const unsigned char *tiles,
                                                 float (&sums)[HIGH][WIDE])
    {
#pragma unroll
        for (int deep = 0; deep < GEON_STEP; deep += 16) {
            uint32_t left[HIGH / 2][4];
#pragma unroll
            for (int i = 0; i < HIGH / 2; i++)
                geon_hold_left_of<LEFT_TURNED, LEFT_FAR>(left[i], tiles, half() * 64 + 16 * i, deep);
#pragma unroll
            for (int j = 0; j < WIDE / 4; j++) {
                uint32_t right[4];
                geon_hold_right_of<RIGHT_TURNED, RIGHT_FAR>(right, tiles + LEFT_BYTES,
                                                            across() + 16 * j, deep);
#pragma unroll
                for (int i = 0; i < HIGH; i += 2) {
#pragma unroll
                    for (int k = 0; k < 4; k += 2)
                        KIND::multiply(sums[i][4 * j + k], sums[i][4 * j + k + 1],
                                       sums[i + 1][4 * j + k], sums[i + 1][4 * j + k + 1],
                                       left[i / 2], right + k);
                }
            }
        }
    }
    template <int BUT> static __device__ __forceinline__ void end(float (&)[HIGH][WIDE]) {}
#endif
};

/* Adds the products of all stages up to the summed index `end` to sums; no stage is read when it is
   done. */
template <class LARGE, int BYTES, int HIGH, int WIDE>
GEON_INLINE void geon_multiply_in_steps(geon_stages<BYTES> &stages, int64_t end,
                                        float (&sums)[HIGH][WIDE])
{
    const unsigned steps = (unsigned)((end + GEON_STEP - 1) / GEON_STEP);
#pragma unroll 1
    for (unsigned step = 0; step < steps; step++) {
        stages.wait_to_read();
        LARGE::begin(stages.tiles(), sums);
        LARGE::template end<LARGE::LATER>(sums);
        if (LARGE::LATER == 0)
            stages.release();
        else if (step > 0)
            stages.release_before();
        stages.next();
    }
    LARGE::template end<0>(sums);
}

/* Calls back for each sum of a tile below the ends, with its row and column: by way of shared memory,
   so that neighbouring threads have neighbouring columns. */
template <class LARGE, int HIGH, int WIDE, class Each>
GEON_INLINE void geon_each_of_large(unsigned char *space, const float (&sums)[HIGH][WIDE],
                                    int64_t first_row, int64_t row_end, int64_t first_column,
                                    int64_t column_end, Each each)
{
    float(*const lines)[GEON_OWN_WIDTH] = (float(*)[GEON_OWN_WIDTH])space;
    geon_meet<GEON_MULTIPLYING>(); /* so nobody reads a stage any more */
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        if (LARGE::half() == half) {
#pragma unroll
            for (int i = 0; i < HIGH; i++) {
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    lines[LARGE::row(i)][LARGE::column(j)] = sums[i][j];
            }
        }
        geon_meet<GEON_MULTIPLYING>();
        const int64_t column = first_column + threadIdx.x, start = first_row + 64 * half;
        if (column < column_end) {
#pragma unroll 4
            for (int row = 0; row < 64; row++) {
                if (start + row < row_end)
                    each(start + row, column, lines[row][threadIdx.x]);
            }
        }
        geon_meet<GEON_MULTIPLYING>();
    }
}
