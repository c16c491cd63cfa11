"""The C function that runs any product: cut into tasks, packed, multiplied by tiles, and stored.

A product's own text fills in a ``struct geon_product``: extents, how the operands lie, and
functions of its own for what the driver cannot know: elements computed while they are packed,
offsets of batches, and what is done to each element when it is stored.
"""

from .product_shape import FEW, GROUP, NARROW, NEAR, Shape
from .product_tiles import heights


def cut_text(of: Shape) -> str:
    """How a product is cut up."""
    tag = of.tag
    return f"""\
/* Blocks of rows and columns, items (blocks of all batches and parts), and tasks, each of
   neighbouring items: of the same columns where the right operand is larger than all else, so
   that each thread reads and packs few of them, else of the same rows, since threads that write
   parts of the same rows take lines of cache from each other. Only `part_depth` enters results,
   and that follows from the sizes: what has few elements but long sums is summed in parts. */
struct geon_cut_{tag} {{
  int64_t row_block, column_block, depth_block, row_blocks, column_blocks, items, tasks;
  int64_t parts, part_depth;
  int by_columns;
}};
/* The least block, a multiple of `step`, that cuts `total` into as few as blocks of `most` do. */
static GEON_QUICK int64_t geon_share_{tag}(
    int64_t total, int64_t most, int64_t step) {{
  const int64_t parts = total > most ? (total + most - 1) / most : 1;
  const int64_t block = ((total + parts - 1) / parts + step - 1) / step * step;
  return block > 0 ? block : step;
}}
static GEON_QUICK struct geon_cut_{tag} geon_cut_{tag}(int64_t batches, int64_t rows,
    int64_t columns, int64_t depth, int few, int32_t threads) {{
  struct geon_cut_{tag} s;
  const int64_t wide = few ? (rows <= 8 ? 8 : 2) * {of.columns} : {of.columns};
  const int64_t least = few ? {of.columns} : 4 * {of.panel};
  const double work = (double)batches * (double)rows * (double)columns * (double)(depth + 4);
  const int64_t wanted = threads > 1 && work > 1e5 ? 4 * (int64_t)threads : 1;
  int64_t row_block = geon_share_{tag}(rows, 480, 12);
  int64_t column_block = geon_share_{tag}(columns, wide, {of.panel});
  const double elements = (double)batches * (double)rows * (double)columns;
  s.parts = elements <= {of.few_elements} && depth >= 16384 ? depth / 8192 : 1;
  s.parts = s.parts > 16 ? 16 : s.parts;
  s.part_depth = ((depth + s.parts - 1) / s.parts + 7) / 8 * 8;
  for (;;) {{
    s.row_blocks = (rows + row_block - 1) / row_block;
    s.column_blocks = (columns + column_block - 1) / column_block;
    s.items = batches * s.row_blocks * s.column_blocks * s.parts;
    if (s.items >= wanted || work / (double)s.items < 1e5) break;
    if (row_block > 96 && (row_block >= column_block || column_block <= least))
      row_block = geon_share_{tag}(row_block, row_block / 2, 12);
    else if (column_block > least)
      column_block = geon_share_{tag}(column_block, column_block / 2, {of.panel});
    else break;
  }}
  s.by_columns = (double)depth * (double)columns > (double)rows * (double)(depth + columns);
  s.row_block = row_block;
  s.column_block = column_block;
  const int64_t most = few && rows <= 16 ? (rows <= 4 ? 32 : 10) * {of.depth} : {of.depth};
  s.depth_block = geon_share_{tag}(s.parts > 1 ? s.part_depth : depth, most, 8);
  s.tasks = wanted > 1 ? 2 * wanted : 1;
  if (work < 2e5 * (double)s.tasks) s.tasks = (int64_t)(work / 2e5) + 1;
  if (s.tasks > s.items) s.tasks = s.items;
  return s;
}}
"""


