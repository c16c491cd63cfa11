/* The division of a product into blocks, items and tasks. */

/* Blocks of rows and columns, items (blocks of all batches and parts), and tasks, each of
   neighbouring items: of the same columns where the right operand is larger than all else, so
   that each thread reads and packs few of them, else of the same rows, since threads that write
   parts of the same rows take lines of cache from each other. Only `part_depth`, `depth_block` and
   `chain` enter results, and they follow from the sizes: what has few elements but long sums, or is
   a stream, is summed in parts. A block of a larger product goes by the sizes of the `whole` in
   this. Where sums are long, `chain` terms are added in their own type, and the rest in double. Of
   what is packed before the tasks that need it there are `packed_columns` of `packed_batches` at a
   time, 0 for none, and `packed_block` in a task. */
struct geon_cut {
    int64_t row_block, column_block, depth_block, row_blocks, column_blocks, items, tasks;
    int64_t parts, part_depth, chain;
    int64_t packed_batches, packed_columns, packed_block;
    int by_columns, is_long;
    int32_t duration;
};

/* The least block, a multiple of `step`, that cuts `total` into as few as blocks of `most` do. */
static QUICK int64_t geon_share(int64_t total, int64_t most, int64_t step)
{
    const int64_t parts = total > most ? (total + most - 1) / most : 1;
    const int64_t block = ((total + parts - 1) / parts + step - 1) / step * step;
    return block > 0 ? block : step;
}

/* Where a block of rows begins: of all blocks some have one tile more than the others, at most. */
static QUICK int64_t geon_row_start(const struct geon_cut *s, int64_t rows, int64_t number)
{
    return geon_blocks(rows, ROW_STEP) * number / s->row_blocks * ROW_STEP;
}

/* The most columns of a block: rows are packed once for each, so wide ones are better; what one
   thread would pack at a time is shared by all, but no block of a chain has as much. */
static QUICK int64_t geon_widest(int32_t threads)
{
    const int64_t share = PACKED_COLUMNS / (threads > 1 ? threads : 1) / PANEL * PANEL;
    return share > MOST_COLUMNS ? share : MOST_COLUMNS;
}

/* The panels that the thread with most of them has, where blocks are so many panels wide: whole ones
   first, then what is left of the columns, for `rows` blocks of rows each. */
static QUICK int64_t geon_longest(int64_t panels, int64_t block, int64_t rows, int32_t threads)
{
    const int64_t whole = rows * (panels / block), rest = panels % block;
    const int64_t idle = (threads - whole % threads) % threads, left = rest ? rows - idle : 0;
    return geon_blocks(whole, threads) * block + (left > 0 ? geon_blocks(left, threads) * rest : 0);
}

/* The columns of a block, of `most`, so that few blocks keep all threads as long: the widest of
   those blocks, since rows are packed for each. */
static QUICK int64_t geon_evened(int64_t columns, int64_t most, int64_t rows, int32_t threads)
{
    const int64_t panels = geon_blocks(columns, PANEL);
    int64_t best = LEAST(most / PANEL, panels);
    for (int64_t block = best - 1; block > 0; --block)
        if (geon_longest(panels, block, rows, threads) < geon_longest(panels, best, rows, threads))
            best = block;
    return best * PANEL;
}

/* The parts of sums of few elements: of long sums, and of a stream, so that tasks divide what it
   reads along memory. Parts of narrow rows are a piece of each page: two threads hardly read them
   faster than one does. Where there are many batches, tasks divide these. */
static QUICK int64_t geon_parts(const int64_t *whole, int64_t depth, int direct)
{
    const double elements = (double)whole[0] * (double)whole[1] * (double)whole[2];
    const double bytes = (double)whole[0] * (double)whole[2] * (double)depth * TYPE_BYTES;
    if (elements > FEW_ELEMENTS)
        return 1;
    int64_t parts = depth >= 16384 ? depth / 8192 : 1, most = MOST_PARTS;
    if (direct == 1) {
        most = LEAST(MOST_PARTS / whole[0], depth / PART_DEPTH);
        parts = bytes < (double)most * PART_BYTES ? (int64_t)(bytes / PART_BYTES) : most;
    }
    parts = LEAST(parts, most);
    return parts > 0 ? parts : 1;
}

