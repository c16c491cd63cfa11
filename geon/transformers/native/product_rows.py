"""C functions for few rows against a right operand that is read where it lies."""

from .product_shape import Shape


def stream_text(of: Shape) -> str:
    """A few packed rows against a right operand read in place, rows of it at a time."""
    wide = of.vector * of.bytes == 64
    # Rows and summed indices at a time: their products stay in registers, as do the right rows.
    blocks = ((4, 4), (2, 8), (1, 8), (1, 1)) if wide else ((2, 4), (1, 4), (1, 1))
    lines = _stream_end(of)
    for rows, deep in blocks:
        lines += _stream_block(of, rows, deep)
    return "\n".join([*lines, *_stream_all(of, blocks, 8 if wide else 4), ""])


def _stream_end(of: Shape) -> list[str]:
    """The columns that fill no vector."""
    type = of.type
    return [
        f"static GEON_QUICK void geon_stream_end_{of.tag}(",
        f"    int64_t rows, int64_t deep, int64_t width, const {type} *a, int64_t line,",
        f"    const {type} *b, int64_t step, {type} *c, int64_t out_step) {{",
        "  for (int64_t r = 0; r < rows; ++r)",
        "    for (int64_t e = 0; e < width; ++e) {",
        f"      {type} sum = a[r * line] * b[e];",
        "      for (int64_t k = 1; k < deep; ++k)",
        f"        sum = GEON_SCALAR_FMA_{of.tag.upper()}(a[r * line + k], b[k * step + e], sum);",
        "      c[r * out_step + e] += sum;",
        "    }",
        "}",
    ]


def _stream_block(of: Shape, rows: int, deep: int) -> list[str]:
    """So many rows times so many summed indices, over all columns."""
    type, upper, n = of.type, of.tag.upper(), of.vector
    vector = f"geon_vector_{of.tag}"
    lines = [
        f"const {type} x{r}_{k} = a[{r} * line + {k}];\n"
        f"  const {vector} a{r}_{k} = GEON_SPLAT_{upper}(x{r}_{k});"
        for r in range(rows)
        for k in range(deep)
    ]
    lines += [f"const {type} *row{k} = b + {k} * step;" for k in range(deep)]
    lines += ["int64_t column = 0;", f"for (; column + {n} <= width; column += {n}) {{"]
    for k in range(deep):
        lines.append(f"  {vector} b{k} = *(const {vector} *)(row{k} + column);")
        lines += [f"  GEON_HOLD_{upper}(b{k});"] if rows > 1 else []
    # Added to the result as one: half the roundings of a sum over many summed indices, and more.
    lines += [f"  {vector} c{r} = a{r}_0 * b0;" for r in range(rows)]
    lines += [
        f"  c{r} = GEON_VECTOR_FMA_{upper}(a{r}_{k}, b{k}, c{r});"
        for k in range(1, deep)
        for r in range(rows)
    ]
    lines += [f"  *({vector} *)(c + {r} * out_step + column) += c{r};" for r in range(rows)]
    lines += [
        "}",
        "if (column < width)",
        f"  geon_stream_end_{of.tag}({rows}, {deep}, width - column, a, line, b + column, step,"
        " c + column, out_step);",
    ]
    return [
        f"static GEON_QUICK void geon_stream_{rows}_{deep}_{of.tag}(",
        f"    int64_t width, const {type} *restrict a, int64_t line,",
        f"    const {type} *restrict b, int64_t step, {type} *restrict c, int64_t out_step) {{",
        "  (void)line; (void)step; (void)out_step;",
        *("  " + line for line in lines),
        "}",
    ]


def _stream_all(of: Shape, blocks: tuple[tuple[int, int], ...], unroll: int) -> list[str]:
    """All rows, by the largest blocks that fit."""
    type, n = of.type, of.vector
    # A chunk of `unroll` rows stays in the first cache while all rows on the left use it.
    chunk = 16384 // of.bytes // unroll
    choice = []
    for rows, deep in blocks[:-1]:
        calls = [
            f"geon_stream_{rows}_{deep}_{of.tag}(width, a + {k}, line, b + {k} * step,"
            " step, c, out_step);"
            for k in range(0, unroll, deep)
        ]
        test = f"if (rows - row >= {rows}) " if rows > 1 else ""
        choice += [
            f"        {test}{{",
            *("          " + call for call in calls),
            f"          row += {rows};",
            "        } else",
        ]
    return [
        f"static GEON_QUICK void geon_stream_{of.tag}(",
        f"    int64_t rows, int64_t columns, int64_t depth, const {type} *left, int64_t line,",
        f"    const {type} *right, int64_t step, {type} *out, int64_t out_step,",
        "    int accumulate) {",
        f"  const int64_t whole = (columns + {n - 1}) / {n} * {n};",
        "  if (!accumulate)",
        "    for (int64_t row = 0; row < rows; ++row)",
        f"      __builtin_memset(out + row * out_step, 0, (size_t)whole * sizeof({type}));",
        "  for (int64_t k = 0, deep; k < depth; k += deep) {",
        f"    deep = depth - k >= {unroll} ? {unroll} : 1;",
        f"    const int64_t chunk = rows > {blocks[0][0]} ? {chunk} : whole;",
        "    /* The last vector may reach over into a row that follows. */",
        f"    const int64_t end = (depth - k - deep) * step >= {n - 1} ? whole : columns;",
        "    for (int64_t start = 0; start < end; start += chunk) {",
        "      const int64_t width = end - start < chunk ? end - start : chunk;",
        f"      const {type} *b = right + k * step + start;",
        "      for (int64_t row = 0; row < rows;) {",
        f"        const {type} *a = left + row * line + k;",
        f"        {type} *c = out + row * out_step + start;",
        "        if (deep == 1) {",
        f"          geon_stream_1_1_{of.tag}(width, a, line, b, step, c, out_step);",
        "          row += 1;",
        "        } else",
        *choice[:-1],
        "        }",
        "      }",
        "    }",
        "  }",
        "}",
    ]


