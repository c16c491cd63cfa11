/* Register tiles whose rows are overlapping windows, read in place. A tile of one vector of columns
   has TALL rows: independent sums hide the latency, and each row's pointer is in a register. */

#include "product/tile_steps.h"

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

/* All tiles of a group of windows against a block of panels. A panel stays near while it is
   multiplied by all rows, which share most of what they show. A multiple of LOW rows is covered by
   tiles of no more rows. */
QUICK void TAG(geon_shown_tiles)(
    int64_t rows, int64_t columns, int64_t depth, struct geon_shown left, const TYPE *right,
    int64_t panel_step, int64_t step, TYPE *out, int64_t out_step, int accumulate)
{
    const struct geon_stack stack = geon_stack(rows);
    for (int64_t column = 0; column < columns; column += PANEL, right += panel_step) {
        const int narrow = columns - column <= VECTOR;
        int64_t height;
        for (int64_t row = 0; row < rows; row += height) {
            const TYPE *const *at = left.rows + row;
            TYPE *c = out + row * out_step + column;
            const int high = narrow ? rows - row + LOW > TALL : row < stack.highs * HIGH;
            height = !high ? LOW : narrow ? TALL : HIGH;
            if (narrow && high)
                geon_shown_tall_1(depth, at, left.runs, left.run, left.skipped, right, step, c,
                                  out_step, accumulate);
            else if (narrow)
                geon_shown_low_1(depth, at, left.runs, left.run, left.skipped, right, step, c,
                                 out_step, accumulate);
            else if (high)
                geon_shown_high_2(depth, at, left.runs, left.run, left.skipped, right, step, c,
                                  out_step, accumulate);
            else
                geon_shown_low_2(depth, at, left.runs, left.run, left.skipped, right, step, c,
                                 out_step, accumulate);
        }
    }
}
