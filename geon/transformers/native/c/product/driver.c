/* The driver that runs any product: divides it into tasks, packs operands, runs register tiles and
   stores the results.

   A product's own text fills in a `struct geon_product`: extents, operand layouts, and functions
   for what is specific to it: computed elements on packing, offsets of batches, and the epilogue of
   each element. Block sizes are macros, which `sizes/product_blocks.py` defines for each type and vector
   width. */

#include "product/tiles.h"
#include "product/block.h"

/* Where a block of rows begins: of all blocks some have one tile more than the others, at most. */
static QUICK int64_t geon_row_start(const struct geon_product_cut *s, int64_t rows, int64_t number)
{
    return geon_blocks(rows, ROW_STEP) * number / s->row_blocks * ROW_STEP;
}

/* Where the panels of a block lie in what is packed: batches, and in them blocks of summed indices,
   each with the panels of all columns. */
static QUICK TYPE *geon_packed_panels(
    const struct geon_product_run *run, const struct geon_block *block)
{
    const struct geon_packed *packed = &run->packed;
    const int64_t columns = (packed->end - packed->start + PANEL - 1) / PANEL * PANEL;
    return packed->at
        + ((block->batch - packed->batch) * run->product->depth + block->depth_start) * columns
        + (block->column_start - packed->start) * block->depth_run;
}

/* Packs one block of summed indices and columns of one batch. */
static QUICK void geon_pack_task(void *argument, int64_t index)
{
    const struct geon_product_run *run = argument;
    const geon_product *product = run->product;
    const struct geon_product_cut *cut = &run->cut;
    const struct geon_packed *packed = &run->packed;
    const int64_t deep = geon_blocks(product->depth, cut->depth_block);
    const int64_t wide = geon_blocks(packed->end - packed->start, cut->packed_block);
    int64_t offsets[3];
    struct geon_block block;
    block.batch = packed->batch + index / wide / deep;
    block.column_start = packed->start + index % wide * cut->packed_block;
    block.depth_start = index / wide % deep * cut->depth_block;
    block.width = LEAST(packed->end - block.column_start, cut->packed_block);
    block.depth_run = LEAST(product->depth - block.depth_start, cut->depth_block);
    geon_place(product, block.batch, offsets);
    block.columns_at = product->right.at + offsets[1];
    block.panels = geon_packed_panels(run, &block);
    block.staged = run->memory + geon_seat() * cut->packing;
    geon_pack_right(run, &block);
}

/* Packs so many batches of the columns that are to be packed. */
static QUICK void geon_pack(struct geon_product_run *run, int64_t batches, int32_t threads)
{
    const struct geon_product_cut *cut = &run->cut;
    const int64_t deep = geon_blocks(run->product->depth, cut->depth_block);
    const int64_t wide = geon_blocks(run->packed.end - run->packed.start, cut->packed_block);
    geon_pool_run(geon_pack_task, run, batches * deep * wide, threads);
}

/* The kept copy, made again if what it is of was written since. */
static QUICK void geon_keep(struct geon_product_run *run, int32_t threads)
{
    const geon_product *product = run->product;
    struct geon_kept *kept = product->kept;
    if (!kept || !kept->copy || run->sizes.direct || run->cut.parts > 1)
        return;
    run->packed.at = kept->copy;
    if (kept->seen != *kept->version) {
        geon_pack(run, product->batches, threads);
        kept->seen = *kept->version;
    }
}

/* One block of rows and columns of one batch: the summed index block by block. A right operand
   that is small and of whole vectors is read in place. */
