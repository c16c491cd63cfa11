/* Register tiles whose rows are overlapping windows, read in place. A tile of one vector of columns
   has TALL rows: independent sums hide the latency, and each row's pointer is in a register. */

#include "product/tile_steps.h"

/* One tile: its operands, its part of the result, and what it prefetches. */
struct geon_shown_tile {
    int64_t depth;
    struct geon_shown left;
    struct geon_panels right;
    const char *next;
    int64_t next_step;
    TYPE *out;
    int64_t out_step;
    int accumulate;
};

#define SHOWN_POINT(r, ...) const TYPE *row_##r = rows[r] + *runs;
#define SHOWN_MULTIPLY(r, ...)                                                                    \
    {                                                                                             \
        const TYPE x = row_##r[k];                                                                \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
    }

#define SHOWN geon_shown_high_2
#define ROWS HIGH
#define WIDTH 2
#include "product/window_row_tile.h"

#define SHOWN geon_shown_low_2
#define ROWS LOW
#define WIDTH 2
#include "product/window_row_tile.h"

#define SHOWN geon_shown_tall_1
#define ROWS TALL
#define WIDTH 1
#include "product/window_row_tile.h"

#define SHOWN geon_shown_low_1
#define ROWS LOW
#define WIDTH 1
#include "product/window_row_tile.h"

/* Tiles by whether columns are one vector, and whether rows are many. */
static void (*const geon_shown_tile[2][2])(const struct geon_shown_tile *) = {
    {geon_shown_low_2, geon_shown_high_2},
    {geon_shown_low_1, geon_shown_tall_1},
};

/* All tiles of a group of windows against a block of panels. A panel stays near while it is
   multiplied by all rows, which share most of what they show; of the next one each tile prefetches a
   share to the second cache, so that panels which are read once come at an even rate. A multiple of
   LOW rows is covered by tiles of no more rows. */
QUICK void TAG(geon_shown_tiles)(
    int64_t rows, int64_t columns, int64_t depth, struct geon_shown left, struct geon_panels right,
    TYPE *out, int64_t out_step, int accumulate)
{
    const struct geon_stack stack = geon_stack(rows);
    const int64_t bytes = PANEL * TYPE_BYTES;
    struct geon_shown_tile tile = {depth, left, right, NULL, 0, out, out_step, accumulate};
    for (int64_t column = 0; column < columns; column += PANEL) {
        const int narrow = columns - column <= VECTOR, last = columns - column <= PANEL;
        const char *next = (const char *)(last ? right.then : tile.right.at + right.panel_step);
        int64_t height;
        for (int64_t row = 0; row < rows; row += height) {
            const int high = narrow ? rows - row + LOW > TALL : row < stack.highs * HIGH;
            height = !high ? LOW : narrow ? TALL : HIGH;
            tile.left.rows = left.rows + row;
            tile.out = out + row * out_step + column;
            tile.next = next + depth * row / rows * bytes;
            tile.next_step = LEAST(geon_blocks(height * bytes, rows), 64);
            geon_shown_tile[narrow][high](&tile);
        }
        tile.right.at += right.panel_step;
    }
}
