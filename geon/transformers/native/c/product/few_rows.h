/* Products of few rows with a right operand that is read in place, unpacked. */

/* Streams: rows of the right operand lie in memory. They are read at STREAMS places side by side,
   each of which goes on through its part of the rows: a processor fetches ahead what adjoins, but
   not beyond a page, and so it does at several places. A block has EACH of its rows of a part. */
#define STREAMS 4
#define EACH(deep) ((deep) < STREAMS ? 1 : (deep) / STREAMS)
#define PLACE(k, deep) ((k) / EACH(deep) * part + (k) % EACH(deep))

/* Columns that fill no vector: */
static QUICK void geon_stream_end(
    int64_t rows, int64_t deep, int64_t width, const TYPE *a, int64_t line, const TYPE *b,
    int64_t step, int64_t part, TYPE *c, int64_t out_step)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t e = 0; e < width; ++e) {
            TYPE sum = a[r * line] * b[e];
            for (int64_t k = 1; k < deep; ++k)
                sum = SCALAR_FMA(a[r * line + PLACE(k, deep)], b[PLACE(k, deep) * step + e], sum);
            c[r * out_step + e] += sum;
        }
}

#define STREAM_LEFT(r, ...) AGAIN(DEEP, STREAM_SPLAT, r)
#define STREAM_SPLAT(k, r)                                                                        \
    const TYPE x_##r##_##k = a[r * line + PLACE(k, DEEP)];                                        \
    const geon_vector left_##r##_##k = SPLAT(x_##r##_##k);
