/* What a block that goes through all turns of a loop does between its kernels. */

/* Copies bytes, by all threads, which then meet. */
GEON_INLINE void geon_copy_bytes(char *to, const char *of, int64_t size)
{
    for (int64_t at = threadIdx.x; at < size; at += blockDim.x)
        to[at] = of[at];
    __syncthreads();
}

/* Sets bytes to zero, by all threads, which then meet. */
GEON_INLINE void geon_clear_bytes(char *to, int64_t size)
{
    for (int64_t at = threadIdx.x; at < size; at += blockDim.x)
        to[at] = 0;
    __syncthreads();
}

/* What a profile has of a row, three numbers: its time, its runs, and the time of a launch of it. */

/* Adds the time since `begun`: by one thread, for all have met. */
GEON_INLINE void geon_note_time(char *clocks, int place, long long begun)
{
    if (threadIdx.x == 0)
        ((int64_t *)clocks)[place] += clock64() - begun;
}

/* Adds a run, where it is one. */
GEON_INLINE void geon_note_run(char *clocks, int place, bool runs)
{
    if (threadIdx.x == 0)
        ((int64_t *)clocks)[place] += runs;
}