def product_struct(of: Shape) -> str:
    """What a product's own text fills in."""
    tag, type = of.tag, of.type
    return f"""\
/* An operand in memory: its first element, and the distances of its lines (rows on the left,
   columns on the right) and of its summed indices, one of which is 1. `whole` says that lines and
   summed indices together are one run. Else `pack` writes the lines from `start` and the summed
   indices from `depth_start`; it works in `staged`, of so many elements per summed index and one
   per column. */
struct geon_operand_{tag} {{
  const {type} *at;
  int64_t line, summed;
  int whole;
  int64_t staged;
  void (*pack)(const void *arguments, int64_t batch, int64_t start, int64_t count,
               int64_t depth_start, int64_t depth_run, {type} *to, int64_t step, {type} *staged);
}};
/* `place` gives the offsets of a batch in the left and the right operand and the result; without
   it there is one batch. `result` is memory that has the sums as they are, rows `result_line`
   apart; else `store` does something with them. `kept` is a copy of the right operand, packed as
   a whole, or NULL. One that is `turned` has its operands exchanged, and the result is written
   across. */
struct geon_product_{tag} {{
  int64_t batches, rows, columns, depth;
  struct geon_operand_{tag} left, right;
  {type} *result;
  int64_t result_line;
  void (*place)(const void *arguments, int64_t batch, int64_t *offsets);
  void (*store)(const void *arguments, int64_t batch, int64_t row_start, int64_t height,
                int64_t column_start, int64_t width, const {type} *out, int64_t sums_step);
  const void *arguments;
  struct geon_kept *kept;
  int turned;
}};
"""


def _state_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* One run of a product. `direct` multiplies few rows by the right operand where it lies: 1 by
   streams of its rows, 2 by dot products with its columns. */
struct geon_run_{tag} {{
  const struct geon_product_{tag} *product;
  struct geon_cut_{tag} cut;
  int direct;
  {type} *part_sums, *kept;
}};
/* One block: its memory, where it is, and the operands of its batch. */
struct geon_block_{tag} {{
  {type} *left, *panels, *sums, *staged, *result;
  const {type} *rows_at, *columns_at;
  int64_t left_step, sums_step, batch, part, column_start, width, block_start, block_end;
  int64_t depth_first, depth_last, depth_start, depth_run;
  int64_t columns_packed; /* the number of the columns whose panels are there; -1: none */
  int near;
}};
"""


def _pack_text(of: Shape) -> str:
    tag, type, panel = of.tag, of.type, of.panel
    return f"""\
static GEON_QUICK void geon_pack_left_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block, int64_t row_start, int64_t height) {{
  const struct geon_operand_{tag} *left = &run->product->left;
  const int64_t depth_start = block->depth_start, depth_run = block->depth_run;
  const {type} *from = block->rows_at + row_start * left->line + depth_start * left->summed;
  if (left->pack)
    left->pack(run->product->arguments, block->batch, row_start, height, depth_start, depth_run,
               block->left, block->left_step, block->staged);
  else if (left->summed == 1)
    geon_copy_{tag}(block->left, block->left_step, from, left->line, height, depth_run);
  else
    geon_transpose_{tag}(block->left, block->left_step, from, left->summed, depth_run, height);
  /* The last tile's missing rows, of zeros. */
  for (int64_t r = height; !run->direct && r % 12; ++r)
    __builtin_memset(block->left + r * {of.line}, 0, (size_t)depth_run * sizeof *from);
}}
static GEON_QUICK void geon_pack_right_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block) {{
  const struct geon_operand_{tag} *right = &run->product->right;
  const int64_t depth_start = block->depth_start, depth_run = block->depth_run;
  if (right->pack) {{
    right->pack(run->product->arguments, block->batch, block->column_start, block->width,
                depth_start, depth_run, block->panels, run->cut.depth_block, block->staged);
    return;
  }}
  const {type} *from = block->columns_at + block->column_start * right->line
    + depth_start * right->summed;
  int64_t c = 0;
  if (right->line == 1) {{
    /* All panels' parts of a row together: a row is one run of memory. */
    const int64_t whole = block->width / {panel} * {panel};
    for (int64_t k = 0; k < depth_run; ++k)
      geon_spread_{tag}(block->panels + k * {panel}, {panel} * depth_run,
        from + k * right->summed, whole);
    c = whole;
  }}
  for (; c < block->width; c += {panel}) {{
    const int64_t some = block->width - c < {panel} ? block->width - c : {panel};
    {type} *panel = block->panels + c * depth_run;
    if (some < {panel})
      __builtin_memset(panel, 0, (size_t)depth_run * {panel} * sizeof *panel);
    if (right->line == 1)
      geon_copy_{tag}(panel, {panel}, from + c, right->summed, depth_run, some);
    else
      geon_transpose_{tag}(panel, {panel}, from + c * right->line, right->line, some, depth_run);
  }}
}}
"""


def _group_text(of: Shape) -> str:
    tag, type, panel = of.tag, of.type, of.panel
    low = heights(of)[1]
    return f"""\