static QUICK void geon_item(
    const struct geon_product_run *run, struct geon_block *block, int64_t item)
{
    const geon_product *product = run->product;
    const struct geon_product_cut *cut = &run->cut;
    const geon_operand *right = &product->right;
    const int64_t blocks = cut->row_blocks * cut->column_blocks, within = item % blocks;
    const int64_t row = cut->by_columns ? within % cut->row_blocks : within / cut->column_blocks;
    const int64_t column = cut->by_columns ? within / cut->row_blocks : within % cut->column_blocks;
    const int64_t number = item / blocks * cut->column_blocks + column;
    const struct geon_packed *packed = &run->packed;
    int64_t offsets[3];
    block->block_start = geon_row_start(cut, product->rows, row);
    block->column_start = packed->start + column * cut->column_block;
    block->batch = packed->batch + item / blocks % product->batches;
    block->part = item / blocks / product->batches;
    geon_place(product, block->batch, offsets);
    block->rows_at = product->left.at + offsets[0];
    block->columns_at = right->at + offsets[1];
    block->result = product->result + offsets[2];
    block->width = LEAST(packed->end - block->column_start, cut->column_block);
    block->block_end = LEAST(geon_row_start(cut, product->rows, row + 1), product->rows);
    block->depth_first = block->part * cut->part_depth;
    const int64_t depth = product->depth - block->depth_first;
    block->depth_last = block->depth_first + (depth < cut->part_depth ? depth : cut->part_depth);
    int64_t start = block->depth_first;
    if (run->cut.banded)
        geon_show(run, block);
    do {
        const int64_t left = block->depth_last - start;
        block->depth_start = start;
        block->depth_run = left < cut->depth_block ? left : cut->depth_block;
        if (packed->at)
            block->panels = geon_packed_panels(run, block);
        block->near = !run->sizes.direct && !run->sizes.placed && !packed->at && geon_is_plain(right)
            && right->line == 1 && block->width % VECTOR == 0
            && block->depth_run * right->summed * TYPE_BYTES <= NEAR;
        if (run->sizes.direct == BY_DOTS)
            geon_find_lines(run, block);
        else if (run->sizes.placed)
            geon_find_places(run, block);
        else if (!run->sizes.direct && !packed->at && !block->near && block->columns_packed != number)
            geon_pack_right(run, block);
        const int64_t rows = geon_group_rows(run, block);
        for (int64_t row = block->block_start; row < block->block_end; row += rows)
            geon_group(run, block, row, LEAST(block->block_end - row, rows));
        start += cut->depth_block;
    } while (start < block->depth_last);
    const int whole = block->depth_run == block->depth_last - block->depth_first;
    block->columns_packed = whole ? number : -1;
}

/* Some of a run's items, in the thread's part of the scratch memory. */
static QUICK void geon_product_task(void *argument, int64_t index)
{
    const struct geon_product_run *run = argument;
    const struct geon_product_cut *cut = &run->cut;
    struct geon_block block;
    /* A single task may be part of another kernel's, which has given it its own memory. */
    const int64_t seat = cut->tasks == 1 ? 0 : geon_seat();
    const int64_t panels = cut->left, sums = panels + cut->panels, totals = sums + cut->sums;
    TYPE *scratch = run->memory + seat * (totals + cut->totals + cut->staged);
    block.left = scratch;
    block.panels = scratch + panels;
    block.sums = scratch + sums;
    block.totals = (double *)(scratch + totals);
    block.staged = scratch + totals + cut->totals;
    block.columns_packed = -1;
    const int64_t last = cut->items * (index + 1) / cut->tasks;
    for (int64_t item = cut->items * index / cut->tasks; item < last; ++item)
        geon_item(run, &block, item);
}

/* All items, in tasks. */
static QUICK void geon_multiply(struct geon_product_run *run, int32_t threads)
{
    if (run->cut.tasks == 1)
        geon_product_task(run, 0);
    else
        geon_pool_run_short(geon_product_task, run, run->cut.tasks, threads, run->cut.duration);
}

/* A product whose right operand is packed for all rows together: some batches and columns, then
   the items that need them. */
static QUICK void geon_multiply_packed(struct geon_product_run *run, int32_t threads)
{
    const geon_product *product = run->product;
    struct geon_product_cut *cut = &run->cut;
    struct geon_packed *packed = &run->packed;
    const int64_t tasks = cut->tasks;
    const int32_t most = (int32_t)LEAST(threads, tasks); /* as many have memory to work in */
    packed->at = (TYPE *)product->scratch;
    run->memory += cut->first;
    for (; packed->batch < product->batches; packed->batch += cut->packed_batches) {
        const int64_t batches = LEAST(cut->packed_batches, product->batches - packed->batch);
        for (int64_t start = 0; start < product->columns; start += cut->packed_columns) {
            packed->start = start;
            packed->end = LEAST(start + cut->packed_columns, product->columns);
            geon_pack(run, batches, most);
            cut->column_blocks = geon_blocks(packed->end - start, cut->column_block);
            cut->items = batches * cut->row_blocks * cut->column_blocks;
            cut->tasks = LEAST(tasks, cut->items);
            geon_multiply(run, most);
        }
    }
}

/* The parts' sums added in order, in double, and stored. */
static QUICK void geon_add_parts(const struct geon_product_run *run, int64_t elements)
{
    const geon_product *product = run->product;
    const int64_t end = run->cut.parts * elements;
    TYPE *sums = run->part_sums;
    int64_t e = 0;
    for (; e + LANES_ADDED <= elements; e += LANES_ADDED) {
        geon_total total = {0};
        for (int64_t at = e; at < end; at += elements)
            total += __builtin_convertvector(*(const geon_added *)(sums + at), geon_total);
        *(geon_added *)(sums + e) = __builtin_convertvector(total, geon_added);
    }
    for (; e < elements; ++e) {
        double total = 0;
        for (int64_t at = e; at < end; at += elements)
            total += sums[at];
        sums[e] = (TYPE)total;
    }
    for (int64_t batch = 0; batch < product->batches; ++batch) {
        const TYPE *of_batch = sums + batch * product->rows * run->sizes.columns;
        int64_t offsets[3];
        geon_place(product, batch, offsets);
        geon_put_sums(run, product->result + offsets[2], batch, 0, product->rows, 0, run->sizes.columns,
                      of_batch, run->sizes.columns);
    }
}

