/* A product of halves by tiles of 128 rows and 256 columns, of which each of two groups of four warps
   has 64 rows, or, where warps multiply for themselves, each of eight 64 rows and 64 columns. */
enum { GEON_ROWS = 128, GEON_COLUMNS = 256, GEON_OWN_WIDTH = GEON_COLUMNS + 4 };

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
    static __device__ __forceinline__ void show() { geon_show_to_groups(); }
    /* Begins to add the products of a step. */
    static __device__ __forceinline__ void begin(const unsigned char *tiles,
                                                 float (&sums)[HIGH][WIDE])
    {
        const int own = half();
        geon_settle(sums);
        geon_begin_groups();
#pragma unroll
        for (int deep = 0; deep < GEON_STEP; deep += 16) {
            const unsigned char *const left =
                tiles + (LEFT_TURNED ? own * LEFT_FAR * GEON_LINE + deep * GEON_LINE
                                     : own * 64 * GEON_LINE + deep * 2);
            const unsigned char *const right =
                tiles + LEFT_BYTES + (RIGHT_TURNED ? deep * GEON_LINE : deep * 2);
            geon_group<KIND, GEON_COLUMNS>::template multiply<LEFT_TURNED, RIGHT_TURNED>(
                sums, geon_described(left, LEFT_FAR * GEON_LINE),
                geon_described(right, RIGHT_FAR * GEON_LINE));
        }
        geon_commit_groups();
    }
    static __device__ __forceinline__ void multiply(const unsigned char *, float (&)[HIGH][WIDE]) {}
    static __device__ __forceinline__ void end(float (&sums)[HIGH][WIDE])
    {
        geon_wait_groups<0>();
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
    static __device__ __forceinline__ void show() {}
    static __device__ __forceinline__ void begin(const unsigned char *, float (&)[HIGH][WIDE]) {}
    static __device__ __forceinline__ void multiply(const unsigned char *tiles,
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
    static __device__ __forceinline__ void end(float (&)[HIGH][WIDE]) {}
#endif
};

/* Adds the products of all summed indices from `begin` to `end` to sums; `bring(tiles, first)` begins
   to bring the two tiles of a step. Nothing is on its way, and no stage is read, when it is done. */
template <class LARGE, int HIGH, int WIDE, class Bring>
GEON_INLINE void geon_multiply_in_steps(unsigned char *space, int stages, int64_t begin,
                                        int64_t end, float (&sums)[HIGH][WIDE], Bring bring)
{
    int into = 0, at = 0;
#pragma unroll 1
    for (int64_t ahead = begin; ahead < end + (stages - 1) * GEON_STEP; ahead += GEON_STEP) {
        const bool there = ahead >= begin + (stages - 1) * GEON_STEP;
        if (there) {
            geon_wait_for_step(stages);
            LARGE::show();
            LARGE::end(sums); /* of the step before, whose stage is filled next */
            __syncthreads();
            LARGE::begin(space + at * LARGE::BYTES, sums);
        }
        if (ahead < end)
            bring(space + into * LARGE::BYTES, ahead);
        geon_commit_ahead();
        into = into + 1 == stages ? 0 : into + 1;
        if (there) {
            LARGE::multiply(space + at * LARGE::BYTES, sums);
            at = at + 1 == stages ? 0 : at + 1;
        }
    }
    LARGE::end(sums);
    geon_wait_ahead<0>();
    __syncthreads();
}

/* Calls back for each sum of a tile below the ends, with its row and column: by way of shared memory,
   so that neighbouring threads have neighbouring columns. */
template <class LARGE, int HIGH, int WIDE, class Each>
GEON_INLINE void geon_each_of_large(unsigned char *space, const float (&sums)[HIGH][WIDE],
                                    int64_t first_row, int64_t row_end, int64_t first_column,
                                    int64_t column_end, Each each)
{
    float(*const lines)[GEON_OWN_WIDTH] = (float(*)[GEON_OWN_WIDTH])space;
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
        __syncthreads();
        const int64_t column = first_column + threadIdx.x, start = first_row + 64 * half;
        if (column < column_end) {
#pragma unroll 4
            for (int row = 0; row < 64; row++) {
                if (start + row < row_end)
                    each(start + row, column, lines[row][threadIdx.x]);
            }
        }
        __syncthreads();
    }
}
