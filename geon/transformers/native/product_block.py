"""The C text that works on one block of a product: packed, multiplied by groups of rows, put by."""

from .product_shape import CHAIN, GROUP, NARROW, NEAR, STREAMED, Shape
from .product_tiles import heights


def block_text(of: Shape) -> str:
    """All of it; the structures that it is told of come before."""
    parts = (_place_text, _pack_left_text, _pack_right_text, _next_text, _add_text, _put_text,
             _group_text)  # fmt: skip
    return "\n".join(part(of) for part in parts)


def _place_text(of: Shape) -> str:
    tag = of.tag
    return f"""\
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
"""


def _pack_left_text(of: Shape) -> str:
    tag, type = of.tag, of.type
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
"""


def _pack_right_text(of: Shape) -> str:
    tag, type, panel = of.tag, of.type, of.panel
    return f"""\
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


def _next_text(of: Shape) -> str:
    tag = of.tag
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
"""


def _add_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
/* The sums of some summed indices of a long product added to the totals of those before; after the
   last of all, the totals are the sums. */
static GEON_QUICK void geon_add_{tag}(const struct geon_block_{tag} *block, int64_t row_start,
    int64_t height, int64_t depth_start, int64_t depth_run, {type} *out) {{
  const int first = depth_start == block->depth_first;
  const int last = depth_start + depth_run >= block->depth_last;
  double *totals = block->totals + (row_start - block->block_start) * block->sums_step;
  for (int64_t r = 0; r < height; ++r, out += block->sums_step, totals += block->sums_step) {{
    if (first)
      for (int64_t c = 0; c < block->width; ++c) totals[c] = out[c];
    else
      for (int64_t c = 0; c < block->width; ++c) totals[c] += out[c];
    if (last)
      for (int64_t c = 0; c < block->width; ++c) out[c] = ({type})totals[c];
  }}
}}
"""


def _put_text(of: Shape) -> str:
    tag, type = of.tag, of.type
    return f"""\
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
/* The group's sums put by as its part's, written, or handed to the product's own function. */
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
"""


def _group_text(of: Shape) -> str:
    tag, type, panel, low = of.tag, of.type, of.panel, heights(of)[1]
    return f"""\
/* One group of rows: packed, multiplied, and stored after the last summed block. Rows that lie
   close are read in place where columns are few, and tiles write a result themselves if they are
   whole. */
static GEON_QUICK void geon_group_{tag}(const struct geon_run_{tag} *run,
    const struct geon_block_{tag} *block, int64_t row_start) {{
  const struct geon_product_{tag} *product = run->product;
  const struct geon_operand_{tag} *left = &product->left, *right = &product->right;
  const int64_t width = block->width, depth_run = block->depth_run;
  const int64_t rest = block->block_end - row_start, height = rest < {GROUP} ? rest : {GROUP};
  const int more = !run->cut.is_long && block->depth_start > block->depth_first;
  const int whole = !run->direct && height % {low} == 0;
  const int near_rows = whole && !left->pack && left->summed == 1
    && width <= {NARROW * panel} && left->line * {GROUP * of.bytes} <= {NEAR};
  const int straight = whole && product->result && !run->part_sums && !run->cut.is_long
    && width % {of.vector} == 0;
  {type} *out = straight
    ? block->result + row_start * product->result_line + block->column_start
    : block->sums + (product->depth > run->cut.depth_block
        ? (row_start - block->block_start) * block->sums_step : 0);
  const int64_t out_step = straight ? product->result_line : block->sums_step;
  const {type} *in_place = block->columns_at + block->column_start * right->line
    + block->depth_start * right->summed;
  if (!near_rows) geon_pack_left_{tag}(run, block, row_start, height);
  if (run->direct == 1) {{
    const int64_t chain = run->cut.is_long ? {CHAIN * STREAMED} : run->cut.depth_block;
    for (int64_t k = 0; k == 0 || k < depth_run; k += chain) {{
      const int64_t deep = depth_run - k < chain ? depth_run - k : chain;
      geon_stream_{tag}(height, width, deep, block->left + k, block->left_step,
        in_place + k * right->summed, right->summed, out, out_step, more);
      if (run->cut.is_long)
        geon_add_{tag}(block, row_start, height, block->depth_start + k, deep, out);
    }}
  }} else if (run->direct == 2)
    geon_dots_{tag}(height, width, depth_run, block->left, block->left_step, in_place,
      right->line, out, out_step, more);
  else
    geon_tiles_{tag}(height, width, depth_run,
      near_rows ? block->rows_at + row_start * left->line + block->depth_start : block->left,
      near_rows ? left->line : block->left_step,
      block->near ? in_place : block->panels,
      block->near ? {panel} : {panel} * depth_run,
      block->near ? right->summed : {panel}, out, out_step, more, run->cut.chain,
      geon_find_next_{tag}(run, block, row_start, height));
  if (run->cut.is_long && run->direct != 1)
    geon_add_{tag}(block, row_start, height, block->depth_start, depth_run, out);
  if (!straight && block->depth_start + depth_run >= block->depth_last)
    geon_put_{tag}(run, block, row_start, height, out);
}}
"""
