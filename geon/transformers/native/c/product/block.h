/* Compute one block of a product: pack it, multiply groups of rows, store the sums. */

/* A part of the right operand that was packed before the tasks that use it: from `batch` on,
   columns from `start` to before `end`, at any depth. */
struct geon_packed {
    TYPE *at; /* NULL: each task packs what it needs */
    int64_t batch, start, end;
};

/* One run of a product, with its `sizes` and how these are divided (`sizes/product_cut.py`).
   `direct` multiplies few rows by the right operand where it lies: by streams of its rows, or by dot
   products with its columns, which are packed first where these are few too, `thin`, and do not lie
   so. Windows are read where they overlap: rows of a cut that is `banded`, in blocks of at most
   BAND rows, or columns of one that is `placed`, whose summed indices are places. `memory` is what
   tasks work in. */
struct geon_product_run {
    const geon_product *product;
    struct geon_size_problem sizes;
    struct geon_product_cut cut;
    TYPE *part_sums, *memory;
    struct geon_packed packed;
};

/* One block: its memory, where it is, and the operands of its batch. */
struct geon_block {
    TYPE *left, *panels, *sums, *staged, *result;
    double *totals; /* of a long product */
    const TYPE *rows_at, *columns_at;
    int64_t batch, part, column_start, width, block_start, block_end;
    int64_t depth_first, depth_last, depth_start, depth_run;
    int64_t columns_packed; /* the number of the columns whose panels are there; -1: none */
    int near;
    const TYPE *lines; /* columns whose elements adjoin, for dot products */
    int64_t line_step;
    const TYPE *shown[BAND + ROW_STEP];   /* the place of each row of windows */
    const TYPE *places[MOST_DEPTH]; /* of each summed index, where columns are windows */
};

/* Whether an operand is memory with one stride for its lines and one for its summed indices. */
static QUICK int geon_is_plain(const geon_operand *operand)
{
    return !operand->pack && !operand->view;
}

/* Offsets of a batch in the left and the right operand and the result. */
static QUICK void geon_place(const geon_product *product, int64_t batch, int64_t *offsets)
{
    offsets[0] = offsets[1] = offsets[2] = 0;
    if (!product->place)
        return;
    product->place(product->arguments, batch, offsets);
    if (product->turned) {
        const int64_t left = offsets[1];
        offsets[1] = offsets[0];
        offsets[0] = left;
    }
}

/* Tiles of ROWS rows that lie side by side in memory, from `first` on: side by side for each summed
   index. */
#define PACK_TILES(ROWS, first, count)                                                            \
    for (int64_t k = 0; k < depth; ++k)                                                           \
        for (int64_t tile = 0; tile < (count); ++tile)                                            \
            __builtin_memcpy(to + (first) * depth + (tile * depth + k) * (ROWS),                  \
                             from + k * from_step + (first) + tile * (ROWS),                      \
                             (ROWS) * sizeof *to);

/* Rows that lie side by side in memory, tile by tile; the last tile's missing rows are zeros. Tiles
   of places have a height of their own. */
static QUICK void geon_pack_beside(
    TYPE *restrict to, const TYPE *restrict from, int64_t from_step, int64_t depth, int64_t rows,
    int placed)
{
    const struct geon_stack stack = placed ? geon_placed_stack(rows) : geon_stack(rows);
    const int64_t high = placed ? PLACED : HIGH, highs = LEAST(stack.highs, rows / high);
    const int64_t lows = stack.highs == highs ? (rows - highs * high) / LOW : 0;
    const int64_t done = highs * high + lows * LOW, last = stack.highs == highs ? LOW : high;
    if (placed) {
        PACK_TILES(PLACED, 0, highs)
    } else {
        PACK_TILES(HIGH, 0, highs)
    }
    PACK_TILES(LOW, highs * high, lows)
    if (done < rows) {
        __builtin_memset(to + done * depth, 0, (size_t)(last * depth) * sizeof *to);
        TAG(geon_copy)(to + done * depth, last, from + done, from_step, depth, rows - done);
    }
}

