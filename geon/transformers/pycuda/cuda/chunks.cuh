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

template <class T> GEON_INLINE void geon_read_four(T *held, const T *tile)
{
    const geon_four<T> found = *(const geon_four<T> *)tile;
#pragma unroll
    for (int k = 0; k < 4; k++)
        held[k] = found.at[k];
}
