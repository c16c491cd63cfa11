/* The products of two tiles in shared memory, added to the sums of a thread. Each thread has EACH
   rows and columns of the result, SIDE apart. */
template <class T, int DEPTH, int SIDE, int EACH, int WIDTH>
GEON_INLINE void geon_multiply_tiles(const T (&left_tile)[DEPTH][WIDTH],
                                     const T (&right_tile)[DEPTH][WIDTH], T (&sums)[EACH][EACH],
                                     int down, int across)
{
    for (int k = 0; k < DEPTH; k++) {
        T left[EACH], right[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            left[i] = left_tile[k][down + SIDE * i];
            right[i] = right_tile[k][across + SIDE * i];
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
#pragma unroll
            for (int j = 0; j < EACH; j++)
                sums[i][j] = geon_multiply_add(left[i], right[j], sums[i][j]);
        }
    }
}

/* Sums of a block of terms moved to totals. */
template <class T, int EACH>
GEON_INLINE void geon_add_up(double (&totals)[EACH][EACH], T (&sums)[EACH][EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            totals[i][j] += sums[i][j];
            sums[i][j] = 0;
        }
    }
}