static QUICK void geon_pack_left(
    const struct geon_product_run *run, const struct geon_block *block, int64_t row_start,
    int64_t height, int beside)
{
    const geon_operand *left = &run->product->left;
    const int64_t depth_start = block->depth_start, depth_run = block->depth_run;
    const TYPE *from = block->rows_at + row_start * left->line + depth_start * left->summed;
    if (beside) {
        geon_pack_beside(block->left, from, left->summed, depth_run, height, run->sizes.placed);
        return;
    }
    if (left->pack)
        left->pack(run->product->arguments, block->batch, row_start, height, depth_start, depth_run,
                   block->left, run->cut.left_step, block->staged);
    else if (left->summed == 1)
        TAG(geon_copy)(block->left, run->cut.left_step, from, left->line, height, depth_run);
    else
        TAG(geon_transpose)(block->left, run->cut.left_step, from, left->summed, depth_run, height);
    /* The last tile's missing rows, of zeros. */
    for (int64_t r = height; !run->sizes.direct && r % ROW_STEP; ++r)
        __builtin_memset(block->left + r * run->cut.left_step, 0, (size_t)depth_run * sizeof *from);
}

static QUICK void geon_pack_right(
    const struct geon_product_run *run, const struct geon_block *block)
{
    const geon_operand *right = &run->product->right;
    const int64_t depth_start = block->depth_start, depth_run = block->depth_run;
    if (right->pack) {
        right->pack(run->product->arguments, block->batch, block->column_start, block->width,
                    depth_start, depth_run, block->panels, run->cut.depth_block, block->staged);
        return;
    }
    const TYPE *from = block->columns_at + block->column_start * right->line
        + depth_start * right->summed;
    int64_t c = 0;
    if (right->line == 1) {
        /* All panels' parts of a row together: a row is one run of memory. */
        const int64_t whole = block->width / PANEL * PANEL;
        for (int64_t k = 0; k < depth_run; ++k)
            TAG(geon_copy)(block->panels + k * PANEL, PANEL * depth_run, from + k * right->summed,
                           PANEL, whole / PANEL, PANEL);
        c = whole;
    }
    for (; c < block->width; c += PANEL) {
        const int64_t some = block->width - c < PANEL ? block->width - c : PANEL;
        TYPE *panel = block->panels + c * depth_run;
        if (some < PANEL)
            __builtin_memset(panel, 0, (size_t)depth_run * PANEL * sizeof *panel);
        if (right->line == 1)
            TAG(geon_copy)(panel, PANEL, from + c, right->summed, depth_run, some);
        else
            TAG(geon_transpose)(panel, PANEL, from + c * right->line, right->line, some, depth_run);
    }
}

/* Brings what the block's rows show into a band; beyond them the last row is there again, for tiles
   that reach over it. */
static QUICK void geon_show(const struct geon_product_run *run, struct geon_block *block)
{
    const int64_t count = block->block_end - block->block_start;
    TAG(geon_places)(run->product->left.view, block->batch, block->block_start, count, block->left,
                     block->shown);
    for (int64_t r = count; r < count + ROW_STEP; ++r)
        block->shown[r] = block->shown[count - 1];
}

/* Brings what the block's summed indices show into memory, and finds the place of each. */
static QUICK void geon_find_places(const struct geon_product_run *run, struct geon_block *block)
{
    TAG(geon_places)(run->product->right.view, block->batch, block->depth_start, block->depth_run,
                     block->panels, block->places);
}

/* Columns as dot products read them: where they lie, or packed as rows are. */
static QUICK void geon_find_lines(const struct geon_product_run *run, struct geon_block *block)
{
    const geon_operand *right = &run->product->right;
    const TYPE *from = block->columns_at + block->column_start * right->line
        + block->depth_start * right->summed;
    if (geon_is_plain(right) && right->summed == 1) {
        block->lines = from;
        block->line_step = right->line;
        return;
    }
    block->lines = block->panels;
    block->line_step = run->cut.left_step;
    if (right->pack)
        right->pack_lines(run->product->arguments, block->batch, block->column_start, block->width,
                          block->depth_start, block->depth_run, block->panels, run->cut.left_step,
                          block->staged);
    else
        TAG(geon_transpose)(block->panels, run->cut.left_step, from, right->summed, block->depth_run,
                            block->width);
}

/* How many lines of memory so many elements fill. */
static QUICK int64_t geon_lines_of(int64_t elements)
{
    return geon_blocks(elements * TYPE_BYTES, 64);
}

/* What lies in memory behind the blocks at hand, where that may be what is packed next; rows beside
   each other are those of the next group, or of the first one for the next summed indices. */
