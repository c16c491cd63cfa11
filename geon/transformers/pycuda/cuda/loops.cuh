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
