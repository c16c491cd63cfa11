/* to[c * to_step + r] = from[r * from_step + c] for elements of BYTES bytes: blocks that registers
   hold are turned in them, what is left is moved one by one. */
#ifdef __has_builtin
#define HAS_PICK __has_builtin(__builtin_shufflevector)
#else
#define HAS_PICK 0
#endif
#if !HAS_PICK
#undef BLOCK
#endif
#undef HAS_PICK
#ifdef BLOCK
typedef TYPE PART(vector) __attribute__((vector_size(32), aligned(BYTES), may_alias));

#define LOADED(k) PART(vector) r##k = *(const PART(vector) *)(from + k * from_step);
#define STORED(k, value) *(PART(vector) *)(to + k * to_step) = value
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
GEON_INLINE void PART(block)(const TYPE *from, int64_t from_step, TYPE *to, int64_t to_step)
{
#if BLOCK == 8
    LOADED(0) LOADED(1) LOADED(2) LOADED(3) LOADED(4) LOADED(5) LOADED(6) LOADED(7)
#define PAIRS(a, b, c, d)                                                                          \
    PART(vector) pair_a##b##0 = PICK(r##a, r##b, 0, 8, 1, 9, 4, 12, 5, 13);                        \
    PART(vector) pair_a##b##1 = PICK(r##a, r##b, 2, 10, 3, 11, 6, 14, 7, 15);                      \
    PART(vector) pair_c##d##0 = PICK(r##c, r##d, 0, 8, 1, 9, 4, 12, 5, 13);                        \
    PART(vector) pair_c##d##1 = PICK(r##c, r##d, 2, 10, 3, 11, 6, 14, 7, 15);                      \
    PART(vector) four_##a##0 = PICK(pair_a##b##0, pair_c##d##0, 0, 1, 8, 9, 4, 5, 12, 13);         \
    PART(vector) four_##a##1 = PICK(pair_a##b##0, pair_c##d##0, 2, 3, 10, 11, 6, 7, 14, 15);       \
    PART(vector) four_##a##2 = PICK(pair_a##b##1, pair_c##d##1, 0, 1, 8, 9, 4, 5, 12, 13);         \
    PART(vector) four_##a##3 = PICK(pair_a##b##1, pair_c##d##1, 2, 3, 10, 11, 6, 7, 14, 15);
    PAIRS(0, 1, 2, 3)
    PAIRS(4, 5, 6, 7)
#undef PAIRS
    STORED(0, PICK(four_00, four_40, 0, 1, 2, 3, 8, 9, 10, 11));
    STORED(1, PICK(four_01, four_41, 0, 1, 2, 3, 8, 9, 10, 11));
    STORED(2, PICK(four_02, four_42, 0, 1, 2, 3, 8, 9, 10, 11));
    STORED(3, PICK(four_03, four_43, 0, 1, 2, 3, 8, 9, 10, 11));
    STORED(4, PICK(four_00, four_40, 4, 5, 6, 7, 12, 13, 14, 15));
    STORED(5, PICK(four_01, four_41, 4, 5, 6, 7, 12, 13, 14, 15));
    STORED(6, PICK(four_02, four_42, 4, 5, 6, 7, 12, 13, 14, 15));
    STORED(7, PICK(four_03, four_43, 4, 5, 6, 7, 12, 13, 14, 15));
#else
    LOADED(0) LOADED(1) LOADED(2) LOADED(3)
    PART(vector) first = PICK(r0, r1, 0, 4, 2, 6), second = PICK(r0, r1, 1, 5, 3, 7);
    PART(vector) third = PICK(r2, r3, 0, 4, 2, 6), fourth = PICK(r2, r3, 1, 5, 3, 7);
    STORED(0, PICK(first, third, 0, 1, 4, 5));
    STORED(1, PICK(second, fourth, 0, 1, 4, 5));
    STORED(2, PICK(first, third, 2, 3, 6, 7));
    STORED(3, PICK(second, fourth, 2, 3, 6, 7));
#endif
}
#undef LOADED
#undef STORED
#undef PICK
#endif

__attribute__((unused)) static void NAME(
    const void *source, int64_t from_step, void *target, int64_t to_step, int64_t rows,
    int64_t columns)
{
    typedef TYPE element __attribute__((may_alias));
    const element *from = source;
    element *to = target;
    int64_t whole_rows = 0, whole_columns = 0;
#ifdef BLOCK
    whole_rows = rows / BLOCK * BLOCK;
    whole_columns = columns / BLOCK * BLOCK;
    for (int64_t r = 0; r < whole_rows; r += BLOCK)
        for (int64_t c = 0; c < whole_columns; c += BLOCK)
            PART(block)(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
#endif
    for (int64_t r = 0; r < whole_rows; r++)
        for (int64_t c = whole_columns; c < columns; c++)
            to[c * to_step + r] = from[r * from_step + c];
    for (int64_t r = whole_rows; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * to_step + r] = from[r * from_step + c];
}