static QUICK struct geon_next geon_find_next(
    const struct geon_product_run *run, const struct geon_block *block, int64_t row_start,
    int64_t height, int beside)
{
    const geon_product *product = run->product;
    const int64_t depth = product->depth, columns = product->columns;
    const int64_t rows = block->block_end - block->block_start, row_end = row_start + height;
    const int64_t depth_end = block->depth_start + block->depth_run;
    const int last = row_end >= block->block_end;
    struct geon_next next = {block->left, block->left, 0, 0, 64 / TYPE_BYTES};
    if (beside && !(last && depth_end >= block->depth_last)) {
        next.left = block->rows_at + (last ? block->block_start : row_end)
            + (last ? depth_end : block->depth_start) * product->left.summed;
        next.left_lines = geon_lines_of(height);
        next.left_step = product->left.summed;
    } else if (!beside && product->left.whole && block->depth_run == depth) {
        next.left = block->rows_at + row_end * depth;
        next.left_lines = geon_lines_of(height);
    }
    if (product->right.whole && block->depth_run == depth && product->batches > 1
            && block->width == columns) {
        next.right_lines = geon_lines_of(columns * height / rows);
        next.right = block->columns_at + depth * columns
            + depth * columns * (row_start - block->block_start) / rows;
    }
    return next;
}

/* Sums and totals of so many neighbours. */
#define LANES_ADDED (VECTOR / 2)
typedef TYPE geon_added
    __attribute__((vector_size(LANES_ADDED * TYPE_BYTES), aligned(TYPE_BYTES), may_alias));
typedef double geon_total __attribute__((vector_size(LANES_ADDED * sizeof(double))));
typedef double geon_totals __attribute__((
    vector_size(LANES_ADDED * sizeof(double)), aligned(sizeof(double)), may_alias));

/* The sums of some summed indices of a long product added to the totals of those before; after the
   last of all, the totals are the sums. */
static QUICK void geon_add(
    const struct geon_product_run *run, const struct geon_block *block, int64_t row_start,
    int64_t height, int64_t depth_start, int64_t depth_run, TYPE *out)
{
    const int first = depth_start == block->depth_first;
    const int last = depth_start + depth_run >= block->depth_last;
    double *totals = block->totals + (row_start - block->block_start) * run->cut.sums_step;
    for (int64_t r = 0; r < height; ++r, out += run->cut.sums_step, totals += run->cut.sums_step) {
        int64_t c = 0;
        for (; c + LANES_ADDED <= block->width; c += LANES_ADDED) {
            geon_total total = __builtin_convertvector(*(const geon_added *)(out + c), geon_total);
            if (!first)
                total += *(const geon_totals *)(totals + c);
            if (last)
                *(geon_added *)(out + c) = __builtin_convertvector(total, geon_added);
            else
                *(geon_totals *)(totals + c) = total;
        }
        for (; c < block->width; ++c) {
            totals[c] = first ? out[c] : totals[c] + out[c];
            if (last)
                out[c] = (TYPE)totals[c];
        }
    }
}

/* Sums written to the memory of the result. */
static QUICK void geon_write(
    const geon_product *product, TYPE *result, int64_t row, int64_t height, int64_t column,
    int64_t width, const TYPE *out, int64_t sums_step)
{
    const int64_t line = product->result_line;
    if (product->across)
        TAG(geon_transpose)(result + column * line + row, line, out, sums_step, height, width);
    else
        TAG(geon_copy)(result + row * line + column, line, out, sums_step, height, width);
}

/* Sums turned, so that rows adjoin, and handed to the product's own function, which takes a column of
   the product for a row: some at a time, all rows together where they are fewer than a vector. */
static QUICK void geon_store_across(
    const geon_product *product, int64_t batch, int64_t row_start, int64_t height, int64_t column,
    int64_t width, const TYPE *out, int64_t out_step)
{
    TYPE lines[HANDED * HANDED];
    for (int64_t r = 0; r < height; r += HANDED)
        for (int64_t c = 0; c < width; c += HANDED) {
            const int64_t rows = LEAST(height - r, HANDED);
            const int64_t columns = LEAST(width - c, HANDED);
            TAG(geon_transpose)(lines, rows, out + r * out_step + c, out_step, rows, columns);
            product->store(product->arguments, batch, column + c, columns, row_start + r, rows,
                           lines, rows);
        }
}