/* What lies in memory behind the blocks at hand, where that may be what is packed next. */
static GEON_QUICK struct geon_next_{tag} geon_find_next_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block, int64_t row_start, int64_t height) {{
  const struct geon_product_{tag} *product = run->product;
  const int64_t depth = product->depth, columns = product->columns;
  struct geon_next_{tag} next = {{block->left, block->left, 0, 0}};
  if (block->depth_run != depth) return next;
  if (product->left.whole) {{
    next.left = block->rows_at + (row_start + height) * depth;
    next.left_size = height * depth;
  }}
  if (product->right.whole && product->batches > 1 && block->width == columns) {{
    const int64_t rows = block->block_end - block->block_start;
    next.right_size = depth * columns * height / rows;
    next.right = block->columns_at + depth * columns
      + depth * columns * (row_start - block->block_start) / rows;
  }}
  return next;
}}
/* Offsets of a batch in the left and the right operand and the result. */
static GEON_QUICK void geon_place_{tag}(
    const struct geon_product_{tag} *product, int64_t batch, int64_t *offsets) {{
  offsets[0] = offsets[1] = offsets[2] = 0;
  if (!product->place) return;
  product->place(product->arguments, batch, offsets);
  if (product->turned) {{
    const int64_t left = offsets[1];
    offsets[1] = offsets[0];
    offsets[0] = left;
  }}
}}
/* Sums written to the memory of the result. */
static GEON_QUICK void geon_write_{tag}(const struct geon_product_{tag} *product, {type} *result,
    int64_t row, int64_t height, int64_t column, int64_t width, const {type} *out,
    int64_t sums_step) {{
  const int64_t line = product->result_line;
  if (product->turned)
    geon_transpose_{tag}(result + column * line + row, line, out, sums_step, height, width);
  else
    geon_copy_{tag}(result + row * line + column, line, out, sums_step, height, width);
}}
/* The group's sums put by as its part's, or handed to the product's own function. */
static GEON_QUICK void geon_put_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block, int64_t row_start, int64_t height, const {type} *out) {{
  const struct geon_product_{tag} *product = run->product;
  if (run->part_sums)
    geon_copy_{tag}(run->part_sums + ((block->part * product->batches + block->batch)
      * product->rows + row_start) * product->columns + block->column_start, product->columns,
      out, block->sums_step, height, block->width);
  else if (product->result)
    geon_write_{tag}(product, block->result, row_start, height, block->column_start, block->width,
      out, block->sums_step);
  else
    product->store(product->arguments, block->batch, row_start, height, block->column_start,
      block->width, out, block->sums_step);
}}
/* One group of rows: packed, multiplied, and stored after the last summed block. Rows that lie
   close are read in place where columns are few, and tiles write a result themselves if they are
   whole. */
