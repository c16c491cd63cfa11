/* Sort short contiguous runs of words in registers: the lanes of a block's vectors are sorted
   first, then merged pairwise until one run is left. */
#define LANES (VECTOR_BYTES / WORD_BYTES)
#if LANES == 16
#define EACH_LANE(M, by)                                                                          \
    M(0, by), M(1, by), M(2, by), M(3, by), M(4, by), M(5, by), M(6, by), M(7, by), M(8, by),     \
        M(9, by), M(10, by), M(11, by), M(12, by), M(13, by), M(14, by), M(15, by)
#elif LANES == 4
#define EACH_LANE(M, by) M(0, by), M(1, by), M(2, by), M(3, by)
#else
#define EACH_LANE(M, by)                                                                          \
    M(0, by), M(1, by), M(2, by), M(3, by), M(4, by), M(5, by), M(6, by), M(7, by)
#endif
#define LANE_CROSSED(lane, by) (lane) ^ (by)
#define LANE_PICKED(lane, by) (((lane) & (by)) ? LANES + (lane) : (lane))
#define LANE_DEALT(lane, start) (start) + (lane) / 2 + (lane) % 2 * LANES

/* The lanes whose numbers differ in the bits `by`; those of y where the bit is set, else of x. */
#define CROSSED(x, by) __builtin_shufflevector(x, x, EACH_LANE(LANE_CROSSED, by))
#define PICKED(x, y, bit) __builtin_shufflevector(x, y, EACH_LANE(LANE_PICKED, bit))
#define DEALT(x, y, start) __builtin_shufflevector(x, y, EACH_LANE(LANE_DEALT, start))

#define LOADED(k) PART(vector) r##k = words[k] ^ HELD;
#define STORED(k) words[k] = r##k ^ HELD;
#define RENAMED(k) r##k = s##k;
#define EXCHANGED(i, j) PART(swap)(&r##i, &r##j);
GEON_INLINE void PART(swap)(PART(vector) *a, PART(vector) *b)
{
    PART(vector) lesser = LESSER(*a, *b);
    *b = LARGER(*a, *b);
    *a = lesser;
}

/* Groups of 2 * g lanes: the lower g meet the upper ones of the row as far from the other end. */
#define MIRRORED(i, j, g)                                                                         \
    {                                                                                             \
        PART(vector) other = CROSSED(r##j, 2 * (g) - 1);                                          \
        PART(vector) lesser = LESSER(r##i, other), larger = LARGER(r##i, other);                  \
        r##i = PICKED(lesser, larger, g);                                                         \
        other = PICKED(larger, lesser, g);                                                        \
        r##j = CROSSED(other, 2 * (g) - 1);                                                       \
    }
#define NEARER(k, g)                                                                              \
    {                                                                                             \
        PART(vector) other = CROSSED(r##k, g);                                                    \
        r##k = PICKED(LESSER(r##k, other), LARGER(r##k, other), g);                               \
    }
#define MIRRORED_1(i, j) MIRRORED(i, j, 1)
#define MIRRORED_2(i, j) MIRRORED(i, j, 2)
#define MIRRORED_4(i, j) MIRRORED(i, j, 4)
#define MIRRORED_8(i, j) MIRRORED(i, j, 8)
#define NEARER_1(k) NEARER(k, 1)
#define NEARER_2(k) NEARER(k, 2)
#define NEARER_4(k) NEARER(k, 4)
#define ENDS_2(M) M(0, 1)
#define ENDS_4(M) M(0, 3) M(1, 2)
#define ENDS_8(M) M(0, 7) M(1, 6) M(2, 5) M(3, 4)
#define ENDS_16(M) M(0, 15) M(1, 14) M(2, 13) M(3, 12) M(4, 11) M(5, 10) M(6, 9) M(7, 8)

/* Rows of the upper half dealt out among those of the lower half, which takes a bit of each word's
   place from the rows to the lanes. */
#define DEAL(i, j, low, high)                                                                     \
    PART(vector) s##low = DEALT(r##i, r##j, 0), s##high = DEALT(r##i, r##j, LANES / 2);
#define DEAL_2 DEAL(0, 1, 0, 1)
#define DEAL_4 DEAL(0, 2, 0, 1) DEAL(1, 3, 2, 3)
#define DEAL_8 DEAL(0, 4, 0, 1) DEAL(1, 5, 2, 3) DEAL(2, 6, 4, 5) DEAL(3, 7, 6, 7)
#define DEAL_16                                                                                   \
    DEAL(0, 8, 0, 1) DEAL(1, 9, 2, 3) DEAL(2, 10, 4, 5) DEAL(3, 11, 6, 7)                         \
    DEAL(4, 12, 8, 9) DEAL(5, 13, 10, 11) DEAL(6, 14, 12, 13) DEAL(7, 15, 14, 15)
#define ROUND(count)                                                                              \
    {                                                                                             \
        DEAL_##count ROWS_##count(RENAMED)                                                        \
    }
#define ROUNDS_2 ROUND(2)
#define ROUNDS_4 ROUND(4) ROUND(4)
#define ROUNDS_8 ROUND(8) ROUND(8) ROUND(8)
#define ROUNDS_16 ROUND(16) ROUND(16) ROUND(16) ROUND(16)

#if LANES == 4
#define LATER_MERGES(count)
#elif LANES == 8
#define LATER_MERGES(count) MERGE_EIGHT(count)
#else
#define LATER_MERGES(count)                                                                       \
    MERGE_EIGHT(count)                                                                            \
    ENDS_##count(MIRRORED_8) ROWS_##count(NEARER_4) ROWS_##count(NEARER_2) ROWS_##count(NEARER_1) \
        CLEAN_##count(EXCHANGED)
#endif
#define MERGE_EIGHT(count)                                                                        \
    ENDS_##count(MIRRORED_4) ROWS_##count(NEARER_2) ROWS_##count(NEARER_1) CLEAN_##count(EXCHANGED)
#define BLOCK(count)                                                                              \
    static void PART(block_##count)(PART(vector) *words)                                          \
    {                                                                                             \
        ROWS_##count(LOADED) SORT_##count(EXCHANGED)                                              \
        ENDS_##count(MIRRORED_1) CLEAN_##count(EXCHANGED)                                         \
        ENDS_##count(MIRRORED_2) ROWS_##count(NEARER_1) CLEAN_##count(EXCHANGED)                  \
        LATER_MERGES(count)                                                                       \
        ROUNDS_##count                                                                            \
        ROWS_##count(STORED)                                                                      \
    }
BLOCK(2)
BLOCK(4)
BLOCK(8)
BLOCK(16)

/* Up to 16 rows of words, from `from` to `to`. */
static void PART(block)(const WORD *from, WORD *to, int64_t n)
{
    PART(vector) held[16];
    int64_t whole = n / LANES, rows = whole + (n % LANES > 0);
    int64_t count = rows <= 2 ? 2 : rows <= 4 ? 4 : rows <= 8 ? 8 : 16;
    for (int64_t k = whole; k < count; k++)
        held[k] = ~(PART(vector)){0};
    __builtin_memcpy(held, from, (size_t)n * sizeof(WORD));
    if (count == 2)
        PART(block_2)(held);
    else if (count == 4)
        PART(block_4)(held);
    else if (count == 8)
        PART(block_8)(held);
    else
        PART(block_16)(held);
    __builtin_memcpy(to, held, (size_t)n * sizeof(WORD));
}
#undef LANES
#undef EXCHANGED
