/* Copies and transposes of operands into packed blocks. */

/* Rows shorter than a vector: their first and their last elements, which may be the same ones. */
#define COPY_ENDS(count)                                                                          \
    for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {                  \
        const TYPE *last = from + columns - (count);                                              \
        __builtin_memcpy(to, from, (count) * sizeof *to);                                         \
        __builtin_memcpy(to + columns - (count), last, (count) * sizeof *to);                     \
    }
static QUICK void geon_copy_short(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    if (columns >= 8)
        COPY_ENDS(8)
    else if (columns >= 4)
        COPY_ENDS(4)
    else if (columns >= 2)
        COPY_ENDS(2)
    else if (columns == 1)
        COPY_ENDS(1)
}

/* Lines without a gap are one; a whole panel's width goes without a loop over columns. */
QUICK void TAG(geon_copy)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    if (columns == to_step && columns == from_step) {
        columns *= rows;
        rows = 1;
    }
    if (columns == PANEL) {
        for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {
            *(geon_vector *)(to + 0) = *(const geon_vector *)(from + 0);
            *(geon_vector *)(to + VECTOR) = *(const geon_vector *)(from + VECTOR);
        }
        return;
    }
    if (columns < VECTOR) {
        geon_copy_short(to, to_step, from, from_step, rows, columns);
        return;
    }
    const int64_t end = columns - VECTOR;
    for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {
        for (int64_t column = 0; column < end; column += VECTOR)
            *(geon_vector *)(to + column) = *(const geon_vector *)(from + column);
        *(geon_vector *)(to + end) = *(const geon_vector *)(from + end);
    }
}

static QUICK void geon_transpose_end(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    for (int64_t c = 0; c < columns; ++c, to += to_step)
        for (int64_t r = 0; r < rows; ++r)
            to[r] = from[r * from_step + c];
}

/* Few columns that are a whole line of memory, and few rows that become one: vectors of lines in a
   row, taken apart or put together by shuffles of two at a time. */
#define FIRST(a, b) a
#define SECOND(a, b) b
#define LANE_APART(i, at) LANE_APART_OF(i, FIRST at, SECOND at)
#define LANE_APART_OF(i, c, j) LANE_MERGED(i, j, (c + FEW * (i)) / VECTOR, (c + FEW * (i)) % VECTOR)
#define LANE_TOGETHER(i, at) LANE_TOGETHER_OF(i, FIRST at, SECOND at)
#define LANE_TOGETHER_OF(i, c, j)                                                                 \
    LANE_MERGED(i, j, (VECTOR * c + (i)) % FEW, (VECTOR * c + (i)) / FEW)
/* Lane i after vectors 0 to j are merged, where it is `lane` of vector `of` in the end. */
#define LANE_MERGED(i, j, of, lane) ((of) == j ? VECTOR + (lane) : j > 1 ? (i) : (of) == 0 ? (lane) : 0)
#define MERGE(j, c, lanes)                                                                        \
    if (j > 0)                                                                                    \
        y_##c = __builtin_shufflevector(y_##c, x_##j, LANES(VECTOR, lanes, (c, j)));
#define APART_LOAD(i, ...) const geon_vector x_##i = *(const geon_vector *)(from + i * VECTOR);
#define APART_STORE(c, ...)                                                                       \
    geon_vector y_##c = x_0;                                                                      \
    AGAIN(FEW, MERGE, c, LANE_APART)                                                              \
    *(geon_vector *)(to + c * step) = y_##c;
#define TOGETHER_LOAD(i, ...) const geon_vector x_##i = *(const geon_vector *)(from + i * step);
#define TOGETHER_STORE(c, ...)                                                                    \
    geon_vector y_##c = x_0;                                                                      \
    AGAIN(FEW, MERGE, c, LANE_TOGETHER)                                                           \
    *(geon_vector *)(to + c * VECTOR) = y_##c;

#define FEW 2
#include "product/interleave.h"
#define FEW 3
#include "product/interleave.h"
#define FEW 4
#include "product/interleave.h"
#define FEW 5
#include "product/interleave.h"
#define FEW 6
#include "product/interleave.h"
#define FEW 7
#include "product/interleave.h"
#define FEW 8
#include "product/interleave.h"

#define FEW_CASE(few, direction, ...)                                                             \
    case few:                                                                                     \
        geon_##direction##_##few(__VA_ARGS__);                                                    \
        return 1;
#define FEW_CASES(...)                                                                            \
    FEW_CASE(2, __VA_ARGS__)                                                                      \
    FEW_CASE(3, __VA_ARGS__)                                                                      \
    FEW_CASE(4, __VA_ARGS__)                                                                      \
    FEW_CASE(5, __VA_ARGS__)                                                                      \
    FEW_CASE(6, __VA_ARGS__)                                                                      \
    FEW_CASE(7, __VA_ARGS__)                                                                      \
    FEW_CASE(8, __VA_ARGS__)