def _halves(n: int) -> list[int]:
    """n / 2, n / 4, ... 1."""
    return [] if n == 1 else [n // 2, *_halves(n // 2)]


def dots_text(of: Shape) -> str:
    """A few packed rows against a right operand whose summed dimension is adjacent."""
    return "\n".join([*_dot_end(of), *_dots_all(of), ""])


def _dot_end(of: Shape) -> list[str]:
    """The sum of a vector's lanes, and of what fills no vector."""
    type, upper, n = of.type, of.tag.upper(), of.vector
    vector = f"geon_vector_{of.tag}"
    return [
        f"static GEON_QUICK void geon_dot_end_{of.tag}(",
        f"    const {vector} *sum, int64_t rest, const {type} *a, const {type} *b, {type} *out,",
        "    int accumulate) {",
        f"  {vector} part = *sum;",
        f"  {type} total = 0;",
        *(
            f"  part += __builtin_shufflevector(part, part, "
            f"{', '.join(str((i + half) % n) for i in range(n))});"
            for half in _halves(n)
        ),
        f"  for (int64_t k = 0; k < rest; ++k) total = GEON_SCALAR_FMA_{upper}(a[k], b[k], total);",
        "  *out = (accumulate ? *out : 0) + (part[0] + total);",
        "}",
    ]


def _dots_block(of: Shape, rows: int, columns: int, pad: str) -> list[str]:
    """So many rows times so many columns, over the whole sum."""
    type, upper, n = of.type, of.tag.upper(), of.vector
    vector = f"geon_vector_{of.tag}"
    cells = [f"c{r}_{c}" for r in range(rows) for c in range(columns)]
    lines = [
        *(f"{pad}const {type} *row{r} = a + {r} * line;" for r in range(rows)),
        *(f"{pad}const {type} *side{c} = b + {c} * step;" for c in range(columns)),
        f"{pad}{vector} {', '.join(f'{cell} = {{0}}' for cell in cells)};",
        f"{pad}int64_t k = 0;",
        f"{pad}for (; k + {n} <= depth; k += {n}) {{",
        *(f"{pad}  {vector} a{r} = *(const {vector} *)(row{r} + k);" for r in range(rows)),
        *(f"{pad}  GEON_HOLD_{upper}(a{r});" for r in range(rows)),
    ]
    for c in range(columns):
        lines.append(f"{pad}  {vector} b{c} = *(const {vector} *)(side{c} + k);")
        lines.append(f"{pad}  GEON_HOLD_{upper}(b{c});")
        if columns > 1 and rows == 1:
            lines.append(f"{pad}  __builtin_prefetch(side{c} + k + {512 // of.bytes * 2});")
        lines += [
            f"{pad}  c{r}_{c} = GEON_VECTOR_FMA_{upper}(a{r}, b{c}, c{r}_{c});" for r in range(rows)
        ]
    lines.append(f"{pad}}}")
    return [
        *lines,
        f"{pad}const {vector} parts[] = {{{', '.join(cells)}}};",
        f"{pad}for (int r = 0; r < {rows}; ++r)",
        f"{pad}  for (int c = 0; c < {columns}; ++c)",
        f"{pad}    geon_dot_end_{of.tag}(parts + r * {columns} + c, depth - k,",
        f"{pad}      a + r * line + k, b + c * step + k,",
        f"{pad}      out + (row + r) * out_step + column + c, accumulate);",
    ]


def _dots_all(of: Shape) -> list[str]:
    """All rows and columns, by the largest blocks that fit."""
    type = of.type
    return [
        f"static GEON_QUICK void geon_dots_{of.tag}(",
        f"    int64_t rows, int64_t columns, int64_t depth, const {type} *left, int64_t line,",
        f"    const {type} *right, int64_t step, {type} *out, int64_t out_step,",
        "    int accumulate) {",
        "  for (int64_t column = 0; column < columns;) {",
        f"    const {type} *b = right + column * step;",
        "    if (columns - column < 4) {",
        "      for (int64_t row = 0; row < rows; ++row) {",
        f"        const {type} *a = left + row * line;",
        *_dots_block(of, 1, 1, "        "),
        "      }",
        "      column += 1;",
        "      continue;",
        "    }",
        "    for (int64_t row = 0; row < rows;) {",
        f"      const {type} *a = left + row * line;",
        "      if (rows - row == 1) {",
        *_dots_block(of, 1, 4, "        "),
        "        row += 1;",
        "      } else {",
        *_dots_block(of, 2, 4, "        "),
        "        row += 2;",
        "      }",
        "    }",
        "    column += 4;",
        "  }",
        "}",
    ]
