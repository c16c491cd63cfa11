"""The C function that runs any product: cut into tasks, packed, multiplied by tiles, and stored.

A product's own text fills in a ``struct geon_product``: extents, how the operands lie, and
functions of its own for what the driver cannot know: elements computed while they are packed,
offsets of batches, and what is done to each element when it is stored.
"""

from .product_block import block_text
from .product_shape import FEW, GROUP, NEAR, Shape


def driver_text(of: Shape) -> str:
    """All of the driver; what it calls of moves, tiles and rows comes before it."""
    parts = (_keep_text, _item_text, _task_text, _add_parts_text, _turn_text, _run_text)
    texts = [product_struct(of), _state_text(of), block_text(of), *(part(of) for part in parts)]
    return "\n".join(texts)


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
   across. `scratch` is memory to work in, a part for each thread (`working.ProductScratch`). */
struct geon_product_{tag} {{
  int64_t batches, rows, columns, depth;
  struct geon_operand_{tag} left, right;
  {type} *result;
  int64_t result_line;
  void (*place)(const void *arguments, int64_t batch, int64_t *offsets);
  void (*store)(const void *arguments, int64_t batch, int64_t row_start, int64_t height,
                int64_t column_start, int64_t width, const {type} *out, int64_t sums_step);
  const void *arguments;
  char *scratch;
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
  double *totals; /* of a long product */
  const {type} *rows_at, *columns_at;
  int64_t left_step, sums_step, batch, part, column_start, width, block_start, block_end;
  int64_t depth_first, depth_last, depth_start, depth_run;
  int64_t columns_packed; /* the number of the columns whose panels are there; -1: none */
  int near;
}};
"""


def _keep_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
static GEON_QUICK int64_t geon_lines_{tag}(int64_t elements) {{
  return (elements + 63) / 64 * 64;
}}
/* Where the panels of a block lie in the kept copy: batches, and in them blocks of summed indices,
   each with the panels of all columns. */
static GEON_QUICK {type} *geon_kept_panels_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block) {{
  const struct geon_product_{tag} *product = run->product;
  const int64_t columns = (product->columns + {of.panel - 1}) / {of.panel} * {of.panel};
  return run->kept + (block->batch * product->depth + block->depth_start) * columns
    + block->column_start * block->depth_run;
}}
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
  const int64_t each = geon_lines_{tag}(
    product->right.staged * cut->depth_block + cut->column_block);
  block.staged = ({type} *)product->scratch + geon_seat() * each;
  geon_pack_right_{tag}(run, &block);
}}
/* The kept copy, made again if what it is of was written since. */
static GEON_QUICK void geon_keep_{tag}(struct geon_run_{tag} *run, int32_t threads) {{
  const struct geon_product_{tag} *product = run->product;
  struct geon_kept *kept = product->kept;
  const struct geon_cut_{tag} *cut = &run->cut;
  run->kept = NULL;
  if (!kept || !kept->copy || run->direct || cut->parts > 1) return;
  run->kept = kept->copy;
  if (kept->seen != *kept->version) {{
    const int64_t deep = (product->depth + cut->depth_block - 1) / cut->depth_block;
    const int64_t count = product->batches * deep * cut->column_blocks;
    geon_pool_run(geon_keep_task_{tag}, run, count, threads);
    kept->seen = *kept->version;
  }}
}}
"""


def _item_text(of: Shape) -> str:
    tag = of.tag
    return f"""\
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
"""


def _task_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* Some of a run's items, in the thread's part of the scratch memory. */
static GEON_QUICK void geon_product_task_{tag}(void *argument, int64_t index) {{
  const struct geon_run_{tag} *run = argument;
  const struct geon_product_{tag} *product = run->product;
  const struct geon_cut_{tag} *cut = &run->cut;
  struct geon_block_{tag} block;
  block.left_step = run->direct ? cut->depth_block + {of.vector} : {of.line};
  block.sums_step = cut->column_block + {of.vector};
  const int64_t groups = product->depth > cut->depth_block
    ? (cut->row_block + {GROUP - 1}) / {GROUP} : 1;
  const int64_t height = product->rows < {GROUP} ? (product->rows + 11) / 12 * 12 : {GROUP};
  const int64_t left = geon_lines_{tag}(
    run->direct ? product->rows * block.left_step : height * {of.line});
  const int64_t panels = geon_lines_{tag}(
    run->direct || run->kept ? 0 : cut->column_block * cut->depth_block);
  const int64_t sums = geon_lines_{tag}((groups > 1 ? groups * {GROUP} : height) * block.sums_step);
  const int64_t lines = product->left.staged < product->rows ? product->left.staged : product->rows;
  const int64_t deep = lines + product->right.staged;
  const int64_t totals = cut->is_long
    ? sums * (int64_t)(sizeof(double) / sizeof({type})) : 0;
  const int64_t staged = geon_lines_{tag}(product->left.pack || product->right.pack
    ? deep * cut->depth_block + cut->column_block : 0);
  {type} *scratch = ({type} *)product->scratch
    + geon_seat() * (left + panels + sums + totals + staged);
  block.left = scratch;
  block.panels = scratch + left;
  block.sums = scratch + left + panels;
  block.totals = (double *)(scratch + left + panels + sums);
  block.staged = scratch + left + panels + sums + totals;
  block.columns_packed = -1;
  const int64_t last = cut->items * (index + 1) / cut->tasks;
  for (int64_t item = cut->items * index / cut->tasks; item < last; ++item)
    geon_item_{tag}(run, &block, item);
}}
"""


def _add_parts_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* The parts' sums added in order, and stored. */
static GEON_QUICK void geon_add_parts_{tag}(const struct geon_run_{tag} *run, int64_t elements) {{
  const struct geon_product_{tag} *product = run->product;
  for (int64_t e = 0; e < elements; ++e) {{
    double total = 0;
    for (int64_t part = 0; part < run->cut.parts; ++part)
      total += run->part_sums[part * elements + e];
    run->part_sums[e] = ({type})total;
  }}
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
"""


def _turn_text(of: Shape) -> str:
    tag = of.tag
    return f"""\
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
"""


def _run_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
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
  run.cut = geon_cut_{tag}(batches, rows, columns, product->depth, run.direct, threads);
  const int64_t elements = run.cut.parts > 1 ? batches * rows * columns : 0;
  {type} part_sums[elements > 0 ? run.cut.parts * elements : 1];
  run.part_sums = elements > 0 ? part_sums : NULL;
  geon_keep_{tag}(&run, threads);
  if (run.cut.tasks == 1) geon_product_task_{tag}(&run, 0);
  else geon_pool_run(geon_product_task_{tag}, &run, run.cut.tasks, threads);
  if (elements > 0) geon_add_parts_{tag}(&run, elements);
}}
"""
