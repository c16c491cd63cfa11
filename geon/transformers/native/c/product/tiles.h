/* Register tiles of packed rows and panels, and the cover of a group of rows by tiles. */
#include "product/tile_steps.h"

/* Some tiles that are so far apart in the operands and the result, and what each fetches. */
struct geon_tile_row {
    int64_t count, depth, chain;
    const TYPE *left, *right, *next;
    TYPE *out;
    int64_t left_by, right_by, next_by, out_by;
    int64_t line, step, next_step, out_step;
    int accumulate;
};

#define TILE geon_high_2_along
#define LEFT ALONG
#define ROWS HIGH
#define WIDTH 2
#include "product/tile.h"

#define TILE geon_high_1_along
#define LEFT ALONG
#define ROWS HIGH
#define WIDTH 1
#include "product/tile.h"

#define TILE geon_low_2_along
#define LEFT ALONG
#define ROWS LOW
#define WIDTH 2
#include "product/tile.h"

#define TILE geon_low_1_along
#define LEFT ALONG
#define ROWS LOW
#define WIDTH 1
#include "product/tile.h"

#define TILE geon_high_2_beside
#define LEFT BESIDE
#define ROWS HIGH
#define WIDTH 2
#include "product/tile.h"

#define TILE geon_high_1_beside
#define LEFT BESIDE
#define ROWS HIGH
#define WIDTH 1
#include "product/tile.h"

#define TILE geon_low_2_beside
#define LEFT BESIDE
#define ROWS LOW
#define WIDTH 2
#include "product/tile.h"

#define TILE geon_low_1_beside
#define LEFT BESIDE
#define ROWS LOW
#define WIDTH 1
#include "product/tile.h"

/* Tiles by whether rows lie beside each other, are many, and columns more than a vector. */
static void (*const geon_tile[2][2][2])(const struct geon_tile_row *) = {
    {{geon_low_1_along, geon_low_2_along}, {geon_high_1_along, geon_high_2_along}},
    {{geon_low_1_beside, geon_low_2_beside}, {geon_high_1_beside, geon_high_2_beside}},
};

/* What will be packed next, where that is known: so many lines of memory for each summed index. On
   the left these adjoin, or those of rows beside each other lie `left_step` elements apart. */
struct geon_next {
    const TYPE *left, *right;
    int64_t left_lines, right_lines, left_step;
};

/* The operands of a group of rows and a block of panels. */
struct geon_tiled {
    struct geon_tile_row tiles; /* of the first tile */
    int64_t panel_step;
    struct geon_stack stack;
    int beside;
    struct geon_next next;
    int64_t fetched; /* lines of it */
};

/* Neighbouring tiles of one height and width, from a tile number and a panel on, in rows that fetch
   what adjoins: a line for every summed index of a tile. That is the next panel where it is to come
   from afar, in two tiles if it has two lines, what will be packed, else the next panel all the
   same. Nothing else is, but the panel itself again: this panel, the next and the rows are what a
   first cache holds. */
static QUICK void geon_neighbours(
    struct geon_tiled *of, int64_t number, int64_t panel, int64_t count, int down, int last,
    int wide)
{
    const int high = number < of->stack.highs;
    const int64_t row = high ? number * HIGH
        : of->stack.highs * HIGH + (number - of->stack.highs) * LOW;
    struct geon_tile_row tiles = of->tiles;
    const int64_t each = 64 / TYPE_BYTES * tiles.depth, panel_step = of->panel_step;
    tiles.left += row * tiles.line;
    tiles.right += panel * panel_step;
    tiles.out += row * tiles.out_step + panel * PANEL;
    tiles.left_by = down ? (high ? HIGH : LOW) * tiles.line : 0;
    tiles.right_by = down ? 0 : panel_step;
    tiles.out_by = down ? (high ? HIGH : LOW) * tiles.out_step : PANEL;
    while (count > 0) {
        const int64_t lefts = of->next.left_lines - of->fetched;
        const int64_t rights = lefts + of->next.right_lines;
        const int64_t part = number * each;
        const int panels = !last && part < panel_step && (down || rights <= 0);
        tiles.count = count;
        tiles.next_step = 64 / TYPE_BYTES;
        tiles.next = tiles.right + (!down && each >= panel_step ? panel_step : 0);
        tiles.next_by = tiles.right_by;
        if (panels) {
            tiles.next = tiles.right + panel_step + part;
            tiles.next_by = down ? each : panel_step;
            if (down)
                tiles.count = LEAST(count, geon_blocks(panel_step - part, each));
        } else if (lefts > 0) {
            tiles.next_by = of->beside ? tiles.next_step : each;
            tiles.next = of->next.left + of->fetched * tiles.next_by;
            tiles.next_step = of->next.left_step;
            tiles.count = LEAST(count, lefts);
        } else if (rights > 0) {
            tiles.next = of->next.right + (of->next.right_lines - rights) * each;
            tiles.next_by = each;
            tiles.count = LEAST(count, rights);
        }
        if (!panels && rights > 0)
            of->fetched += tiles.count;
        geon_tile[of->beside][high][wide](&tiles);
        tiles.left += tiles.count * tiles.left_by;
        tiles.right += tiles.count * tiles.right_by;
        tiles.out += tiles.count * tiles.out_by;
        number += down ? tiles.count : 0;
        count -= tiles.count;
    }
}

/* All tiles of a group of packed rows against a block of panels. Rows stay near while they are
   multiplied by all panels, which the second cache holds: results are then written in longer runs.
   Of a larger block a panel stays near while all rows are multiplied by it, as where it is the only
   one. */
static QUICK void geon_tiles(int64_t columns, struct geon_tiled *of)
{
    const int64_t highs = of->stack.highs, lows = of->stack.lows, down = highs + lows;
    const int64_t across = geon_blocks(columns, PANEL), depth = of->tiles.depth;
    const int whole = columns - (across - 1) * PANEL > VECTOR; /* the last panel, too */
    if (across > 1 && columns * depth <= MOST_COLUMNS * MOST_DEPTH) {
        for (int64_t number = 0; number < down; ++number) {
            geon_neighbours(of, number, 0, across - !whole, 0, 0, 1);
            if (!whole)
                geon_neighbours(of, number, across - 1, 1, 0, 1, 0);
        }
        return;
    }
    for (int64_t panel = 0; panel < across; ++panel) {
        const int last = panel == across - 1, wide = whole || !last;
        geon_neighbours(of, 0, panel, highs, 1, last, wide);
        geon_neighbours(of, highs, panel, lows, 1, last, wide);
    }
}