/* to[c][k] = from[k * few + c], for `count` lines of few elements; whether it is done. */
static QUICK int geon_take_apart(
    int64_t few, TYPE *restrict to, int64_t step, const TYPE *restrict from, int64_t count)
{
    switch (few) {
        FEW_CASES(apart, to, step, from, count)
    default:
        return 0;
    }
}

/* to[k * few + c] = from[c][k], for `count` lines of few elements; whether it is done. */
static QUICK int geon_put_together(
    int64_t few, TYPE *restrict to, const TYPE *restrict from, int64_t step, int64_t count)
{
    switch (few) {
        FEW_CASES(together, to, from, step, count)
    default:
        return 0;
    }
}

/* A square block of n = 2^s rows in registers is transposed by s perfect shuffles: each interleaves
   row i with row i + n/2, the low halves into row 2i and the high halves into row 2i + 1. Of fewer
   rows the first one takes the place of those that are missing, of fewer columns the others are
   not stored. */
#define LOAD_ROW(i, x)                                                                            \
    x[i] = *(const geon_vector *)(source + (rows > i ? i : 0) * from_step);
#define STORE_ROW(i, x)                                                                           \
    if (columns > i)                                                                              \
        *(geon_vector *)(target + i * to_step) = x[i];
#define SHUFFLE_ROW(i, x, y)                                                                      \
    y[2 * i] = INTERLEAVE(x[i], x[i + VECTOR / 2], 0);                                            \
    y[2 * i + 1] = INTERLEAVE(x[i], x[i + VECTOR / 2], VECTOR / 2);
#define SHUFFLE(x, y) REPEAT(HALF_VECTOR, SHUFFLE_ROW, x, y)
GEON_INLINE QUICK_INSIDE void geon_square(
    TYPE *restrict target, int64_t to_step, const TYPE *restrict source, int64_t from_step,
    int64_t rows, int64_t columns)
{
    geon_vector x[VECTOR], y[VECTOR];
    REPEAT(VECTOR, LOAD_ROW, x)
    SHUFFLE(x, y)
#if VECTOR == 2
    REPEAT(VECTOR, STORE_ROW, y)
#elif VECTOR == 4
    SHUFFLE(y, x)
    REPEAT(VECTOR, STORE_ROW, x)
#elif VECTOR == 8
    SHUFFLE(y, x)
    SHUFFLE(x, y)
    REPEAT(VECTOR, STORE_ROW, y)
#else
    SHUFFLE(y, x)
    SHUFFLE(x, y)
    SHUFFLE(y, x)
    REPEAT(VECTOR, STORE_ROW, x)
#endif
}

/* A block of fewer rows or columns than a vector has elements, in vectors where what these reach
   over is the operand's own, or will be overwritten. */
static QUICK void geon_square_part(
    TYPE *restrict target, int64_t to_step, const TYPE *restrict source, int64_t from_step,
    int64_t rows, int64_t columns)
{
    geon_square(target, to_step, source, from_step, rows, columns);
}

QUICK void TAG(geon_transpose)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    int64_t row = 0, first = 0;
    if (columns == from_step && geon_take_apart(columns, to, to_step, from, rows))
        row = rows / VECTOR * VECTOR;
    else if (rows == to_step && geon_put_together(rows, to, from, from_step, columns))
        first = columns / VECTOR * VECTOR;
    for (; row < rows; row += VECTOR)
        for (int64_t column = first; column < columns; column += VECTOR) {
            const TYPE *source = from + row * from_step + column;
            TYPE *target = to + column * to_step + row;
            const int64_t high = LEAST(rows - row, VECTOR), wide = LEAST(columns - column, VECTOR);
            const int full_rows = high == VECTOR
                || (rows == high && rows == to_step
                    && (columns - column - VECTOR) * to_step >= VECTOR);
            const int full_columns = wide == VECTOR
                || (rows - row - high) * from_step >= VECTOR;
            if (high == VECTOR && wide == VECTOR)
                geon_square(target, to_step, source, from_step, VECTOR, VECTOR);
            else if (high >= 4 && wide >= 4 && full_rows && full_columns)
                geon_square_part(target, to_step, source, from_step, high, wide);
            else
                geon_transpose_end(target, to_step, source, from_step, high, wide);
        }
}

QUICK void TAG(geon_clear)(TYPE *restrict to, int64_t to_step, int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; ++row, to += to_step)
        __builtin_memset(to, 0, (size_t)columns * sizeof *to);
}

QUICK void TAG(geon_line)(
    TYPE *restrict to, const TYPE *restrict from, int64_t offset, int64_t step, int64_t each,
    int64_t count, int64_t begin, int64_t end)
{
    begin = begin > 0 ? begin : 0;
    end = end < begin ? begin : LEAST(end, count);
    if (begin >= end) {
        __builtin_memset(to, 0, (size_t)(count * each) * sizeof *to);
        return;
    }
    __builtin_memset(to, 0, (size_t)(begin * each) * sizeof *to);
    TAG(geon_copy)(to + begin * each, each, from + offset + begin * step, step, end - begin, each);
    __builtin_memset(to + end * each, 0, (size_t)((count - end) * each) * sizeof *to);
}