/* Sums put where the product's own columns are: written, or handed to its own function. */
static QUICK void geon_put_own(
    const geon_product *product, TYPE *result, int64_t batch, int64_t row_start, int64_t height,
    int64_t column, int64_t width, const TYPE *out, int64_t out_step)
{
    if (product->result)
        geon_write(product, result, row_start, height, column, width, out, out_step);
    else if (product->across)
        geon_store_across(product, batch, row_start, height, column, width, out, out_step);
    else
        product->store(product->arguments, batch, row_start, height, column, width, out, out_step);
}

/* The same of columns as sums have them, run by run where these are filled up. */
static QUICK void geon_put_sums(
    const struct geon_product_run *run, TYPE *result, int64_t batch, int64_t row_start,
    int64_t height, int64_t column, int64_t width, const TYPE *out, int64_t out_step)
{
    const geon_product *product = run->product;
    if (run->sizes.columns == product->columns) {
        geon_put_own(product, result, batch, row_start, height, column, width, out, out_step);
        return;
    }
    const int64_t each = product->right.run, filled = geon_blocks(each, VECTOR) * VECTOR;
    int64_t some;
    for (int64_t c = 0; c < width; c += some) {
        const int64_t within = (column + c) % filled;
        const int64_t rest = each - within, own = (column + c) / filled * each + within;
        some = LEAST(filled - within, width - c);
        if (rest > 0)
            geon_put_own(product, result, batch, row_start, height, own, LEAST(rest, some),
                         out + c, out_step);
    }
}

/* The group's sums put by as its part's, or put to where they belong; the product's own function is
   given few columns without a gap between rows. */
static QUICK void geon_put(
    const struct geon_product_run *run, const struct geon_block *block, int64_t row_start,
    int64_t height, TYPE *out, int64_t out_step)
{
    const geon_product *product = run->product;
    const int64_t columns = run->sizes.columns;
    if (columns < VECTOR && out_step != columns) {
        for (int64_t r = 1; r < height; ++r)
            for (int64_t c = 0; c < columns; ++c)
                out[r * columns + c] = out[r * out_step + c];
        out_step = columns;
    }
    if (run->part_sums)
        TAG(geon_copy)(run->part_sums + ((block->part * product->batches + block->batch)
                                         * product->rows + row_start) * columns
                           + block->column_start,
                       columns, out, out_step, height, block->width);
    else
        geon_put_sums(run, block->result, block->batch, row_start, height, block->column_start,
                      block->width, out, out_step);
}

/* Whether rows that tiles cover are read in place: they lie close, and columns are few. */
static QUICK int geon_rows_near(
    const struct geon_product_run *run, const struct geon_block *block, int whole)
{
    const geon_operand *left = &run->product->left;
    return !run->cut.banded && !run->sizes.placed && geon_is_plain(left) && left->summed == 1
        && (run->sizes.thin || (whole && block->width <= NARROW * PANEL
                          && left->line * GROUP * TYPE_BYTES <= NEAR));
}

/* Whether tiles that are whole write the result themselves. */
static QUICK int geon_straight(
    const struct geon_product_run *run, const struct geon_block *block, int whole)
{
    const geon_product *product = run->product;
    return whole && product->result && !product->across && !run->part_sums && !run->cut.is_long
        && run->sizes.columns == product->columns && block->width % VECTOR == 0;
}

/* The rows of a group: all of a block where nothing is packed, or put by, for a group of them, and
   each tile of rows is done with before the next. */
static QUICK int64_t geon_group_rows(
    const struct geon_product_run *run, const struct geon_block *block)
{
    const int64_t rows = block->block_end - block->block_start;
    const int whole = !run->sizes.direct && !run->cut.banded && rows % LOW == 0
        && (block->width <= PANEL || block->width * block->depth_run <= MOST_COLUMNS * MOST_DEPTH);
    return geon_rows_near(run, block, whole) && geon_straight(run, block, whole) ? rows : GROUP;
}

/* The packed panels of the block's columns at the next summed indices. */
static QUICK const TYPE *geon_then(
    const struct geon_product_run *run, const struct geon_block *block)
{
    const struct geon_packed *packed = &run->packed;
    const int64_t columns = geon_blocks(packed->end - packed->start, PANEL) * PANEL;
    const int64_t before = block->column_start - packed->start, depth = block->depth_run;
    const int64_t left = block->depth_last - block->depth_start - depth;
    return packed->at ? block->panels + (columns - before) * depth + before * LEAST(left, depth)
                      : block->panels;
}