#define STREAM_POINT(k, ...) const TYPE *row_##k = b + PLACE(k, DEEP) * step;
#define STREAM_LOAD(k, ...)                                                                       \
    geon_vector right_##k = *(const geon_vector *)(row_##k + column);                             \
    if (ROWS > 1)                                                                                 \
        HOLD(right_##k);
#define STREAM_FIRST(r, ...) geon_vector sum_##r = left_##r##_0 * right_0;
#define STREAM_MULTIPLY(k, ...) AGAIN(ROWS, STREAM_FMA, k)
#define STREAM_FMA(r, k)                                                                          \
    if (k > 0)                                                                                    \
        sum_##r = VECTOR_FMA(left_##r##_##k, right_##k, sum_##r);
#define STREAM_ADD(r, ...) *(geon_vector *)(c + r * out_step + column) += sum_##r;

/* Rows and summed indices at a time: their products stay in registers, as do the right rows. */
#if VECTOR * TYPE_BYTES == 64
#define STREAM geon_stream_4_4
#define ROWS 4
#define DEEP 4
#include "product/stream.h"

#define STREAM geon_stream_2_8
#define ROWS 2
#define DEEP 8
#include "product/stream.h"

#define STREAM geon_stream_1_8
#define ROWS 1
#define DEEP 8
#include "product/stream.h"
#else
#define STREAM geon_stream_2_4
#define ROWS 2
#define DEEP 4
#include "product/stream.h"

#define STREAM geon_stream_1_4
#define ROWS 1
#define DEEP 4
#include "product/stream.h"
#endif

#define STREAM geon_stream_1_1
#define ROWS 1
#define DEEP 1
#include "product/stream.h"

/* All rows, by the largest blocks that fit. A chunk of UNROLL rows on the right stays in the first
   cache while all rows on the left use it. */
#if VECTOR * TYPE_BYTES == 64
#define MOST 4
#define UNROLL 8
#else
#define MOST 2
#define UNROLL 4
#endif
QUICK void TAG(geon_stream)(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t step, TYPE *out, int64_t out_step, int accumulate)
{
    const int64_t whole = (columns + VECTOR - 1) / VECTOR * VECTOR;
    const int64_t blocks = depth / UNROLL, singles = depth % UNROLL, part = blocks * EACH(UNROLL);
    const int64_t chunk = rows > MOST ? 16384 / TYPE_BYTES / UNROLL : whole;
    if (!accumulate)
        for (int64_t row = 0; row < rows; ++row)
            __builtin_memset(out + row * out_step, 0, (size_t)whole * sizeof(TYPE));
    for (int64_t n = 0; n < blocks + singles; ++n) {
        const int single = n >= blocks;
        const int64_t k = single ? blocks * (UNROLL - 1) + n : n * EACH(UNROLL);
        const int64_t last = single ? k : k + (STREAMS - 1) * part + EACH(UNROLL) - 1;
        /* The last vector may reach over into a row that follows. */
        const int64_t end = (depth - 1 - last) * step >= VECTOR - 1 ? whole : columns;
        for (int64_t start = 0; start < end; start += chunk) {
            const int64_t width = end - start < chunk ? end - start : chunk;
            const TYPE *b = right + k * step + start;
            for (int64_t row = 0; row < rows;) {
                const TYPE *a = left + row * line + k;
                TYPE *c = out + row * out_step + start;
                if (single) {
                    geon_stream_1_1(width, a, line, b, step, 0, c, out_step);
                    row += 1;
#if UNROLL == 8
                } else if (rows - row >= 4) {
                    geon_stream_4_4(width, a, line, b, step, part, c, out_step);
                    geon_stream_4_4(width, a + 1, line, b + step, step, part, c, out_step);
                    row += 4;
                } else if (rows - row >= 2) {
                    geon_stream_2_8(width, a, line, b, step, part, c, out_step);
                    row += 2;
                } else {
                    geon_stream_1_8(width, a, line, b, step, part, c, out_step);
                    row += 1;
#else
                } else if (rows - row >= 2) {
                    geon_stream_2_4(width, a, line, b, step, part, c, out_step);
                    row += 2;
                } else {
                    geon_stream_1_4(width, a, line, b, step, part, c, out_step);
                    row += 1;
#endif
                }
            }
        }
    }
}

/* Dot products: columns of the right operand lie in memory. The sum of a vector's elements, and of
   what fills no vector: */
static QUICK void geon_dot_end(
    const geon_vector *sum, int64_t rest, const TYPE *a, const TYPE *b, TYPE *out, int accumulate)
{
    geon_vector part = *sum;
    TYPE total = 0;
#if VECTOR >= 16
    part += ROTATE(part, 8);
#endif
#if VECTOR >= 8
    part += ROTATE(part, 4);
#endif
#if VECTOR >= 4
    part += ROTATE(part, 2);
#endif
    part += ROTATE(part, 1);
    for (int64_t k = 0; k < rest; ++k)
        total = SCALAR_FMA(a[k], b[k], total);
    *out = (accumulate ? *out : 0) + (part[0] + total);
}

#define DOTS_ROW(r, ...) const TYPE *row_##r = a + r * line;
#define DOTS_SIDE(c, ...) const TYPE *side_##c = b + c * step;
#define DOTS_EACH(r, each) AGAIN(ACROSS, each, r)
#define DOTS_CLEAR(c, r) geon_vector sum_##r##_##c = {0};
#define DOTS_PART(c, r) sum_##r##_##c,
#define DOTS_LOAD(r, ...) geon_vector x_##r = *(const geon_vector *)(row_##r + k);
#define DOTS_HOLD(r, ...) HOLD(x_##r);
#define DOTS_MULTIPLY(c, ...)                                                                     \
    geon_vector y_##c = *(const geon_vector *)(side_##c + k);                                     \
    HOLD(y_##c);                                                                                  \
    AGAIN(ROWS, DOTS_FMA, c)
#define DOTS_FMA(r, c) sum_##r##_##c = VECTOR_FMA(x_##r, y_##c, sum_##r##_##c);

/* Blocks of rows and columns whose sums stay in registers. */
#if VECTOR * TYPE_BYTES == 64
#define DOTS geon_dots_4_4
#define ROWS 4
#define ACROSS 4
#include "product/dots.h"

#define DOTS geon_dots_4_2
#define ROWS 4
#define ACROSS 2
#include "product/dots.h"

#define DOTS geon_dots_4_1
#define ROWS 4
#define ACROSS 1
#include "product/dots.h"
#endif

#define DOTS geon_dots_2_4
#define ROWS 2
#define ACROSS 4
#include "product/dots.h"

#define DOTS geon_dots_2_2
#define ROWS 2
#define ACROSS 2
#include "product/dots.h"

#define DOTS geon_dots_2_1
#define ROWS 2
#define ACROSS 1
#include "product/dots.h"

/* One row reads all columns once: more of them at a time wait for memory together. */
#define DOTS geon_dots_1_8
#define ROWS 1
#define ACROSS 8
#include "product/dots.h"

#define DOTS geon_dots_1_4
#define ROWS 1
#define ACROSS 4
#include "product/dots.h"

#define DOTS geon_dots_1_2
#define ROWS 1
#define ACROSS 2
#include "product/dots.h"

#define DOTS geon_dots_1_1
#define ROWS 1
#define ACROSS 1
#include "product/dots.h"

#define DOTS_ROWS(rows)                                                                           \
    if (some == 4)                                                                                \
        geon_dots_##rows##_4(depth, a, line, b, step, c, out_step, accumulate);                   \
    else if (some == 2)                                                                           \
        geon_dots_##rows##_2(depth, a, line, b, step, c, out_step, accumulate);                   \
    else                                                                                          \
        geon_dots_##rows##_1(depth, a, line, b, step, c, out_step, accumulate);

/* All rows and columns, by the largest blocks that fit. */
QUICK void TAG(geon_dots)(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t step, TYPE *out, int64_t out_step, int accumulate)
{
    int64_t some, high;
    for (int64_t column = 0; column < columns; column += some) {
        const TYPE *b = right + column * step;
        if (rows == 1 && columns - column >= 8) {
            some = 8;
            geon_dots_1_8(depth, left, line, b, step, out + column, out_step, accumulate);
            continue;
        }
        some = columns - column >= 4 ? 4 : columns - column >= 2 ? 2 : 1;
        for (int64_t row = 0; row < rows; row += high) {
            const TYPE *a = left + row * line;
            TYPE *c = out + row * out_step + column;
            high = rows - row >= MOST ? MOST : rows - row >= 2 ? 2 : 1;
#if MOST == 4
            if (high == 4) {
                DOTS_ROWS(4)
                continue;
            }
#endif
            if (high == 2) {
                DOTS_ROWS(2)
            } else {
                DOTS_ROWS(1)
            }
        }
    }
}
