/* Register tiles: HIGH and LOW rows, one and two vectors wide. */

#define TILE_POINT(i, ...) at[i] = left + 3 * i * line;
#define TILE_ADVANCE(i, ...) ++at[i];
#define TILE_ROW(r, each) AGAIN(WIDTH, each, r)
#define TILE_OUT(c, r) *(geon_vector *)(out + r * out_step + c * VECTOR)
#define TILE_CLEAR(c, r) geon_vector sum_##r##_##c = {0};
#define TILE_ADD(c, r) TILE_OUT(c, r) += sum_##r##_##c;
#define TILE_STORE(c, r) TILE_OUT(c, r) = sum_##r##_##c;
#define TILE_LOAD(c, ...) geon_vector b_##c = *(const geon_vector *)(right + c * VECTOR);
#define TILE_HOLD(c, ...) HOLD(b_##c);
#define TILE_MULTIPLY(r, ...)                                                                     \
    {                                                                                             \
        const TYPE x = at[r / 3][r % 3 * line];                                                   \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
    }
#define TILE_FMA(c, r) sum_##r##_##c = VECTOR_FMA(a, b_##c, sum_##r##_##c);

#define TILE geon_high_2
#define ROWS HIGH
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_low_2
#define ROWS LOW
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_high_1
#define ROWS HIGH
#define WIDTH 1
#include "product_tile.h"

#define TILE geon_low_1
#define ROWS LOW
#define WIDTH 1
#include "product_tile.h"

/* What will be packed next. */
struct geon_next {
    const TYPE *left, *right;
    int64_t left_size, right_size;
};

/* All tiles of a group of packed rows against a block of panels. Meanwhile what will be packed next
   comes near: a line of each side for every summed index. */
static QUICK void geon_tiles(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t panel_step, int64_t step, TYPE *out, int64_t out_step,
    int accumulate, int64_t chain, struct geon_next next)
{
    const char *next_left = (const char *)next.left, *next_right = (const char *)next.right;
    const char *const left_end = next_left + next.left_size * TYPE_BYTES;
    const char *const right_end = next_right + next.right_size * TYPE_BYTES;
    for (int64_t row = 0; row < rows;) {
        const int high = rows - row > HIGH - LOW;
        const TYPE *a = left + row * line, *b = right;
        TYPE *c = out + row * out_step;
        for (int64_t column = 0; column < columns; column += PANEL, b += panel_step, c += PANEL) {
            if (columns - column > VECTOR) {
                if (high)
                    geon_high_2(depth, a, line, b, step, c, out_step, accumulate, chain, next_left,
                                next_right);
                else
                    geon_low_2(depth, a, line, b, step, c, out_step, accumulate, chain, next_left,
                               next_right);
            } else {
                if (high)
                    geon_high_1(depth, a, line, b, step, c, out_step, accumulate, chain, next_left,
                                next_right);
                else
                    geon_low_1(depth, a, line, b, step, c, out_step, accumulate, chain, next_left,
                               next_right);
            }
            next_left += 64 * depth;
            if (next_left >= left_end)
                next_left = (const char *)left;
            next_right += 64 * depth;
            if (next_right >= right_end)
                next_right = (const char *)left;
        }
        row += high ? HIGH : LOW;
    }
}
