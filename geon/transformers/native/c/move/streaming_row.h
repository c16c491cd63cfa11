/* Copy fewer bytes than a cache line, in pieces of constant sizes. */
GEON_INLINE void geon_past_few(char *to, const char *from, int64_t bytes)
{
#define PIECE(size)                                                                                \
    if (bytes & size) {                                                                            \
        memcpy(to, from, size);                                                                    \
        to += size, from += size;                                                                  \
    }
    PIECE(32) PIECE(16) PIECE(8) PIECE(4) PIECE(2) PIECE(1)
#undef PIECE
}

/* Puts bytes that nothing adjoins before long: ends of them that fill no line as any others. */
static __attribute__((noinline, unused)) void geon_past_row(void *place, const void *values,
                                                            int64_t bytes)
{
    char *to = place;
    const char *from = values, *const end = from + bytes;
    const int64_t room = (int64_t)(-(uintptr_t)to & 63), first = room < bytes ? room : bytes;
    geon_past_few(to, from, first);
    for (from += first, to += first; end - from >= 64; from += 64, to += 64)
        geon_past_line(to, from);
    geon_past_few(to, from, end - from);
}
