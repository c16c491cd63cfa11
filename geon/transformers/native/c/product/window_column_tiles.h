/* Register tiles whose columns are overlapping windows, read in place: each summed index has an
   offset, from which the same vectors are loaded. A tile has three vectors, as window extents are
   mostly odd. */

/* One tile: its operands and its part of the result. */
struct geon_placed_tile {
    int64_t depth, chain;
    const TYPE *const *places;
    const TYPE *left;
    int64_t offsets[3];
    TYPE *out;
    int64_t out_step;
    int accumulate;
};

#define PLACED_OFFSET(c, ...) const int64_t offset_##c = offsets[c];
#define PLACED_LOAD(c, ...) geon_vector b_##c = *(const geon_vector *)(place + offset_##c);
#define PLACED_MULTIPLY(r, ...)                                                                   \
    {                                                                                             \
        const TYPE x = left[r];                                                                   \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
        TILE_SHARED(WIDTH, a);                                                                    \
    }

#define TILE geon_placed_high_3
#define ROWS PLACED
#define WIDTH 3
#include "product/window_column_tile.h"

#define TILE geon_placed_high_2
#define ROWS PLACED
#define WIDTH 2
#include "product/window_column_tile.h"

#define TILE geon_placed_high_1
#define ROWS PLACED
#define WIDTH 1
#include "product/window_column_tile.h"

#if LOW < PLACED
#define TILE geon_placed_low_3
#define ROWS LOW
#define WIDTH 3
#include "product/window_column_tile.h"

#define TILE geon_placed_low_2
#define ROWS LOW
#define WIDTH 2
#include "product/window_column_tile.h"

#define TILE geon_placed_low_1
#define ROWS LOW
#define WIDTH 1
#include "product/window_column_tile.h"
#else
#define geon_placed_low_3 geon_placed_high_3
#define geon_placed_low_2 geon_placed_high_2
#define geon_placed_low_1 geon_placed_high_1
#endif

/* Tiles by whether rows are many, and by their vectors less one. */
static void (*const geon_placed_tile[2][3])(const struct geon_placed_tile *) = {
    {geon_placed_low_1, geon_placed_low_2, geon_placed_low_3},
    {geon_placed_high_1, geon_placed_high_2, geon_placed_high_3},
};

/* Rows stay near while they are multiplied by all columns: what these show overlaps, so that it is
   near as well. Four vectors are two pairs, as sums of a single one wait for each other. */
QUICK void TAG(geon_placed_tiles)(
    int64_t rows, int64_t columns, int64_t depth, int64_t chain, const TYPE *left,
    struct geon_placed right, TYPE *out, int64_t out_step, int accumulate)
{
    const struct geon_stack stack = geon_placed_stack(rows);
    const int64_t vectors = geon_blocks(columns, VECTOR);
    const int64_t filled = geon_blocks(right.run, VECTOR) * VECTOR;
    for (int64_t number = 0; number < stack.highs + stack.lows; ++number) {
        const int high = number < stack.highs;
        const int64_t row = high ? number * PLACED
            : stack.highs * PLACED + (number - stack.highs) * LOW;
        int64_t some;
        for (int64_t v = 0; v < vectors; v += some) {
            const int64_t rest = vectors - v;
            some = rest == 4 ? 2 : LEAST(rest, 3);
            struct geon_placed_tile tile = {depth, chain, right.places, left + row * depth, {0},
                                            out + row * out_step + v * VECTOR, out_step,
                                            accumulate};
            for (int64_t c = 0; c < some; ++c) {
                const int64_t column = right.start + (v + c) * VECTOR;
                tile.offsets[c] = right.runs[column / filled] + column % filled;
            }
            geon_placed_tile[high][some - 1](&tile);
        }
    }
}