static GEON_QUICK void geon_group_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block, int64_t row_start) {{
  const struct geon_product_{tag} *product = run->product;
  const struct geon_operand_{tag} *left = &product->left, *right = &product->right;
  const int64_t width = block->width, depth_run = block->depth_run;
  const int64_t rest = block->block_end - row_start, height = rest < {GROUP} ? rest : {GROUP};
  const int more = block->depth_start > block->depth_first;
  const int whole = !run->direct && height % {low} == 0;
  const int near_rows = whole && !left->pack && left->summed == 1
    && width <= {NARROW * panel} && left->line * {GROUP * of.bytes} <= {NEAR};
  const int straight = whole && product->result && !run->part_sums && width % {of.vector} == 0;
  {type} *out = straight
    ? block->result + row_start * product->result_line + block->column_start
    : block->sums + (product->depth > run->cut.depth_block
        ? (row_start - block->block_start) * block->sums_step : 0);
  const int64_t out_step = straight ? product->result_line : block->sums_step;
  const {type} *in_place = block->columns_at + block->column_start * right->line
    + block->depth_start * right->summed;
  if (!near_rows) geon_pack_left_{tag}(run, block, row_start, height);
  if (run->direct == 1)
    geon_stream_{tag}(height, width, depth_run, block->left, block->left_step, in_place,
      right->summed, out, out_step, more);
  else if (run->direct == 2)
    geon_dots_{tag}(height, width, depth_run, block->left, block->left_step, in_place,
      right->line, out, out_step, more);
  else
    geon_tiles_{tag}(height, width, depth_run,
      near_rows ? block->rows_at + row_start * left->line + block->depth_start : block->left,
      near_rows ? left->line : block->left_step,
      block->near ? in_place : block->panels,
      block->near ? {panel} : {panel} * depth_run,
      block->near ? right->summed : {panel}, out, out_step, more,
      geon_find_next_{tag}(run, block, row_start, height));
  if (!straight && block->depth_start + depth_run >= block->depth_last)
    geon_put_{tag}(run, block, row_start, height, out);
}}
"""


def _task_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* Where the panels of a block lie in the kept copy: batches, and in them blocks of summed indices,
   each with the panels of all columns. */
static GEON_QUICK {type} *geon_kept_panels_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block) {{
  const struct geon_product_{tag} *product = run->product;
  const int64_t columns = (product->columns + {of.panel - 1}) / {of.panel} * {of.panel};
  return run->kept + (block->batch * product->depth + block->depth_start) * columns
    + block->column_start * block->depth_run;
}}
/* One block of rows and columns of one batch: the summed index block by block. A right operand
   that is small and of whole vectors is read in place. */
static GEON_QUICK void geon_item_{tag}(const struct geon_run_{tag} *run,
    struct geon_block_{tag} *block, int64_t item) {{
  const struct geon_product_{tag} *product = run->product;
  const struct geon_cut_{tag} *cut = &run->cut;
  const struct geon_operand_{tag} *right = &product->right;
  const int64_t blocks = cut->row_blocks * cut->column_blocks, within = item % blocks;
  const int64_t row = cut->by_columns ? within % cut->row_blocks : within / cut->column_blocks;
  const int64_t column = cut->by_columns ? within / cut->row_blocks : within % cut->column_blocks;
  const int64_t number = item / blocks * cut->column_blocks + column;
  int64_t offsets[3];
  block->block_start = row * cut->row_block;
  block->column_start = column * cut->column_block;
  block->batch = item / blocks % product->batches;
  block->part = item / blocks / product->batches;
  geon_place_{tag}(product, block->batch, offsets);
  block->rows_at = product->left.at + offsets[0];
  block->columns_at = right->at + offsets[1];
  block->result = product->result + offsets[2];
  const int64_t columns = product->columns - block->column_start;
  block->width = columns < cut->column_block ? columns : cut->column_block;
  const int64_t rows = product->rows - block->block_start;
  block->block_end = block->block_start + (rows < cut->row_block ? rows : cut->row_block);
  block->depth_first = block->part * cut->part_depth;
  const int64_t depth = product->depth - block->depth_first;
  block->depth_last = block->depth_first + (depth < cut->part_depth ? depth : cut->part_depth);
  int64_t start = block->depth_first;
  do {{
    const int64_t left = block->depth_last - start;
    block->depth_start = start;
    block->depth_run = left < cut->depth_block ? left : cut->depth_block;
    if (run->kept) block->panels = geon_kept_panels_{tag}(run, block);
    block->near = !run->direct && !run->kept && !right->pack && right->line == 1
      && block->width % {of.vector} == 0
      && block->depth_run * right->summed * {of.bytes} <= {NEAR};
    if (!run->direct && !run->kept && !block->near && block->columns_packed != number)
      geon_pack_right_{tag}(run, block);
    for (int64_t row = block->block_start; row < block->block_end; row += {GROUP})
      geon_group_{tag}(run, block, row);
    start += cut->depth_block;
  }} while (start < block->depth_last);
  block->columns_packed = block->depth_run == block->depth_last - block->depth_first ? number : -1;
}}
static GEON_QUICK int64_t geon_lines_{tag}(int64_t elements) {{
  return (elements + 63) / 64 * 64;
}}
static GEON_QUICK void geon_product_task_{tag}(void *argument, int64_t index) {{
  const struct geon_run_{tag} *run = argument;
  const struct geon_product_{tag} *product = run->product;
  const struct geon_cut_{tag} *cut = &run->cut;
  struct geon_block_{tag} block;
  block.left_step = run->direct ? cut->depth_block + {of.vector} : {of.line};
  block.sums_step = cut->column_block + {of.vector};
  const int64_t groups = product->depth > cut->depth_block
    ? (cut->row_block + {GROUP - 1}) / {GROUP} : 1;
  const int64_t left = geon_lines_{tag}(
    run->direct ? product->rows * block.left_step : {GROUP} * {of.line});
  const int64_t panels = geon_lines_{tag}(
    run->direct || run->kept ? 0 : cut->column_block * cut->depth_block);
  const int64_t sums = geon_lines_{tag}(groups * {GROUP} * block.sums_step);
  const int64_t deep = product->left.staged + product->right.staged;
  const int64_t staged = product->left.pack || product->right.pack
    ? deep * cut->depth_block + cut->column_block : 0;
  {type} *scratch = geon_scratch((size_t)(left + panels + sums + staged) * sizeof({type}));
  block.left = scratch;
  block.panels = scratch + left;
  block.sums = scratch + left + panels;
  block.staged = scratch + left + panels + sums;
  block.columns_packed = -1;
  const int64_t last = cut->items * (index + 1) / cut->tasks;
  for (int64_t item = cut->items * index / cut->tasks; item < last; ++item)
    geon_item_{tag}(run, &block, item);
}}
"""