/* One group of rows: packed, multiplied, and stored after the last summed block. */
static QUICK void geon_group(
    const struct geon_product_run *run, const struct geon_block *block, int64_t row_start,
    int64_t height)
{
    const geon_product *product = run->product;
    const geon_operand *left = &product->left, *right = &product->right;
    const int64_t width = block->width, depth_run = block->depth_run;
    const int more = !run->cut.is_long && block->depth_start > block->depth_first;
    const struct geon_stack stack = geon_stack(height);
    const int covered = run->cut.banded || run->sizes.placed
        ? height % LOW == 0
        : stack.highs * HIGH + stack.lows * LOW == height;
    const int whole = !run->sizes.direct && covered;
    const int near_rows = geon_rows_near(run, block, whole);
    const TYPE *rows = near_rows
        ? block->rows_at + row_start * left->line + block->depth_start : block->left;
    const int beside = !near_rows && !run->sizes.direct && !run->cut.banded && geon_is_plain(left)
        && left->summed != 1;
    const int64_t row_step = near_rows ? left->line : beside ? depth_run : run->cut.left_step;
    const int straight = geon_straight(run, block, whole);
    TYPE *out = straight
        ? block->result + row_start * product->result_line + block->column_start
        : block->sums + (product->depth > run->cut.depth_block
                             ? (row_start - block->block_start) * run->cut.sums_step : 0);
    /* Tiles of few columns reach over into the next row, which is written after them. */
    const int dense = !run->sizes.direct && product->columns < VECTOR
        && product->depth <= run->cut.chain && product->depth <= run->cut.depth_block;
    const int64_t out_step = straight ? product->result_line
        : dense ? product->columns : run->cut.sums_step;
    const TYPE *in_place = block->columns_at + block->column_start * right->line
        + block->depth_start * right->summed;
    const struct geon_panels panels = block->near
        ? (struct geon_panels){in_place, in_place, PANEL, right->summed}
        : (struct geon_panels){block->panels, geon_then(run, block), PANEL * depth_run, PANEL};
    if (!near_rows && !run->cut.banded)
        geon_pack_left(run, block, row_start, height, beside);
    if (run->sizes.direct == BY_STREAM) {
        const int64_t chain = run->cut.is_long ? CHAIN * STREAMED : run->cut.depth_block;
        for (int64_t k = 0; k == 0 || k < depth_run; k += chain) {
            const int64_t deep = depth_run - k < chain ? depth_run - k : chain;
            TAG(geon_stream)(height, width, deep, block->left + k, run->cut.left_step,
                             in_place + k * right->summed, right->summed, out, out_step, more);
            if (run->cut.is_long)
                geon_add(run, block, row_start, height, block->depth_start + k, deep, out);
        }
    } else if (run->sizes.direct == BY_DOTS)
        TAG(geon_dots)(height, width, depth_run, rows, row_step, block->lines, block->line_step,
                       out, out_step, more);
    else if (run->cut.banded)
        TAG(geon_shown_tiles)(height, width, depth_run,
                              (struct geon_shown){block->shown + (row_start - block->block_start),
                                                  left->runs + block->depth_start / left->run,
                                                  left->run, block->depth_start % left->run},
                              panels, out, out_step, more);
    else if (run->sizes.placed)
        TAG(geon_placed_tiles)(height, width, depth_run, run->cut.chain, block->left,
                               (struct geon_placed){block->places, right->runs, right->run,
                                                    block->column_start},
                               out, out_step, more);
    else {
        /* Of few terms: the next tile is multiplied while the results of one are written. */
        const int lowered = depth_run <= LOWERED && width > VECTOR && !beside && height % LOW == 0;
        struct geon_tiled tiled = {
            .tiles = {.depth = depth_run, .chain = run->cut.chain, .left = rows, .out = out,
                      .right = panels.at, .line = row_step, .step = panels.step,
                      .out_step = out_step, .accumulate = more},
            .panel_step = panels.panel_step,
            .stack = lowered ? (struct geon_stack){0, height / LOW} : stack,
            .beside = beside,
            .next = geon_find_next(run, block, row_start, height, beside),
        };
        geon_tiles(width, &tiled);
    }
    if (run->cut.is_long && run->sizes.direct != BY_STREAM)
        geon_add(run, block, row_start, height, block->depth_start, depth_run, out);
    if (!straight && block->depth_start + depth_run >= block->depth_last)
        geon_put(run, block, row_start, height, out, out_step);
}
