"""The C text that cuts a product into blocks, items and tasks."""

from .product_shape import CHAIN, MOST_ROWS, Shape


def cut_text(of: Shape) -> str:
    """How a product is cut up."""
    tag = of.tag
    return f"""\
/* Blocks of rows and columns, items (blocks of all batches and parts), and tasks, each of
   neighbouring items: of the same columns where the right operand is larger than all else, so
   that each thread reads and packs few of them, else of the same rows, since threads that write
   parts of the same rows take lines of cache from each other. Only `part_depth`, `depth_block` and
   `chain` enter results, and they follow from the sizes: what has few elements but long sums is
   summed in parts. Where sums are long, `chain` terms are added in their own type, and the rest in
   double. */
struct geon_cut_{tag} {{
  int64_t row_block, column_block, depth_block, row_blocks, column_blocks, items, tasks;
  int64_t parts, part_depth, chain;
  int by_columns, is_long;
}};
/* The least block, a multiple of `step`, that cuts `total` into as few as blocks of `most` do. */
static GEON_QUICK int64_t geon_share_{tag}(
    int64_t total, int64_t most, int64_t step) {{
  const int64_t parts = total > most ? (total + most - 1) / most : 1;
  const int64_t block = ((total + parts - 1) / parts + step - 1) / step * step;
  return block > 0 ? block : step;
}}
static GEON_QUICK struct geon_cut_{tag} geon_cut_{tag}(int64_t batches, int64_t rows,
    int64_t columns, int64_t depth, int direct, int32_t threads) {{
  struct geon_cut_{tag} s;
  const int few = direct != 0;
  s.is_long = depth > (direct == 1 ? {of.long_stream} : {of.long_depth});
  s.chain = s.is_long ? {CHAIN} : depth > 0 ? depth : 1;
  const int64_t wide = few ? (rows <= 8 ? 8 : 2) * {of.columns} : {of.columns};
  const int64_t least = few ? {of.columns} : 4 * {of.panel};
  const double work = (double)batches * (double)rows * (double)columns * (double)(depth + 4);
  const int64_t wanted = threads > 1 && work > 1e5 ? 4 * (int64_t)threads : 1;
  int64_t row_block = geon_share_{tag}(rows, {MOST_ROWS}, 12);
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
  const int64_t most = s.is_long && direct == 2 ? {of.vector * CHAIN}
    : few && rows <= 16 ? (rows <= 4 ? 32 : 10) * {of.depth} : {of.depth};
  s.depth_block = geon_share_{tag}(s.parts > 1 ? s.part_depth : depth, most, 8);
  s.tasks = wanted > 1 ? 2 * wanted : 1;
  if (work < 2e5 * (double)s.tasks) s.tasks = (int64_t)(work / 2e5) + 1;
  if (s.tasks > s.items) s.tasks = s.items;
  return s;
}}
"""
