/* Register tiles of packed rows and panels, and how a group of rows is covered by them. */
#include "product_steps.h"

#define TILE geon_high_2_along
#define LEFT ALONG
#define ROWS HIGH
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_high_1_along
#define LEFT ALONG
#define ROWS HIGH
#define WIDTH 1
#include "product_tile.h"

#define TILE geon_low_2_along
#define LEFT ALONG
#define ROWS LOW
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_low_1_along
#define LEFT ALONG
#define ROWS LOW
#define WIDTH 1
#include "product_tile.h"

#define TILE geon_high_2_beside
#define LEFT BESIDE
#define ROWS HIGH
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_high_1_beside
#define LEFT BESIDE
#define ROWS HIGH
#define WIDTH 1
#include "product_tile.h"

#define TILE geon_low_2_beside
#define LEFT BESIDE
#define ROWS LOW
#define WIDTH 2
#include "product_tile.h"

#define TILE geon_low_1_beside
#define LEFT BESIDE
#define ROWS LOW
#define WIDTH 1
#include "product_tile.h"

/* Tiles by whether rows lie beside each other, are many, and columns more than a vector. */
static void (*const geon_tile[2][2][2])(
    int64_t depth, const TYPE *restrict left, int64_t line, const TYPE *restrict right,
    int64_t step, TYPE *restrict out, int64_t out_step, int accumulate, int64_t chain,
    const TYPE *next, int64_t next_step) = {
    {{geon_low_1_along, geon_low_2_along}, {geon_high_1_along, geon_high_2_along}},
    {{geon_low_1_beside, geon_low_2_beside}, {geon_high_1_beside, geon_high_2_beside}},
};

/* What will be packed next, where that is known: so many lines of memory for each summed index. On
   the left these adjoin, or those of rows beside each other lie `left_step` elements apart. */
struct geon_next {
    const TYPE *left, *right;
    int64_t left_lines, right_lines, left_step;
};

/* All tiles of a group of packed rows against a block of panels. Rows stay near while they are
   multiplied by all panels, which the second cache holds: results are then written in longer runs.
   Of a larger block a panel stays near while all rows are multiplied by it. Meanwhile a line is
   fetched for every summed index: of the next panel where it is to come from afar, in two tiles if
   it has two lines, of what will be packed, else of the next panel all the same. Nothing else is,
   but the panel itself again: this panel, the next and the rows are what a first cache holds. */
static QUICK void geon_tiles(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t panel_step, int64_t step, TYPE *out, int64_t out_step,
    int accumulate, int64_t chain, int beside, struct geon_next next)
{
    const int64_t each = 64 / TYPE_BYTES * depth;
    const struct geon_stack stack = geon_stack(rows);
    const int64_t highs = stack.highs, down = highs + stack.lows;
    const int64_t across = (columns + PANEL - 1) / PANEL;
    const int by_rows = columns * depth <= MOST_COLUMNS * MOST_DEPTH;
    const int64_t outer = by_rows ? down : across, inner = by_rows ? across : down;
    int64_t fetched = 0;
    for (int64_t i = 0; i < outer; ++i) for (int64_t j = 0; j < inner; ++j) {
        const int64_t number = by_rows ? i : j, panel = by_rows ? j : i;
        const int high = number < highs;
        const int64_t row = high ? number * HIGH : highs * HIGH + (number - highs) * LOW;
        const int64_t column = panel * PANEL;
        const TYPE *a = left + row * line, *b = right + panel * panel_step;
        TYPE *c = out + row * out_step + column;
        const int64_t part = number * each;
        const TYPE *ahead = by_rows && each >= panel_step ? b + panel_step : b;
        int64_t ahead_step = 64 / TYPE_BYTES;
        if (part < panel_step && (!by_rows || fetched >= next.left_lines + next.right_lines))
            ahead = b + panel_step + part;
        else if (fetched < next.left_lines) {
            ahead = next.left + fetched++ * (beside ? ahead_step : each);
            ahead_step = next.left_step;
        } else if (fetched < next.left_lines + next.right_lines)
            ahead = next.right + (fetched++ - next.left_lines) * each;
        geon_tile[beside][high][columns - column > VECTOR](
            depth, a, line, b, step, c, out_step, accumulate, chain, ahead, ahead_step);
    }
}
