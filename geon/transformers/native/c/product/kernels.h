/* Declarations of the functions of `product/kernels.c` that the driver of products calls. */

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

/* What tiles read: places of rows, and where the runs of their summed indices are. */
struct geon_shown {
    const TYPE *const *rows;
    const int64_t *runs;
    int64_t run, skipped;
};

/* Panels of columns that lie so far apart, each with its summed indices so far apart, and what is read
   after the last of them. */
struct geon_panels {
    const TYPE *at, *then;
    int64_t panel_step, step;
};

/* All tiles of a group of windows against a block of panels. */
__attribute__((visibility("hidden"))) void TAG(geon_shown_tiles)(
    int64_t rows, int64_t columns, int64_t depth, struct geon_shown left, struct geon_panels right,
    TYPE *out, int64_t out_step, int accumulate);
/* Few rows against a right operand where it lies: whose rows lie in memory, */
__attribute__((visibility("hidden"))) void TAG(geon_stream)(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t step, TYPE *out, int64_t out_step, int accumulate);
/* and whose columns do. */
__attribute__((visibility("hidden"))) void TAG(geon_dots)(
    int64_t rows, int64_t columns, int64_t depth, const TYPE *left, int64_t line,
    const TYPE *right, int64_t step, TYPE *out, int64_t out_step, int accumulate);

/* The place of each of `count` rows of windows; what is shown beyond a border is brought `to` memory. */
__attribute__((visibility("hidden"))) void TAG(geon_places)(
    const struct TAG(geon_view) *view, int64_t batch, int64_t row_start, int64_t count, TYPE *to,
    const TYPE **rows);

/* Tiles of places, PLACED rows high and then LOW, that cover some rows. */
static QUICK struct geon_stack geon_placed_stack(int64_t rows)
{
    return (struct geon_stack){rows / PLACED, geon_blocks(rows % PLACED, LOW)};
}

/* Columns that are windows: the place of each summed index, and where from there the runs of columns
   begin, of `run` that adjoin. The first column is number `start`, where runs are filled up to vectors:
   what the last vector of a run reads beyond it is of no use. */
struct geon_placed {
    const TYPE *const *places;
    const int64_t *runs;
    int64_t run, start;
};

/* All tiles of a group of rows, which are packed beside each other, against such columns. */
__attribute__((visibility("hidden"))) void TAG(geon_placed_tiles)(
    int64_t rows, int64_t columns, int64_t depth, int64_t chain, const TYPE *left,
    struct geon_placed right, TYPE *out, int64_t out_step, int accumulate);
