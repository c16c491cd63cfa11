/* Tiles in shared memory. THREADS that follow one another fill one together: a whole block of so many,
   or a part of a larger block. */
enum { GEON_THREADS = 256 };

/* Neighbouring elements on their way from memory to a tile. */
template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) geon_chunk {
    T at[COUNT];
};

/* Those from `source` on, of which `inside` are there; the others are 0. */
template <int COUNT, class T>
GEON_INLINE geon_chunk<T, COUNT> geon_load_chunk(const T *source, int64_t inside)
{
    geon_chunk<T, COUNT> found;
    if (inside >= COUNT && (uintptr_t)source % sizeof found == 0)
        return *(const geon_chunk<T, COUNT> *)source;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        found.at[k] = k < inside ? source[k] : (T)0;
    return found;
}

/* Calls back for each group of COUNT elements of a tile that is a thread's: with its number among
   the thread's, and its place along memory and across. */
template <int NEAR, int FAR, int COUNT, int THREADS, class Each>
GEON_INLINE void geon_each_chunk(Each each)
{
    const int chunks = NEAR * FAR / COUNT;
#pragma unroll
    for (int k = 0; k * THREADS < chunks; k++) {
        const int chunk = threadIdx.x % THREADS + k * THREADS;
        if (chunks % THREADS == 0 || chunk < chunks)
            each(k, chunk % (NEAR / COUNT) * COUNT, chunk / (NEAR / COUNT));
    }
}

/* Reads what a tile will hold, from the index `near` along memory and `far` across, both below their
   ends; `offset` says where an element lies behind `source`. */
template <int NEAR, int FAR, int THREADS = GEON_THREADS, int HELD, int COUNT, class T, class Offset>
GEON_INLINE void geon_read_tile(geon_chunk<T, COUNT> (&held)[HELD], const T *source, int64_t near,
                                int64_t near_end, int64_t far, int64_t far_end, Offset offset)
{
    geon_each_chunk<NEAR, FAR, COUNT, THREADS>([&](int k, int in_near, int in_far) {
        held[k] = {};
        if (near + in_near < near_end && far + in_far < far_end)
            held[k] = geon_load_chunk<COUNT>(source + offset(near + in_near, far + in_far),
                                             near_end - near - in_near);
    });
}

/* The same with `step` elements from line to line: where all chunks begin at multiples of their size,
   each thread has chunks below each other, which it finds by additions. */
template <int NEAR, int FAR, int THREADS = GEON_THREADS, int HELD, int COUNT, class T>
GEON_INLINE void geon_read_lines(geon_chunk<T, COUNT> (&held)[HELD], const T *source, int64_t step,
                                 int64_t near, int64_t near_end, int64_t far, int64_t far_end)
{
    enum { ABREAST = NEAR / COUNT, APART = THREADS / ABREAST };
    const bool whole = ABREAST * APART == THREADS && HELD * APART == FAR;
    const int me = threadIdx.x % THREADS, in_near = me % ABREAST * COUNT, in_far = me / ABREAST;
    const bool apart = ((uintptr_t)source | (uintptr_t)(step * sizeof(T))) % sizeof held[0];
    if (!whole || apart || near_end - near - in_near < COUNT) {
        geon_read_tile<NEAR, FAR, THREADS>(held, source, near, near_end, far, far_end,
                                  [&](int64_t in, int64_t line) { return line * step + in; });
        return;
    }
    const int64_t below = far_end - far - in_far;
    const int lines = below < FAR ? (int)below : FAR;
    const T *from = source + ((far + in_far) * step + near + in_near);
#pragma unroll
    for (int k = 0; k < HELD; k++, from += APART * step) {
        held[k] = {};
        if (k * APART < lines)
            held[k] = *(const geon_chunk<T, COUNT> *)from;
    }
}

/* Puts what was read into a tile, as it lies in memory. */
template <int NEAR, int FAR, int THREADS = GEON_THREADS, int HELD, int COUNT, class T, int HIGH,
          int WIDE>
GEON_INLINE void geon_put_tile(T (&tile)[HIGH][WIDE], const geon_chunk<T, COUNT> (&held)[HELD])
{
    geon_each_chunk<NEAR, FAR, COUNT, THREADS>([&](int k, int in_near, int in_far) {
        *(geon_chunk<T, COUNT> *)&tile[in_far][in_near] = held[k];
    });
}

/* The same with what adjoins in memory one below the other. */
template <int NEAR, int FAR, int THREADS = GEON_THREADS, int HELD, int COUNT, class T, int HIGH,
          int WIDE>
GEON_INLINE void geon_put_tile_turned(T (&tile)[HIGH][WIDE],
                                      const geon_chunk<T, COUNT> (&held)[HELD])
{
    geon_each_chunk<NEAR, FAR, COUNT, THREADS>([&](int k, int in_near, int in_far) {
#pragma unroll
        for (int at = 0; at < COUNT; at++)
            tile[in_near + at][in_far] = held[k].at[at];
    });
}

/* Fills a tile with elements that are computed, or 0 behind the ends. */
template <int NEAR, int FAR, bool TURNED, int THREADS = GEON_THREADS, class T, int HIGH, int WIDE,
          class Element>
GEON_INLINE void geon_fill_tile(T (&tile)[HIGH][WIDE], int64_t near, int64_t near_end, int64_t far,
                                int64_t far_end, Element element)
{
#pragma unroll 1
    for (int k = threadIdx.x % THREADS; k < NEAR * FAR; k += THREADS) {
        const int in_near = k % NEAR, in_far = k / NEAR;
        const bool inside = near + in_near < near_end && far + in_far < far_end;
        tile[TURNED ? in_near : in_far][TURNED ? in_far : in_near] =
            inside ? (T)element(near + in_near, far + in_far) : (T)0;
    }
}

/* Calls back for each sum of a thread below the ends, with its row and column. The text of what is
   done is there once for all columns: `own` is where a loop finds the sums, of THREADS that follow
   one another. */
template <class S, class T, int HIGH, int WIDE, int THREADS, class Row, class Column, class Each>
GEON_INLINE void geon_each_sum(const S (&sums)[HIGH][WIDE], T (&own)[WIDE][THREADS],
                               int64_t row_end, int64_t column_end, Row row, Column column,
                               Each each)
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
        if (row(i) >= row_end)
            break;
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            own[j][threadIdx.x % THREADS] = (T)sums[i][j];
#pragma unroll 1
        for (int j = 0; j < WIDE && column(j) < column_end; j++)
            each(row(i), column(j), own[j][threadIdx.x % THREADS]);
    }
}

/* The same where little is done, for all at once. */
template <class S, int HIGH, int WIDE, class Row, class Column, class Each>
GEON_INLINE void geon_each_plain_sum(const S (&sums)[HIGH][WIDE], int64_t row_end,
                                     int64_t column_end, Row row, Column column, Each each)
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
        if (row(i) >= row_end)
            break;
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            if (column(j) < column_end)
                each(row(i), column(j), sums[i][j]);
        }
    }
}

template <class T> GEON_INLINE void geon_read_four(T *held, const T *tile)
{
    const geon_four<T> found = *(const geon_four<T> *)tile;
#pragma unroll
    for (int k = 0; k < 4; k++)
        held[k] = found.at[k];
}
