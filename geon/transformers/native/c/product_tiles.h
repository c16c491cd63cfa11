/* Register tiles: HIGH and LOW rows, one and two vectors wide. Rows lie ALONG lines of memory, or
   BESIDE each other, ROWS of them for each summed index. */
#define ALONG(along, beside) along
#define BESIDE(along, beside) beside

#define TILE_POINT(i, ...) at[i] = left + 3 * i * LEFT(line, 1);
#define TILE_ADVANCE(i, by) at[i] += by * LEFT(1, ROWS);
#define TILE_ROW(r, each) AGAIN(WIDTH, each, r)
#define TILE_OUT(c, r) *(geon_vector *)(out + r * out_step + c * VECTOR)
#define TILE_NEAR(c, r) __builtin_prefetch(out + r * out_step + c * VECTOR, 1);
#define TILE_CLEAR(c, r) geon_vector sum_##r##_##c = {0};
#define TILE_ADD(c, r) TILE_OUT(c, r) += sum_##r##_##c;
#define TILE_STORE(c, r) TILE_OUT(c, r) = sum_##r##_##c;
#define TILE_LOAD(c, k)                                                                           \
    geon_vector b_##c = *(const geon_vector *)(right + k * step + c * VECTOR);
#define TILE_HOLD(c, ...) HOLD(b_##c);
#define TILE_MULTIPLY(r, k)                                                                       \
    {                                                                                             \
        const TYPE x = at[r / 3][r % 3 * LEFT(line, 1) + k * LEFT(1, ROWS)];                      \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
        USED(a);                                                                                  \
    }
#define TILE_FMA(c, r) sum_##r##_##c = VECTOR_FMA(a, b_##c, sum_##r##_##c);
#define TILE_USED(c, ...) USED(b_##c);
#define TILE_STEP(u)                                                                              \
    __builtin_prefetch(next + u * LEFT(64 / TYPE_BYTES, next_step));                              \
    {                                                                                             \
        REPEAT(WIDTH, TILE_LOAD, u)                                                               \
        REPEAT(WIDTH, TILE_HOLD)                                                                  \
        REPEAT(ROWS, TILE_MULTIPLY, u)                                                            \
        REPEAT(WIDTH, TILE_USED)                                                                  \
    }

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

/* How many high tiles and then low ones some rows take: as few rows as cover them, of these as many
   high ones as can be. */
struct geon_stack {
    int64_t highs, lows;
};

static QUICK struct geon_stack geon_stack(int64_t rows)
{
    struct geon_stack best = {geon_blocks(rows, HIGH), 0};
    for (int64_t highs = best.highs - 1, least = best.highs * HIGH; highs >= 0; --highs) {
        const int64_t lows = geon_blocks(rows - highs * HIGH, LOW);
        if (highs * HIGH + lows * LOW < least) {
            least = highs * HIGH + lows * LOW;
            best = (struct geon_stack){highs, lows};
        }
        if (least == rows)
            break;
    }
    return best;
}

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