def _run_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* Packs one block of summed indices and columns of one batch into the kept copy. */
static GEON_QUICK void geon_keep_task_{tag}(void *argument, int64_t index) {{
  const struct geon_run_{tag} *run = argument;
  const struct geon_product_{tag} *product = run->product;
  const struct geon_cut_{tag} *cut = &run->cut;
  const int64_t deep = (product->depth + cut->depth_block - 1) / cut->depth_block;
  int64_t offsets[3];
  struct geon_block_{tag} block;
  block.batch = index / cut->column_blocks / deep;
  block.column_start = index % cut->column_blocks * cut->column_block;
  block.depth_start = index / cut->column_blocks % deep * cut->depth_block;
  const int64_t columns = product->columns - block.column_start;
  const int64_t depth = product->depth - block.depth_start;
  block.width = columns < cut->column_block ? columns : cut->column_block;
  block.depth_run = depth < cut->depth_block ? depth : cut->depth_block;
  geon_place_{tag}(product, block.batch, offsets);
  block.columns_at = product->right.at + offsets[1];
  block.panels = geon_kept_panels_{tag}(run, &block);
  block.staged = geon_scratch(
    (size_t)(product->right.staged * cut->depth_block + cut->column_block) * sizeof({type}));
  geon_pack_right_{tag}(run, &block);
}}
/* The kept copy, made again if what it is of was written since. */
static GEON_QUICK {type} *geon_keep_{tag}(struct geon_run_{tag} *run, int32_t threads) {{
  const struct geon_product_{tag} *product = run->product;
  struct geon_kept *kept = product->kept;
  const struct geon_cut_{tag} *cut = &run->cut;
  if (!kept || !kept->copy || run->direct || cut->parts > 1) return NULL;
  run->kept = kept->copy;
  if (kept->seen != *kept->version) {{
    const int64_t deep = (product->depth + cut->depth_block - 1) / cut->depth_block;
    const int64_t count = product->batches * deep * cut->column_blocks;
    geon_pool_run(geon_keep_task_{tag}, run, count, threads);
    kept->seen = *kept->version;
  }}
  return run->kept;
}}
/* The parts' sums added in order, and stored. */
static GEON_QUICK void geon_add_parts_{tag}(const struct geon_run_{tag} *run, int64_t elements) {{
  const struct geon_product_{tag} *product = run->product;
  for (int64_t e = elements; e < run->cut.parts * elements; ++e)
    run->part_sums[e % elements] += run->part_sums[e];
  for (int64_t batch = 0; batch < product->batches; ++batch) {{
    const {type} *sums = run->part_sums + batch * product->rows * product->columns;
    int64_t offsets[3];
    geon_place_{tag}(product, batch, offsets);
    if (product->result)
      geon_write_{tag}(product, product->result + offsets[2], 0, product->rows, 0,
        product->columns, sums, product->columns);
    else
      product->store(product->arguments, batch, 0, product->rows, 0, product->columns, sums,
        product->columns);
  }}
}}
/* Few columns of many rows are few rows of many columns, which read the operand in place. */
static GEON_QUICK struct geon_product_{tag} geon_turn_{tag}(
    const struct geon_product_{tag} *product) {{
  struct geon_product_{tag} turned = *product;
  const int can = product->result && !product->left.pack && !product->right.pack;
  const int64_t most = product->left.line == 1 ? {min(FEW["stream"], of.vector)}
    : {min(FEW["dots"], of.vector)};
  if (can && product->columns <= most && product->rows >= {3 * of.vector}
      && product->depth >= {8 * of.vector}) {{
    turned.left = product->right;
    turned.right = product->left;
    turned.rows = product->columns;
    turned.columns = product->rows;
    turned.kept = NULL;
    turned.turned = 1;
  }}
  return turned;
}}
static GEON_QUICK void geon_product_{tag}(
    const struct geon_product_{tag} *told, int32_t threads) {{
  const struct geon_product_{tag} turned = geon_turn_{tag}(told), *product = &turned;
  const int64_t batches = product->batches, rows = product->rows, columns = product->columns;
  const int in_place = !product->right.pack && rows > 0;
  if (batches <= 0 || rows <= 0 || columns <= 0) return;
  struct geon_run_{tag} run;
  run.product = product;
  run.direct = 0;
  if (in_place && product->right.line == 1 && rows <= {FEW["stream"]}
      && columns >= {3 * of.vector})
    run.direct = 1;
  else if (in_place && product->right.line != 1 && rows <= {FEW["dots"]})
    run.direct = 2;
  run.cut = geon_cut_{tag}(batches, rows, columns, product->depth, run.direct != 0, threads);
  const int64_t elements = run.cut.parts > 1 ? batches * rows * columns : 0;
  {type} part_sums[elements > 0 ? run.cut.parts * elements : 1];
  run.part_sums = elements > 0 ? part_sums : NULL;
  run.kept = geon_keep_{tag}(&run, threads);
  if (run.cut.tasks == 1) geon_product_task_{tag}(&run, 0);
  else geon_pool_run(geon_product_task_{tag}, &run, run.cut.tasks, threads);
  if (elements > 0) geon_add_parts_{tag}(&run, elements);
}}
"""


def driver_text(of: Shape) -> str:
    """All of the driver; what it calls of moves, tiles and rows comes before it."""
    parts = (_state_text, _pack_text, _group_text, _task_text, _run_text)
    return "\n".join([product_struct(of), *(part(of) for part in parts)])