static QUICK struct geon_cut geon_cut(
    int64_t batches, int64_t rows, int64_t columns, int64_t depth, const int64_t *whole, int direct,
    int thin, int alone, int32_t threads)
{
    struct geon_cut s;
    const int few = direct != 0;
    s.parts = geon_parts(whole, depth, direct);
    s.part_depth = ((depth + s.parts - 1) / s.parts + 7) / 8 * 8;
    s.is_long = direct == 1 ? s.part_depth > LONG_STREAM : depth > LONG_DEPTH;
    s.chain = s.is_long ? CHAIN : depth > 0 ? depth : 1;
    const int64_t wide = few ? DIRECT_COLUMN_BLOCKS(rows) * MOST_COLUMNS
        : alone ? geon_widest(threads) : MOST_COLUMNS;
    /* A stream waits for the rows that it reads, as long as a few of its own take. */
    const int64_t busy = direct == 1 && rows < STREAM_ROWS ? STREAM_ROWS : rows;
    const double work = (double)batches * (double)busy * (double)columns * (double)(depth + 4);
    s.duration = work < INT32_MAX ? (int32_t)work / WORK_RATE : INT32_MAX;
    /* Streams go through long runs; where one block has all columns, two threads share much work. */
    const int halves = columns <= MOST_COLUMNS && work > TASK_WORK;
    const int64_t least = direct != 1 ? WHOLE * PANEL : halves ? MOST_COLUMNS / 2 : MOST_COLUMNS;
    const int64_t wanted = threads > 1 && work > TASK_WORK / 2 ? 2 * (int64_t)threads : 1;
    int64_t row_block = geon_share(rows, MOST_ROWS, ROW_STEP);
    int64_t column_block = geon_share(columns, wide, PANEL);
    for (;;) {
        s.row_blocks = (rows + row_block - 1) / row_block;
        s.column_blocks = (columns + column_block - 1) / column_block;
        s.items = batches * s.row_blocks * s.column_blocks * s.parts;
        if (s.items >= wanted || work / (double)s.items < TASK_WORK / 2 || (direct == 1 && s.parts > 1))
            break;
        if (row_block > 96 && (row_block >= column_block || column_block <= least))
            row_block = geon_share(row_block, row_block / 2, ROW_STEP);
        else if (column_block > least)
            column_block = geon_share(column_block, column_block / 2, PANEL);
        else
            break;
    }
    if (!few && s.column_blocks > 1 && s.items < 2 * wanted) {
        const int64_t others = s.items / s.column_blocks;
        column_block = geon_evened(columns, wide, others, threads);
        s.column_blocks = geon_blocks(columns, column_block);
        s.items = others * s.column_blocks;
    }
    s.by_columns = (double)depth * (double)columns > (double)rows * (double)(depth + columns);
    s.row_block = row_block;
    s.column_block = column_block;
    const int64_t near = THIN_BYTES / TYPE_BYTES / (whole[1] + whole[2]) / VECTOR * VECTOR;
    const int64_t runs = few ? DIRECT_DEPTH_BLOCKS(whole[1]) : 1;
    const int64_t most = thin ? LEAST(VECTOR * CHAIN, near)
        : s.is_long && direct == 2 ? VECTOR * CHAIN
        : (direct == 2 ? LEAST(VECTOR, runs) : runs) * MOST_DEPTH;
    s.depth_block = geon_share(s.parts > 1 ? s.part_depth : depth, most, 8);
    s.tasks = wanted > 1 ? 4 * wanted : 1;
    if (work < TASK_WORK * (double)s.tasks)
        s.tasks = (int64_t)(work / TASK_WORK) + 1;
    s.packed_batches = batches;
    s.packed_columns = 0;
    s.packed_block = column_block;
    return s;
}

/* Cuts a product of so much work so that its right operand is packed once, by all threads, before the tasks
   that need it: some columns of it at all depths. Items are then groups of rows, which are packed
   once for all of these columns. One that is larger than all else is not: each thread packs and
   reads a part of it alone. Of what bands are multiplied by, however little the work is, there are
   few columns at a time where rows alone are tasks enough. Where a copy is kept all columns are
   there, and items of the same columns follow each other. */
static QUICK void geon_cut_packed(
    struct geon_cut *s, int64_t batches, int64_t rows, int64_t columns, int64_t depth,
    int bands, int keeps, int32_t threads)
{
    const double work = (double)rows * (double)columns * (double)depth;
    int64_t room = PACKED / (depth > 0 ? depth : 1) / PANEL * PANEL;
    if (s->by_columns || s->parts > 1 || s->is_long || rows <= GROUP || room < MOST_COLUMNS
            || (!bands && work < (double)PACKED_WORK))
        return;
    const int64_t wanted = threads > 1 ? 2 * (int64_t)threads : 1;
    if (bands && geon_blocks(rows, GROUP) >= wanted) {
        const int64_t few = BAND_PACKED / depth / PANEL * PANEL;
        room = few > 2 * PANEL ? few : 2 * PANEL;
    }
    s->packed_columns = geon_share(columns, LEAST(room, PACKED_COLUMNS), PANEL);
    s->packed_batches = s->packed_columns < columns ? 1 : LEAST(batches, room / s->packed_columns);
    s->row_block = geon_share(rows, GROUP, ROW_STEP);
    s->row_blocks = geon_blocks(rows, s->row_block);
    s->column_block = s->packed_columns;
    while (s->packed_batches * s->row_blocks * geon_blocks(s->packed_columns, s->column_block)
               < wanted
            && s->column_block >= 4 * PANEL)
        s->column_block = geon_share(s->column_block, s->column_block / 2, PANEL);
    s->packed_block = LEAST(s->column_block, 4 * PANEL);
    s->column_blocks = geon_blocks(columns, s->column_block);
    s->items = batches * s->row_blocks * s->column_blocks;
    s->by_columns = keeps;
}

/* Cuts a product whose rows are windows into bands of rows. Panels of all depths are read again for each
   band: where there are few columns at a time, the second cache holds these, and small bands divide
   the work more evenly. Threads have as many bands each. */
static QUICK void geon_cut_bands(
    struct geon_cut *s, int64_t batches, int64_t rows, int64_t most, int deep, int32_t threads)
{
    const int64_t block = !s->packed_columns ? s->row_block : deep ? GROUP : most;
    s->row_block = geon_share(rows, LEAST(block, most), ROW_STEP);
    s->row_blocks = geon_blocks(rows, s->row_block);
    const int64_t others = batches * s->column_blocks * s->parts, tiles = geon_blocks(rows, ROW_STEP);
    while (s->tasks > 1 && others * s->row_blocks % threads && s->row_blocks < tiles)
        ++s->row_blocks;
    s->items = others * s->row_blocks;
}
