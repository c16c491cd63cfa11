/* to[c * to_step + r] = from[r * from_step + c] for elements of BYTES bytes: blocks are transposed
   in registers, and so are fewer rows than a block has if the written lines are contiguous. With
   SQUARES there are only blocks of one size, which take a fifth of the compile time. */
#include "move/has_shuffle.h"
#if !HAS_PICK
#undef BLOCK
#undef SIDE
#else
#define LANES (16 / BYTES)
#include "move/shuffles.h"
#ifndef SQUARES
#define FEW_ROWS
#include "move/transpose_few_rows.h"
#endif
#endif
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
#endif

/* Vectors of 16 bytes, for smaller elements and for narrow sides. */
#define SQUARE PART(square)
#ifdef SIDE
#include "move/transpose_square.h"
#endif

/* Two or three columns that adjoin: compilers part these in vectors where no loop counts them. */
#define TO(c, count) to[c * to_step + r] = from[r * count + c];
#define PARTED(count, moves)                                                                       \
    if (columns == count && from_step == count) {                                                  \
        _Pragma("omp simd") for (int64_t r = 0; r < rows; r++) { moves }                           \
        return;                                                                                    \
    }

/* Other columns that are fewer than a block has: what a line of it reads beyond them is of the next
   rows, and is not stored. The rows after which there is not enough of these are left, and all of
   rows that go backwards, whose first has none behind it. */
#define LINES(size, turn)                                                                          \
    if (columns < size && from_step > 0)                                                           \
        for (; (first + size - 1) * from_step + size <= (rows - 1) * from_step + columns;          \
             first += size) {                                                                      \
            element turned[size * size];                                                           \
            PART(turn)(from + first * from_step, from_step, turned, size);                         \
            for (int64_t c = 0; c < columns; c++)                                                  \
                __builtin_memcpy(to + c * to_step + first, turned + c * size, size * BYTES);       \
        }

/* Blocks of one size; the last of each side begin so that they end where the side does. */
#define BLOCKS(size, turn)                                                                         \
    if (rows >= size && columns >= size) {                                                         \
        for (int64_t r = 0; r < rows; r += size)                                                   \
            for (int64_t c = 0; c < columns; c += size) {                                          \
                const int64_t row = r < rows - size ? r : rows - size;                             \
                const int64_t column = c < columns - size ? c : columns - size;                    \
                PART(turn)(from + row * from_step + column, from_step,                             \
                           to + column * to_step + row, to_step);                                  \
            }                                                                                      \
        return;                                                                                    \
    }
__attribute__((unused)) static void NAME(
    const void *source, int64_t from_step, void *target, int64_t to_step, int64_t rows,
    int64_t columns)
{
    typedef TYPE element __attribute__((may_alias));
    const element *from = source;
    element *to = target;
    int64_t first = 0;
#ifndef SQUARES
    PARTED(2, TO(0, 2) TO(1, 2))
    PARTED(3, TO(0, 3) TO(1, 3) TO(2, 3))
#endif
#ifdef BLOCK
    BLOCKS(BLOCK, block)
#endif
#ifdef SIDE
    BLOCKS(SIDE, square)
#endif
#ifdef SQUARES
#elif defined(SIDE)
    LINES(SIDE, square)
#elif defined(BLOCK)
    LINES(BLOCK, block)
#endif
#ifdef FEW_ROWS
    if (to_step == rows && PART(few_rows)(from, from_step, to, rows, columns))
        return;
#endif
    for (int64_t r = first; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * to_step + r] = from[r * from_step + c];
}
