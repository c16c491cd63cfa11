"""The C functions that all matrix products of a module share."""

import re
from collections.abc import Callable
from functools import partial

from .product_moves import copy_text, spread_text, transpose_text
from .product_rows import dots_text, stream_text
from .product_shape import TAGS, Shape, shape
from .product_tiles import tile_text, tiles_text, vector_text


def micro_kernels(text: str, vector_bytes: int) -> str:
    """C text of the shared functions that product texts call, what they call themselves first."""
    found: dict[str, str] = {}
    for type in TAGS:
        table = _functions(shape(type, vector_bytes))
        _collect(text, table, found)
    return "\n".join([_QUICK, *found.values()]) if found else ""


_QUICK = """\
/* For functions written in vectors already: what more a compiler looks for costs it time. */
#if defined(__clang__)
#define GEON_QUICK __attribute__((noinline))
#else
#define GEON_QUICK __attribute__((noinline, optimize("O1")))
#endif
"""


def _collect(text: str, table: dict[str, Callable[[], str]], found: dict[str, str]) -> None:
    for name in dict.fromkeys(re.findall(r"geon_\w+", text)):
        if name in table and name not in found:
            body = table[name]()
            _collect(body.replace(name, ""), table, found)
            found[name] = body


def _functions(of: Shape) -> dict[str, Callable[[], str]]:
    tag = of.tag
    table: dict[str, Callable[[], str]] = {
        f"geon_vector_{tag}": lambda: vector_text(of),
        f"geon_tiles_{tag}": lambda: tiles_text(of),
        f"geon_copy_{tag}": lambda: copy_text(of),
        f"geon_spread_{tag}": lambda: spread_text(of),
        f"geon_transpose_{tag}": lambda: transpose_text(of),
        f"geon_stream_{tag}": lambda: stream_text(of),
        f"geon_dots_{tag}": lambda: dots_text(of),
        "geon_share": lambda: _SHARE,
        "geon_split": lambda: _SPLIT,
    }
    for height in ("high", "low"):
        for width in (2, 1):
            table[f"geon_{height}_{width}_{tag}"] = partial(tile_text, of, height, width)
    return table


_SHARE = """\
/* The least block, a multiple of `step`, that cuts `total` into as few as blocks of `most` do. */
static GEON_QUICK int64_t geon_share(
    int64_t total, int64_t most, int64_t step) {
  const int64_t parts = total > most ? (total + most - 1) / most : 1;
  const int64_t block = ((total + parts - 1) / parts + step - 1) / step * step;
  return block > 0 ? block : step;
}
"""

_SPLIT = """\
/* How a product is cut: blocks of rows and columns, items (blocks of all batches and parts), and
   tasks, each of neighbouring items. Only `part_depth` enters results, and that follows from the
   sizes: what has few elements but long sums is summed in parts. */
struct geon_split {
  int64_t row_block, column_block, depth_block, row_blocks, column_blocks, items, tasks;
  int64_t parts, part_depth;
};
static GEON_QUICK struct geon_split geon_split(int64_t batches, int64_t rows, int64_t columns,
    int64_t depth, int64_t most_columns, int64_t most_depth, int64_t panel, int few,
    int64_t few_elements, int32_t threads) {
  struct geon_split s;
  const int64_t wide = few ? (rows <= 8 ? 8 : 2) * most_columns : most_columns;
  const int64_t least = few ? most_columns : 4 * panel;
  const double work = (double)batches * (double)rows * (double)columns * (double)(depth + 4);
  const int64_t wanted = threads > 1 && work > 1e5 ? 4 * (int64_t)threads : 1;
  int64_t row_block = geon_share(rows, 480, 12), column_block = geon_share(columns, wide, panel);
  const double elements = (double)batches * (double)rows * (double)columns;
  s.parts = elements <= (double)few_elements && depth >= 16384 ? depth / 8192 : 1;
  s.parts = s.parts < 1 ? 1 : s.parts > 16 ? 16 : s.parts;
  s.part_depth = ((depth + s.parts - 1) / s.parts + 7) / 8 * 8;
  for (;;) {
    s.row_blocks = (rows + row_block - 1) / row_block;
    s.column_blocks = (columns + column_block - 1) / column_block;
    s.items = batches * s.row_blocks * s.column_blocks * s.parts;
    if (s.items >= wanted || work / (double)s.items < 1e5) break;
    if (row_block > 96 && (row_block >= column_block || column_block <= least))
      row_block = geon_share(row_block, row_block / 2, 12);
    else if (column_block > least)
      column_block = geon_share(column_block, column_block / 2, panel);
    else break;
  }
  s.row_block = row_block;
  s.column_block = column_block;
  const int64_t most = few && rows <= 16 ? (rows <= 4 ? 32 : 10) * most_depth : most_depth;
  s.depth_block = geon_share(s.parts > 1 ? s.part_depth : depth, most, 8);
  s.tasks = wanted > 1 ? 2 * wanted : 1;
  if (work < 2e5 * (double)s.tasks) s.tasks = (int64_t)(work / 2e5) + 1;
  if (s.tasks > s.items) s.tasks = s.items;
  return s;
}
"""
