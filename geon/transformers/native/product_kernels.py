"""The C functions that all matrix products of a module share: register tiles, copies, few rows."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

GROUP = 48
"""Rows of the left operand packed at a time: a multiple of every tile height."""

_TAGS = {"float": "f32", "double": "f64"}
_SIZES = {"float": 4, "double": 8}


@dataclass(frozen=True)
class Shape:
    """Sizes of the blocks a product of one type is cut into, in elements."""

    type: str
    vector: int

    @property
    def tag(self) -> str:
        """What function names end in."""
        return _TAGS[self.type]

    @property
    def bytes(self) -> int:
        """The size of one element."""
        return _SIZES[self.type]

    @property
    def panel(self) -> int:
        """Columns of one packed panel of the right operand: two vectors."""
        return 2 * self.vector

    @property
    def depth(self) -> int:
        """The most summed indices of one block: twelve rows of it stay in a 32 KB first cache."""
        return 384 if self.type == "float" else 256

    @property
    def line(self) -> int:
        """Distance of two packed rows of the left operand; no multiple of a cache's set stride."""
        return self.depth + 64 // _SIZES[self.type]

    @property
    def columns(self) -> int:
        """The most columns of one block: with `depth`, the right operand's share of 400 KB."""
        return 1024 // _SIZES[self.type]


