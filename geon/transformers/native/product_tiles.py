"""C functions of register tiles, and the vectors they are written in."""

from .product_shape import Shape


def vector_text(of: Shape) -> str:
    """The vector type, its fused multiply-add, and how a value is kept in a register."""
    tag, size = of.tag, of.bytes
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
#elif {arm} && __has_builtin({neon})
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
    return (12, 4) if of.vector * of.bytes == 64 else (6, 2)


def tile_text(of: Shape, height: str, width: int) -> str:
    """One register tile: out[row][column] (+)= sum over k of left[row][k] * right[k][column].

    Registers hold the sum of ``chain`` terms at most, and are then added to ``out``.
    """
    rows, upper = heights(of)[height == "low"], of.tag.upper()
    vector = f"geon_vector_{of.tag}"
    cells = [[f"c{r}_{c}" for c in range(width)] for r in range(rows)]
    places = {
        cell: f"*({vector} *)(out + {r} * out_step + {c * of.vector})"
        for r, line in enumerate(cells)
        for c, cell in enumerate(line)
    }
    right = [f"b{c}" for c in range(width)]
    # Three rows to a pointer: its own place, one line on and two, which processors add for free.
    moves = ", ".join(f"++left{r}" for r in range(0, rows, 3))
    lines = [
        f"static GEON_QUICK void geon_{height}_{width}_{of.tag}(",
        f"    int64_t depth, const {of.type} *restrict left, int64_t line,",
        f"    const {of.type} *restrict right, int64_t step, {of.type} *restrict out,",
        "    int64_t out_step, int accumulate, int64_t chain, const char *next_left,",
        "    const char *next_right) {",
        *(f"  const {of.type} *left{r} = left + {r} * line;" for r in range(0, rows, 3)),
        "  int64_t k = 0;",
        "  do {",
        "  const int64_t end = k + chain < depth ? k + chain : depth;",
        f"  {vector} {', '.join(places)};",
        f"  {' = '.join(places)} = ({vector}){{0}};",
        f"  for (; k < end; ++k, {moves}, right += step) {{",
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
        lines.append(f"    x = left{r // 3 * 3}[{r % 3} * line], a = GEON_SPLAT_{upper}(x);")
        lines += [
            f"    {cell} = GEON_VECTOR_FMA_{upper}(a, {b}, {cell});"
            for cell, b in zip(line, right, strict=True)
        ]
    lines += [
        "  }",
        "  if (accumulate) {",
        *(f"    {place} += {cell};" for cell, place in places.items()),
        "  } else {",
        *(f"    {place} = {cell};" for cell, place in places.items()),
        "  }",
        "  accumulate = 1;",
        "  } while (k < depth);",
        "}",
        "",
    ]
    return "\n".join(lines)


def tiles_text(of: Shape) -> str:
    """All tiles of a group of packed rows against a block of panels.

    Meanwhile what will be packed next comes near: a line of each side for every summed index.
    """
    high, low = heights(of)
    tag, type, vector, panel = of.tag, of.type, of.vector, of.panel
    call = "(depth, a, line, b, step, c, out_step, accumulate, chain, next_left, next_right)"
    return f"""\
struct geon_next_{tag} {{
  const {type} *left, *right;
  int64_t left_size, right_size;
}};
static GEON_QUICK void geon_tiles_{tag}(
    int64_t rows, int64_t columns, int64_t depth, const {type} *left, int64_t line,
    const {type} *right, int64_t panel_step, int64_t step, {type} *out, int64_t out_step,
    int accumulate, int64_t chain, struct geon_next_{tag} next) {{
  const char *next_left = (const char *)next.left, *next_right = (const char *)next.right;
  const char *const left_end = next_left + next.left_size * {of.bytes};
  const char *const right_end = next_right + next.right_size * {of.bytes};
  for (int64_t row = 0; row < rows;) {{
    const int high = rows - row > {high - low};
    const {type} *a = left + row * line, *b = right;
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
