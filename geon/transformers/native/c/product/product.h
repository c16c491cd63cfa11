/* The functions that all products of a TYPE share, and what a product's own text tells them;
   TAG(name) is the name with the type. */

#ifndef GEON_BAND
#define GEON_BAND
/* How a product is computed: by register tiles; few rows along columns that are side by side; few
   rows by dot products with columns in memory; few rows and columns by dot products along lines of
   both. An open way is chosen in each call. */
enum geon_way { GEON_OPEN_WAY, GEON_TILES, GEON_STREAM, GEON_DOTS, GEON_THIN };
/* Which positions along an axis are inside, as the first row sees them, from `low` to before `high`;
   each row goes on by `step` of them, and where rows are positions these may be some `apart`. */
struct geon_inside {
    int64_t low, high, step, apart;
};
/* What some rows show, copied: lines, `line` elements apart, of positions of `each` elements, which lie
   `far` apart in the operand. A row goes on by `step` positions and reaches over `span` of them, and
   over `height` lines, which lie `down_far` apart; of the next index of loop `down` they begin
   `down_step` below, 0 where there is no such loop. A line has `count` planes, one for each index of
   `planes` loops, which are outside where one of the `guards` does not hold. */
struct geon_band {
    int64_t line, each, far, step, span, height, down, down_step, down_far;
    struct geon_inside across, below;
    int64_t planes, count;
    const int64_t *plane_extents, *plane_strides;
    int64_t guards;
    const int64_t *guard;
};
#endif
/* Rows in memory: so many loops of `batches` and then of rows, their `extents` and `strides`, the last
   one innermost; without a `band` each row lies in the operand. */
struct TAG(geon_view) {
    const TYPE *from;
    int64_t batches, loops;
    const int64_t *extents, *strides;
    const struct geon_band *band;
};

/* An operand in memory: its first element, and the distances of its lines (rows on the left,
   columns on the right) and of its summed indices, one of which is 1. `whole` says that lines and
   summed indices together are one run. Else `pack` writes the lines from `start` and the summed
   indices from `depth_start`; it works in `staged`, of so many elements per summed index and one
   per column. `pack_lines` writes columns of a right operand as rows of a left one are written.
   Windows have a `view`: what up to `band_rows` show is copied into `band_size` elements, where there
   is a border, and each row has a place there or in the operand. From there a row's summed indices
   are so many `runs`, of `run` elements that adjoin, at these offsets. On the right rows are summed
   indices, and these are columns. What is always read so has no `pack`. */
struct TAG(geon_operand) {
    const TYPE *at;
    int64_t line, summed;
    int whole;
    int64_t staged;
    void (*pack)(const void *arguments, int64_t batch, int64_t start, int64_t count,
                 int64_t depth_start, int64_t depth_run, TYPE *to, int64_t step, TYPE *staged);
    void (*pack_lines)(const void *arguments, int64_t batch, int64_t start, int64_t count,
                       int64_t depth_start, int64_t depth_run, TYPE *to, int64_t step,
                       TYPE *staged);
    const struct TAG(geon_view) *view;
    int64_t band_rows, band_size, run;
    const int64_t *runs;
};
/* `place` gives the offsets of a batch in the left and the right operand and the result; without
   it there is one batch. `result` is memory that has the sums as they are, rows `result_line`
   apart; else `store` does something with them. `kept` is a copy of the right operand, packed as
   a whole, or NULL. One that is `turned` has its operands exchanged. A result that is `across` has
   columns `result_line` apart, and rows adjoin; a `store` is then given columns for rows. `scratch`
   is memory to work in, a part for each thread (`scratch.ProductScratch`). What is a block of a
   larger product has that one's batches, rows and columns in `whole`, so that its sums are taken in
   the same order. Where lengths are known, `way` says how the product is computed, and `exchanged`
   that it is the transposed one (`sizes/product_plan.py`). */
struct TAG(geon_product) {
    int64_t batches, rows, columns, depth;
    struct TAG(geon_operand) left, right;
    TYPE *result;
    int64_t result_line;
    void (*place)(const void *arguments, int64_t batch, int64_t *offsets);
    void (*store)(const void *arguments, int64_t batch, int64_t row_start, int64_t height,
                  int64_t column_start, int64_t width, const TYPE *out, int64_t sums_step);
    const void *arguments;
    char *scratch;
    struct geon_kept *kept;
    int turned, across, exchanged;
    enum geon_way way;
    int64_t whole[3];
};

/* Any product: cut into tasks, packed, multiplied by tiles, and stored. */
__attribute__((visibility("hidden"))) void TAG(geon_product)(
    const struct TAG(geon_product) *told, int32_t threads);
/* Rows copied from one leading dimension to another. */
__attribute__((visibility("hidden"))) void TAG(geon_copy)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns);
/* Rows of zeros. */
__attribute__((visibility("hidden"))) void TAG(geon_clear)(
    TYPE *restrict to, int64_t to_step, int64_t rows, int64_t columns);
/* A line of a band: `count` positions of `each` elements, which lie `step` apart from `offset` on.
   Those before `begin` and from `end` on are 0. */
__attribute__((visibility("hidden"))) void TAG(geon_line)(
    TYPE *restrict to, const TYPE *restrict from, int64_t offset, int64_t step, int64_t each,
    int64_t count, int64_t begin, int64_t end);
/* to[column][row] = from[row][column]. */
__attribute__((visibility("hidden"))) void TAG(geon_transpose)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns);
