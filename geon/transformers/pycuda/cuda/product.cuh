/* The products of two tiles in shared memory, added to the sums of a thread. Each thread has fours
   of rows and of columns of the result, `APART` from four to four. */
template <int APART, class T, int HIGH, int WIDE, int DEPTH, int LEFT, int RIGHT>
GEON_INLINE void geon_multiply_tiles(const T (&left_tile)[DEPTH][LEFT],
                                     const T (&right_tile)[DEPTH][RIGHT], T (&sums)[HIGH][WIDE],
                                     int down, int across)
{
    enum { AT_ONCE = HIGH * WIDE < 64 ? 2 : DEPTH }; /* so that two blocks have registers, or one */
#pragma unroll AT_ONCE
    for (int k = 0; k < DEPTH; k++) {
        T left[HIGH], right[WIDE];
#pragma unroll
        for (int i = 0; i < HIGH; i += 4)
            geon_read_four(left + i, &left_tile[k][4 * down + i / 4 * APART]);
#pragma unroll
        for (int j = 0; j < WIDE; j += 4)
            geon_read_four(right + j, &right_tile[k][4 * across + j / 4 * APART]);
#pragma unroll
        for (int i = 0; i < HIGH; i++) {
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                sums[i][j] = geon_multiply_add(left[i], right[j], sums[i][j]);
        }
    }
}

/* Sums of a block of terms moved to totals, and what rounding takes from these to `rests`. What is
   lost is found by Dekker's Fast2Sum: all of it where the total is the larger one. */
template <class T, int HIGH, int WIDE>
GEON_INLINE void geon_add_up(T (&totals)[HIGH][WIDE], T (&rests)[HIGH][WIDE],
                             T (&sums)[HIGH][WIDE])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const T total = totals[i][j] + sums[i][j];
            rests[i][j] += sums[i][j] - (total - totals[i][j]);
            totals[i][j] = total;
            sums[i][j] = 0;
        }
    }
}

/* Totals with their rests; a total that is infinite has none. */
template <class T, int HIGH, int WIDE>
GEON_INLINE void geon_add_rests(T (&totals)[HIGH][WIDE], const T (&rests)[HIGH][WIDE])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            if (fabsf(rests[i][j]) < INFINITY)
                totals[i][j] += rests[i][j];
        }
    }
}

/* The same with totals that have no rests. */
template <class T, int HIGH, int WIDE>
GEON_INLINE void geon_add_up(double (&totals)[HIGH][WIDE], T (&sums)[HIGH][WIDE])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            totals[i][j] += sums[i][j];
            sums[i][j] = 0;
        }
    }
}

/* The rows, or columns, of a thread: fours of them, APART from four to four. */
template <int APART> struct geon_fours {
    int64_t first;
    __device__ __forceinline__ int64_t operator()(int k) const
    {
        return first + k % 4 + k / 4 * APART;
    }
};
