"""C functions that bring operands into packed blocks: copies and transposes."""

from .product_shape import Shape


def copy_text(of: Shape) -> str:
    """Rows copied from one leading dimension to another, a whole panel's width without a call."""
    vector = f"geon_vector_{of.tag}"
    moves = "\n".join(
        f"      *({vector} *)(to + {c * of.vector}) = *(const {vector} *)(from + {c * of.vector});"
        for c in range(2)
    )
    return f"""\
static GEON_QUICK void geon_copy_{of.tag}(
    {of.type} *restrict to, int64_t to_step, const {of.type} *restrict from, int64_t from_step,
    int64_t rows, int64_t columns) {{
  if (columns == {of.panel}) {{
    for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {{
{moves}
    }}
    return;
  }}
  for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {{
    int64_t column = 0;
    for (; column + {of.vector} <= columns; column += {of.vector})
      *({vector} *)(to + column) = *(const {vector} *)(from + column);
    for (; column < columns; ++column) to[column] = from[column];
  }}
}}
"""


def spread_text(of: Shape) -> str:
    """One row of the right operand, padded to whole panels by its maker, laid into the panels."""
    vector = f"geon_vector_{of.tag}"
    return f"""\
static void geon_spread_{of.tag}({of.type} *restrict to, int64_t panel_step,
    const {of.type} *restrict from, int64_t columns) {{
  for (int64_t column = 0; column < columns; column += {of.panel}, to += panel_step) {{
    *({vector} *)to = *(const {vector} *)(from + column);
    *({vector} *)(to + {of.vector}) = *(const {vector} *)(from + column + {of.vector});
  }}
}}
"""


def transpose_text(of: Shape) -> str:
    """to[column][row] = from[row][column], square blocks in registers.

    A block of n = 2^s rows is transposed by s perfect shuffles: each interleaves row i with row
    i + n/2, the low halves into row 2i and the high halves into row 2i + 1.
    """
    n, type = of.vector, of.type
    vector = f"geon_vector_{of.tag}"
    half = n // 2
    low = ", ".join(f"{i}, {n + i}" for i in range(half))
    high = ", ".join(f"{half + i}, {n + half + i}" for i in range(half))
    lines = [
        f"static GEON_QUICK void geon_transpose_end_{of.tag}(",
        f"    {type} *restrict to, int64_t to_step, const {type} *restrict from,"
        " int64_t from_step,",
        "    int64_t rows, int64_t columns) {",
        "  for (int64_t c = 0; c < columns; ++c, to += to_step)",
        "    for (int64_t r = 0; r < rows; ++r) to[r] = from[r * from_step + c];",
        "}",
        f"static GEON_QUICK void geon_transpose_{of.tag}(",
        f"    {type} *restrict to, int64_t to_step, const {type} *restrict from,"
        " int64_t from_step,",
        "    int64_t rows, int64_t columns) {",
        f"  for (int64_t row = 0; row < rows; row += {n})",
        f"    for (int64_t column = 0; column < columns; column += {n}) {{",
        f"      const {type} *source = from + row * from_step + column;",
        f"      {type} *target = to + column * to_step + row;",
        f"      if (rows - row < {n} || columns - column < {n}) {{",
        f"        geon_transpose_end_{of.tag}(target, to_step, source, from_step,",
        f"          rows - row < {n} ? rows - row : {n},",
        f"          columns - column < {n} ? columns - column : {n});",
        "        continue;",
        "      }",
    ]
    names = [f"x{i}" for i in range(n)]
    lines += [
        f"      {vector} {x} = *(const {vector} *)(source + {i} * from_step);"
        for i, x in enumerate(names)
    ]
    step = 0
    while 1 << step < n:
        letter = "yzuvw"[step]
        new = [f"{letter}{i}" for i in range(n)]
        for i in range(half):
            pair = f"{names[i]}, {names[i + half]}"
            lines += [
                f"      {vector} {new[2 * i]} = __builtin_shufflevector({pair}, {low});",
                f"      {vector} {new[2 * i + 1]} = __builtin_shufflevector({pair}, {high});",
            ]
        names, step = new, step + 1
    lines += [f"      *({vector} *)(target + {i} * to_step) = {x};" for i, x in enumerate(names)]
    lines += ["    }", "}", ""]
    return "\n".join(lines)