def shape(type: str, vector_bytes: int) -> Shape:
    """Block sizes for accumulation in `type` with vectors of `vector_bytes` (16, 32 or 64)."""
    if vector_bytes not in (16, 32, 64):
        raise ValueError(f"vector_bytes is {vector_bytes}; products know 16, 32 and 64")
    return Shape(type, vector_bytes // _SIZES[type])


def micro_kernels(text: str, vector_bytes: int) -> str:
    """C text of the shared functions that product texts call, what they call themselves first."""
    found: dict[str, str] = {}
    for type in _TAGS:
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
    for name in dict.fromkeys(re.findall(r"\bgeon_\w+", text)):
        if name in table and name not in found:
            body = table[name]()
            _collect(body.replace(name, ""), table, found)
            found[name] = body


def _functions(of: Shape) -> dict[str, Callable[[], str]]:
    tag = of.tag
    table: dict[str, Callable[[], str]] = {
        f"geon_vector_{tag}": lambda: _vector(of),
        f"geon_tiles_{tag}": lambda: _tiles(of),
        f"geon_copy_{tag}": lambda: _copy(of),
        f"geon_spread_{tag}": lambda: _spread(of),
        f"geon_transpose_{tag}": lambda: _transpose(of),
        f"geon_stream_{tag}": lambda: _stream(of),
        f"geon_dots_{tag}": lambda: _dots(of),
        "geon_share": lambda: _SHARE,
        "geon_split": lambda: _SPLIT,
    }
    for height in ("high", "low"):
        for width in (2, 1):
            table[f"geon_{height}_{width}_{tag}"] = partial(_tile, of, height, width)
    return table


def _vector(of: Shape) -> str:
    """The vector type, its fused multiply-add, and how a value is kept in a register."""
    tag, size = of.tag, _SIZES[of.type]
    name, bytes_ = f"geon_vector_{tag}", of.vector * size
    letters = "ps" if size == 4 else "pd"
    upper = tag.upper()
    x86 = {
        64: (
            "__AVX512F__",
            f"__builtin_ia32_vfmadd{letters}512_mask(a, b, c, -1, 4)",
            "__AVX512F__",
        ),
        32: ("__FMA__", f"__builtin_ia32_vfmadd{letters}256(a, b, c)", "__AVX__"),
        16: ("__FMA__", f"__builtin_ia32_vfmadd{letters}(a, b, c)", "__SSE2__"),
    }[bytes_]
    neon = "__builtin_aarch64_fmav4sf" if size == 4 else "__builtin_aarch64_fmav2df"
    arm = f"defined(__aarch64__) && {int(bytes_ == 16)}"
    suffix = "f" if size == 4 else ""
    value = ", ".join(["x"] * of.vector)
    return f"""\
typedef {of.type} {name} __attribute__((vector_size({bytes_}), aligned({size}), may_alias));
#if defined(__clang__)
#define GEON_VECTOR_FMA_{upper}(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif defined({x86[0]})
#define GEON_VECTOR_FMA_{upper}(a, b, c) (({name}){x86[1]})
#elif {arm}
#define GEON_VECTOR_FMA_{upper}(a, b, c) (({name}){neon}(a, b, c))
#else
#define GEON_VECTOR_FMA_{upper}(a, b, c) ((a) * (b) + (c))
#endif
#if defined(__clang__) || defined(__FMA__) || ({arm})
#define GEON_SCALAR_FMA_{upper}(a, b, c) __builtin_fma{suffix}(a, b, c)
#else
#define GEON_SCALAR_FMA_{upper}(a, b, c) ((a) * (b) + (c))
#endif
#define GEON_SPLAT_{upper}(x) (({name}){{{value}}})
/* Without this some compilers load a value again for each use in a loop. */
#if defined(__x86_64__) && defined({x86[2]})
#define GEON_HOLD_{upper}(x) __asm__("" : "+{"v" if bytes_ == 64 else "x"}"(x))
#elif {arm}
#define GEON_HOLD_{upper}(x) __asm__("" : "+w"(x))
#else
#define GEON_HOLD_{upper}(x) ((void)0)
#endif
"""


def heights(of: Shape) -> tuple[int, int]:
    """Rows of the high and the low register tile: the larger fills 32 or 16 vector registers."""
    return (12, 4) if of.vector * _SIZES[of.type] == 64 else (6, 2)


def _tile(of: Shape, height: str, width: int) -> str:
    """One register tile: out[row][column] (+)= sum over k of left[row][k] * right[k][column]."""
    rows, upper = heights(of)[height == "low"], of.tag.upper()
    vector = f"geon_vector_{of.tag}"
    cells = [[f"c{r}_{c}" for c in range(width)] for r in range(rows)]
    places = {
        cell: f"*({vector} *)(out + {r} * out_step + {c * of.vector})"
        for r, line in enumerate(cells)
        for c, cell in enumerate(line)
    }
    right = [f"b{c}" for c in range(width)]
    lines = [
        f"static GEON_QUICK void geon_{height}_{width}_{of.tag}(",
        f"    int64_t depth, const {of.type} *restrict left, const {of.type} *restrict right,",
        f"    int64_t step, {of.type} *restrict out, int64_t out_step, int accumulate,",
        "    const char *next_left, const char *next_right) {",
        f"  {vector} {', '.join(places)};",
        "  if (accumulate) {",
        *(f"    {cell} = {place};" for cell, place in places.items()),
        "  } else {",
        f"    {' = '.join(places)} = ({vector}){{0}};",
        "  }",
        "  for (int64_t k = 0; k < depth; ++k, ++left, right += step) {",
        "    __builtin_prefetch(next_left + 64 * k);",
        "    __builtin_prefetch(next_right + 64 * k);",
        f"    {of.type} x;",
        f"    {vector} a, "
        + ", ".join(
            f"{b} = *(const {vector} *)(right + {c * of.vector})" for c, b in enumerate(right)
        )
        + ";",
        *(f"    GEON_HOLD_{upper}({b});" for b in right),
    ]
    for r, line in enumerate(cells):
        lines.append(f"    x = left[{r * of.line}], a = GEON_SPLAT_{upper}(x);")
        lines += [
            f"    {cell} = GEON_VECTOR_FMA_{upper}(a, {b}, {cell});"
            for cell, b in zip(line, right, strict=True)
        ]
    lines += ["  }", *(f"  {place} = {cell};" for cell, place in places.items()), "}", ""]
    return "\n".join(lines)


def _tiles(of: Shape) -> str:
    """All tiles of a group of packed rows against a block of panels.

    Meanwhile what will be packed next comes near: a line of each side for every summed index.
    """
    high, low = heights(of)
    tag, type, vector, panel = of.tag, of.type, of.vector, of.panel
    call = "(depth, a, b, step, c, out_step, accumulate, next_left, next_right)"
    return f"""\
struct geon_next_{tag} {{
  const {type} *left, *right;
  int64_t left_size, right_size;
}};
static GEON_QUICK void geon_tiles_{tag}(
    int64_t rows, int64_t columns, int64_t depth, const {type} *left, const {type} *right,
    int64_t panel_step, int64_t step, {type} *out, int64_t out_step, int accumulate,
    struct geon_next_{tag} next) {{
  const char *next_left = (const char *)next.left, *next_right = (const char *)next.right;
  const char *const left_end = next_left + next.left_size * {_SIZES[type]};
  const char *const right_end = next_right + next.right_size * {_SIZES[type]};
  for (int64_t row = 0; row < rows;) {{
    const int high = rows - row > {high - low};
    const {type} *a = left + row * {of.line}, *b = right;
    {type} *c = out + row * out_step;
    for (int64_t column = 0; column < columns;
         column += {panel}, b += panel_step, c += {panel}) {{
      if (columns - column > {vector}) {{
        if (high) geon_high_2_{tag}{call};
        else geon_low_2_{tag}{call};
      }} else {{
        if (high) geon_high_1_{tag}{call};
        else geon_low_1_{tag}{call};
      }}
      next_left += 64 * depth;
      if (next_left >= left_end) next_left = (const char *)left;
      next_right += 64 * depth;
      if (next_right >= right_end) next_right = (const char *)left;
    }}
    row += high ? {high} : {low};
  }}
}}
"""


def _copy(of: Shape) -> str:
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


def _spread(of: Shape) -> str:
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


def _transpose(of: Shape) -> str:
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


def _stream(of: Shape) -> str:
    """A few packed rows against a right operand read in place, rows of it at a time."""
    type, upper, n = of.type, of.tag.upper(), of.vector
    vector = f"geon_vector_{of.tag}"
    wide = n * _SIZES[type] == 64
    # Rows and summed indices at a time: their products stay in registers, as do the right rows.
    blocks = ((4, 4), (2, 8), (1, 8), (1, 1)) if wide else ((2, 4), (1, 4), (1, 1))
    unroll = 8 if wide else 4

    def block(rows: int, deep: int, pad: str) -> list[str]:
        cells = [(r, k) for r in range(rows) for k in range(deep)]
        lines = [
            f"const {type} x{r}_{k} = a[{r} * line + {k}];\n"
            f"  const {vector} a{r}_{k} = GEON_SPLAT_{upper}(x{r}_{k});"
            for r, k in cells
        ]
        lines += [f"const {type} *row{k} = b + {k} * step;" for k in range(deep)]
        lines += ["int64_t column = 0;", f"for (; column + {n} <= width; column += {n}) {{"]
        for k in range(deep):
            lines.append(f"  {vector} b{k} = *(const {vector} *)(row{k} + column);")
            lines.append(f"  GEON_HOLD_{upper}(b{k});" if rows > 1 else "")
        lines += [
            f"  {vector} c{r} = *({vector} *)(c + {r} * out_step + column);" for r in range(rows)
        ]
        lines += [
            f"  c{r} = GEON_VECTOR_FMA_{upper}(a{r}_{k}, b{k}, c{r});"
            for k in range(deep)
            for r in range(rows)
        ]
        lines += [f"  *({vector} *)(c + {r} * out_step + column) = c{r};" for r in range(rows)]
        lines += [
            "}",
            "if (column < width)",
            f"  geon_stream_end_{of.tag}({rows}, {deep}, width - column, a, line, b + column, step,"
            " c + column, out_step);",
        ]
        return [pad + line for line in lines if line]

    # A chunk of `unroll` rows stays in the first cache while all rows on the left use it.
    chunk = 16384 // _SIZES[type] // unroll
    lines = [
        f"static GEON_QUICK void geon_stream_end_{of.tag}(",
        f"    int64_t rows, int64_t deep, int64_t width, const {type} *a, int64_t line,",
        f"    const {type} *b, int64_t step, {type} *c, int64_t out_step) {{",
        "  for (int64_t r = 0; r < rows; ++r)",
        "    for (int64_t e = 0; e < width; ++e) {",
        f"      {type} sum = c[r * out_step + e];",
        "      for (int64_t k = 0; k < deep; ++k)",
        f"        sum = GEON_SCALAR_FMA_{upper}(a[r * line + k], b[k * step + e], sum);",
        "      c[r * out_step + e] = sum;",
        "    }",
        "}",
    ]
    for rows, deep in blocks:
        lines += [
            f"static GEON_QUICK void geon_stream_{rows}_{deep}_{of.tag}(",
            f"    int64_t width, const {type} *restrict a, int64_t line,",
            f"    const {type} *restrict b, int64_t step, {type} *restrict c, int64_t out_step) {{",
            "  (void)line; (void)step; (void)out_step;",
            *block(rows, deep, "  "),
            "}",
        ]
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
    lines += [
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
        "",
    ]
    return "\n".join(lines)


def _halves(n: int) -> list[int]:
    """n / 2, n / 4, ... 1."""
    return [] if n == 1 else [n // 2, *_halves(n // 2)]


def _dots(of: Shape) -> str:
    """A few packed rows against a right operand whose summed dimension is adjacent."""
    type, upper, n = of.type, of.tag.upper(), of.vector
    vector = f"geon_vector_{of.tag}"

    def block(rows: int, columns: int, pad: str) -> list[str]:
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
            lines += [
                f"{pad}  c{r}_{c} = GEON_VECTOR_FMA_{upper}(a{r}, b{c}, c{r}_{c});"
                for r in range(rows)
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

    lines = [
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
        f"static GEON_QUICK void geon_dots_{of.tag}(",
        f"    int64_t rows, int64_t columns, int64_t depth, const {type} *left, int64_t line,",
        f"    const {type} *right, int64_t step, {type} *out, int64_t out_step,",
        "    int accumulate) {",
        "  for (int64_t column = 0; column < columns;) {",
        f"    const {type} *b = right + column * step;",
        "    if (columns - column < 4) {",
        "      for (int64_t row = 0; row < rows; ++row) {",
        f"        const {type} *a = left + row * line;",
        *block(1, 1, "        "),
        "      }",
        "      column += 1;",
        "      continue;",
        "    }",
        "    for (int64_t row = 0; row < rows;) {",
        f"      const {type} *a = left + row * line;",
        "      if (rows - row == 1) {",
        *block(1, 4, "        "),
        "        row += 1;",
        "      } else {",
        *block(2, 4, "        "),
        "        row += 2;",
        "      }",
        "    }",
        "    column += 4;",
        "  }",
        "}",
        "",
    ]
    return "\n".join(lines)


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
/* How a product is cut: blocks of rows and columns, items (blocks of all batches), and tasks, each
   of neighbouring items. Nothing here changes a result: each is summed in one order. */
struct geon_split {
  int64_t row_block, column_block, depth_block, row_blocks, column_blocks, items, tasks;
};
static GEON_QUICK struct geon_split geon_split(int64_t batches, int64_t rows,
    int64_t columns, int64_t depth, int64_t most_columns, int64_t most_depth, int64_t panel,
    int few, int32_t threads) {
  struct geon_split s;
  const int64_t wide = few ? (rows <= 8 ? 8 : 2) * most_columns : most_columns;
  const int64_t least = few ? most_columns : 4 * panel;
  const double work = (double)batches * (double)rows * (double)columns * (double)(depth + 4);
  const int64_t parts = threads > 1 && work > 1e5 ? 4 * (int64_t)threads : 1;
  int64_t row_block = geon_share(rows, 480, 12), column_block = geon_share(columns, wide, panel);
  for (;;) {
    s.row_blocks = (rows + row_block - 1) / row_block;
    s.column_blocks = (columns + column_block - 1) / column_block;
    s.items = batches * s.row_blocks * s.column_blocks;
    if (s.items >= parts || work / (double)s.items < 1e5) break;
    if (row_block > 96 && (row_block >= column_block || column_block <= least))
      row_block = geon_share(row_block, row_block / 2, 12);
    else if (column_block > least)
      column_block = geon_share(column_block, column_block / 2, panel);
    else break;
  }
  s.row_block = row_block;
  s.column_block = column_block;
  s.depth_block = geon_share(depth, few && rows <= 16 ? 10 * most_depth : most_depth, 8);
  int64_t most = parts > 1 ? 2 * parts : 1;
  if (work < 2e5 * (double)most) most = (int64_t)(work / 2e5) + 1;
  s.tasks = s.items < most ? s.items : most;
  return s;
}
"""