/* The columns that sums of such a run have. */
static QUICK int64_t geon_columns(const geon_product *product, int placed)
{
    const int64_t run = product->right.run;
    return placed ? product->columns / run * geon_blocks(run, VECTOR) * VECTOR : product->columns;
}

/* How an operand lies in memory: 1 if its lines adjoin, 0 if its summed indices do, -1 if it is no
   plain memory. */
static QUICK int geon_adjoins(const geon_operand *operand)
{
    return geon_is_plain(operand) ? operand->line == 1 : -1;
}

/* The product with its way, which is chosen here where lengths are open; with its operands exchanged
   if its transpose is computed. */
static QUICK geon_product geon_planned(const geon_product *told)
{
    geon_product made = *told;
    if (!made.whole[1]) {
        made.whole[0] = made.batches;
        made.whole[1] = made.rows;
        made.whole[2] = made.columns;
    }
    const int64_t rows = made.whole[1], columns = made.whole[2], depth = made.depth;
    if (!made.way) {
        const int left = geon_adjoins(&made.left), right = geon_adjoins(&made.right);
        const int can = made.result && left >= 0 && right >= 0 && EXCHANGES(rows, columns);
        made.way = CHOSEN_WAY(rows, columns, depth, right);
        const enum geon_way other = CHOSEN_WAY(columns, rows, depth, left);
        if (can && made.way != GEON_THIN && other != GEON_TILES) {
            made.way = other;
            made.exchanged = 1;
        }
    }
    if (made.exchanged) {
        made.left = told->right;
        made.right = told->left;
        made.rows = told->columns;
        made.columns = told->rows;
        made.whole[1] = columns;
        made.whole[2] = rows;
        made.kept = NULL;
        made.turned = 1;
        made.across = !told->across;
    }
    return made;
}

QUICK void TAG(geon_product)(const geon_product *told, int32_t threads)
{
    const geon_product planned = geon_planned(told), *product = &planned;
    const int64_t batches = product->batches, rows = product->rows;
    if (batches <= 0 || rows <= 0 || product->columns <= 0)
        return;
    struct geon_product_run run;
    run.product = product;
    const geon_operand *left = &product->left, *right = &product->right;
    const enum geon_way way = product->way;
    const int keeps = product->kept && product->kept->copy, thin = way == GEON_THIN;
    const int direct = thin || (way == GEON_DOTS && !keeps) ? BY_DOTS
        : way == GEON_STREAM && !keeps ? BY_STREAM : BY_TILES;
    const int near = geon_is_plain(right) && right->line == 1 && product->columns % VECTOR == 0;
    const int placed = right->view && !direct && !keeps && !told->whole[1];
    const int64_t columns = geon_columns(product, placed);
    run.sizes = (struct geon_size_problem){
        .batches = batches, .rows = rows, .columns = columns, .own_columns = product->columns,
        .depth = product->depth, .whole_batches = product->whole[0],
        .whole_rows = product->whole[1], .whole_columns = product->whole[2],
        .direct = direct, .thin = thin, .alone = !told->whole[1], .keeps = keeps,
        .near_step = near ? GREATEST(right->summed, 1) : 0,
        .placed = placed, .places_size = right->band_size,
        .band_rows = left->view ? left->band_rows : 0, .band_size = left->band_size,
        .packs = left->pack || right->pack,
        .left_staged = left->staged, .right_staged = right->staged, .threads = threads,
    };
    run.cut = geon_cut_product(&run.sizes);
    run.packed = (struct geon_packed){NULL, 0, 0, columns};
    run.memory = (TYPE *)product->scratch;
    const int64_t elements = run.cut.parts > 1 ? batches * rows * columns : 0;
    TYPE part_sums[elements > 0 ? run.cut.parts * elements : 1];
    run.part_sums = elements > 0 ? part_sums : NULL;
    geon_keep(&run, threads);
    if (run.cut.packed_columns && !keeps)
        geon_multiply_packed(&run, threads);
    else {
        run.cut.tasks = LEAST(run.cut.tasks, run.cut.items);
        geon_multiply(&run, threads);
    }
    if (elements > 0)
        geon_add_parts(&run, elements);
}
