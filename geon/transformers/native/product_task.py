"""The C functions of one product: the task, what it packs and stores, and the call that runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .product_packing import Operand, Packing
from .product_shape import GROUP, Shape
from .product_walk import Dimension, at, decompose, indent, size, times, walk

FEW = {"stream": 32, "dots": 12}
"""Up to so many rows, a right operand in memory is read in place."""

PARTS = 16384
"""From so many summed indices on, a product of few elements is summed in parts."""

NEAR = 32768
"""A right operand that spans no more bytes than this is read where it lies by register tiles."""


@dataclass(frozen=True)
class Product:
    """C[batch, rows, columns] = sum over summed of left[batch, rows, summed] * right[...].

    `type` is "float" or "double", the type of the sums. `store` makes the C statements that store
    one element from the indices' texts and the value's; `store_unit` is the dimension along which
    stores adjoin. `arguments` is the C parameter list that all texts refer to and `call` its names,
    none of which may be a name of the product's own functions (a `ValueError` says which).
    """

    name: str
    type: str
    batch: tuple[Dimension, ...]
    rows: tuple[Dimension, ...]
    columns: tuple[Dimension, ...]
    summed: tuple[Dimension, ...]
    left: Operand
    right: Operand
    store: Callable[[Mapping[str, str], str], list[str]]
    store_unit: str | None
    arguments: str
    call: str


class ProductText:
    """The parts of one product's text."""

    def __init__(self, product: Product, of: Shape) -> None:
        self.product, self.of = product, of
        self.functions: list[str] = []
        self.left = Packing(product.left, of, product.batch, product.rows, product.summed)
        self.right = Packing(product.right, of, product.batch, product.columns, product.summed)
        self.sizes = {
            "batches": size(product.batch),
            "rows": size(product.rows),
            "columns": size(product.columns),
            "depth": size(product.summed),
        }
        self.parameters = [p.strip() for p in product.arguments.split(",") if p.strip()]
        self.direct = self.direct_function()
        self.names = [re.findall(r"[A-Za-z_]\w*", p)[-1] for p in self.parameters]
        self.few = self.few_test()
        self.in_parts = self.parts_test()
        self.near = self.near_test() if self.direct == "stream" and self.few != "1" else None

    def direct_function(self) -> str | None:
        """What multiplies few rows by the right operand in place, if it can."""
        found = self.right.view
        if found is None or len(found.lines) > 1 or len(found.summed) > 1:
            return None
        return "stream" if found.line_step == "1" else "dots"

    def few_test(self) -> str:
        """When rows are few enough to read the right operand in place: C text, 0 or 1."""
        limits = []
        if self.direct is None:
            return "0"
        least = 3 * self.of.vector if self.direct == "stream" else 1
        for text, holds, test in (
            (
                self.sizes["rows"],
                lambda n: n <= FEW[self.direct or ""],
                f"rows <= {FEW[self.direct]}",
            ),
            (self.sizes["columns"], lambda n: n >= least, f"columns >= {least}"),
        ):
            if not text.isdigit():
                limits.append(test)
            elif not holds(int(text)):
                return "0"
        return " && ".join(limits) or "1"

    def near_test(self) -> str | None:
        """When tiles read the right operand in place: small, and of whole vectors."""
        found = self.right.view
        assert found is not None
        step, columns = times(found.summed_step, str(self.of.bytes)), self.sizes["columns"]
        if columns.isdigit() and int(columns) % self.of.vector:
            return None
        if step.isdigit() and self.sizes["depth"].isdigit():
            if int(step) * min(int(self.sizes["depth"]), self.of.depth) > NEAR:
                return None
        return f"depth_run * {step} <= {NEAR} && width % {self.of.vector} == 0"

    def make(self) -> list[str]:
        name, product = self.product.name, self.product
        task, call = self.task(), self.caller()
        self.check()
        comma = ", " if product.arguments else ""
        return [
            f"struct {name}_arguments {{",
            *indent([f"{p};" for p in self.parameters]),
            "  struct geon_split split;",
            f"  {self.of.type} *part_sums;",
            "};",
            *self.functions,
            f"static GEON_QUICK void {name}_task(void *argument, int64_t index) {{",
            *indent(task),
            "}",
            f"static GEON_QUICK void {name}(int32_t threads{comma}{product.arguments}) {{",
            *indent(call),
            "}",
        ]

    def check(self) -> None:
        """Raises where a name of the caller's is one that the text declares itself."""
        clash = _OWN.intersection(self.names)
        if clash:
            raise ValueError(
                f"a product's argument is named {sorted(clash)[0]!r}, a name of its own"
            )

    def extents(self) -> list[str]:
        return [f"const int64_t {name} = {text};" for name, text in self.sizes.items()]

    def caller(self) -> list[str]:
        """The function that cuts the product up and runs its tasks."""
        name, of = self.product.name, self.of
        elements = of.few_elements if self.in_parts else 0
        values = ", ".join([*(n.strip() for n in self.product.call.split(",") if n.strip())])
        comma = ", " if values else ""
        return [
            *self.extents(),
            "if (batches <= 0 || rows <= 0 || columns <= 0) return;",
            f"struct {name}_arguments geon_given = {{{values}{comma}",
            "  geon_split(batches, rows, columns, depth, "
            f"{of.columns}, {of.depth}, {of.panel}, {self.few}, {elements}, threads), NULL}};",
            *self.parts_start(),
            f"if (geon_given.split.tasks == 1) {name}_task(&geon_given, 0);",
            f"else geon_pool_run({name}_task, &geon_given, geon_given.split.tasks, threads);",
            *self.parts_end(),
        ]

    def parts_test(self) -> bool:
        """Whether there may be few elements with long sums, as far as constant extents say."""
        known, depth = 1, self.sizes["depth"]
        for text in (self.sizes[name] for name in ("batches", "rows", "columns")):
            known *= int(text) if text.isdigit() else 1
        return known <= self.of.few_elements and (not depth.isdigit() or int(depth) >= PARTS)

    def parts_start(self) -> list[str]:
        """Memory for the parts' sums."""
        if not self.in_parts:
            return []
        elements = "batches * rows * columns"
        return [
            "const int64_t parts = geon_given.split.parts;",
            f"{self.of.type} part_sums[parts > 1 ? parts * {elements} : 1];",
            "if (parts > 1) geon_given.part_sums = part_sums;",
        ]

    def parts_end(self) -> list[str]:
        """The parts' sums added in order, and stored."""
        if not self.in_parts:
            return []
        elements = "batches * rows * columns"
        return [
            "if (parts <= 1) return;",
            f"for (int64_t e = {elements}; e < parts * {elements}; ++e)",
            f"  part_sums[e % ({elements})] += part_sums[e];",
            "for (int64_t batch = 0; batch < batches; ++batch)",
            f"  {self.product.name}_store(&geon_given, batch, 0, rows, 0, columns,",
            "    part_sums + batch * rows * columns, columns);",
        ]

    def unpack(self) -> list[str]:
        """The arguments as variables."""
        return [
            f"{p} = geon_given->{argument}; (void){argument};"
            for p, argument in zip(self.parameters, self.names, strict=True)
        ]

    def function(self, part: str, parameters: str, lines: list[str]) -> list[str]:
        """Moves lines that a compiler should look at closely to a function; gives the call."""
        name = f"{self.product.name}_{part}"
        values = [re.findall(r"\w+", parameter)[-1] for parameter in parameters.split(",")]
        self.functions += [
            f"static __attribute__((noinline)) void {name}(",
            f"    const struct {self.product.name}_arguments *geon_given, int64_t batch,",
            f"    {parameters}) {{",
            "  (void)batch;",
            *(f"  (void){value};" for value in values),
            *indent([*self.unpack(), *decompose(self.product.batch, "batch"), *lines]),
            "}",
        ]
        return [f"{name}(geon_given, batch, {', '.join(values)});"]

    def pack(self, left: bool) -> list[str]:
        """The packing of an operand's block, computed elements in a function of their own."""
        packing, type = (self.left if left else self.right), self.of.type
        lines = packing.left() if left else packing.right()
        if packing.view is None:
            block = "row_start, int64_t height" if left else "column_start, int64_t width"
            to = f"{type} *restrict {'left' if left else 'panels'}"
            step = "int64_t left_step" if left else "int64_t depth_block"
            rest = f", {type} *restrict staged" if packing.staged(left) != "0" else ""
            sizes = f"int64_t {block}, int64_t depth_start, int64_t depth_run"
            side = "left" if left else "right"
            lines = self.function(side, f"{sizes}, {to}, {step}{rest}", lines)
        return [*lines, *packing.left_end()] if left else lines

    def task(self) -> list[str]:
        name, type, of = self.product.name, self.of.type, self.of
        blocks = ("row_block", "column_block", "depth_block", "row_blocks", "column_blocks")
        staged = [s for s in (self.left.staged(True), self.right.staged(False)) if s != "0"]
        sizes = {
            "left": f"direct ? rows * left_step : {GROUP} * {of.line}"
            if self.few != "0"
            else f"{GROUP} * {of.line}",
            "panels": {"0": "column_block * depth_block", "1": "0"}.get(
                self.few, "direct ? 0 : column_block * depth_block"
            ),
            "sums": f"(depth > depth_block ? (row_block + {GROUP - 1}) / {GROUP} : 1)"
            f" * {GROUP} * sums_step",
            "staged": " + ".join(staged) or "0",
        }
        parts = [part for part in sizes if sizes[part] != "0"]
        total = " + ".join(f"{part}_size" for part in parts)
        lines = [
            f"const struct {name}_arguments *geon_given = argument;",
            "const struct geon_split *split = &geon_given->split;",
            *self.unpack(),
            *self.extents(),
            *(f"const int64_t {block} = split->{block};" for block in blocks),
            f"const int direct = {self.few};",
            f"const int64_t left_step = direct ? depth_block + {of.vector} : {of.line};",
            f"const int64_t sums_step = column_block + {of.vector};",
        ]
        before = "0"
        for part in parts:
            lines.append(f"const int64_t {part}_size = (({sizes[part]}) + 63) / 64 * 64;")
        lines.append(f"{type} *const scratch = geon_scratch((size_t)({total}) * sizeof({type}));")
        for part in parts:
            lines.append(f"{type} *const {part} = scratch + {before};")
            before = f"{part}_size" if before == "0" else f"{before} + {part}_size"
        return [
            *lines,
            "(void)batches;",
            "const int64_t last = split->items * (index + 1) / split->tasks;",
            "for (int64_t item = split->items * index / split->tasks; item < last; ++item) {",
            *indent(self.item()),
            "}",
        ]

    def item(self) -> list[str]:
        """One block of rows and columns of one batch."""
        pack = self.pack(left=False) if self.few != "1" else []
        if self.few not in ("0", "1") or self.near is not None:
            skip = " && ".join(
                (["!direct"] if self.few != "0" else []) + (["!near"] if self.near else [])
            )
            pack = [f"if ({skip}) {{", *indent(pack), "}"]
        if self.near is not None:
            pack = [f"const int near = {self.near};", *pack]
        return [
            "const int64_t column_start = item % column_blocks * column_block;",
            "const int64_t block_start = item / column_blocks % row_blocks * row_block;",
            *(
                [
                    "const int64_t batch = item / column_blocks / row_blocks % batches;",
                    "const int64_t part = item / column_blocks / row_blocks / batches;",
                    "const int64_t depth_first = part * split->part_depth;",
                    "const int64_t depth_last = depth - depth_first < split->part_depth"
                    " ? depth : depth_first + split->part_depth;",
                ]
                if self.in_parts
                else [
                    "const int64_t batch = item / column_blocks / row_blocks;",
                    "const int64_t depth_first = 0, depth_last = depth;",
                ]
            ),
            "(void)batch;",
            *decompose(self.product.batch, "batch"),
            "const int64_t width = columns - column_start < column_block"
            " ? columns - column_start : column_block;",
            "const int64_t block_end = rows - block_start < row_block"
            " ? rows : block_start + row_block;",
            "for (int64_t depth_start = depth_first;"
            " depth_start == depth_first || depth_start < depth_last;",
            "     depth_start += depth_block) {",
            "  const int64_t depth_run = depth_last - depth_start < depth_block"
            " ? depth_last - depth_start : depth_block;",
            *indent(pack),
            "  for (int64_t row_start = block_start; row_start < block_end;"
            f" row_start += {GROUP}) {{",
            *indent(self.group(), 2),
            "  }",
            "}",
        ]

    def group(self) -> list[str]:
        """One group of rows: packed, multiplied, and stored after the last summed block."""
        of = self.of
        end = "out, sums_step, depth_start > depth_first, next);"
        packed = f"panels, {of.panel} * depth_run, {of.panel}"
        tiles = [f"geon_tiles_{of.tag}(height, width, depth_run, left, {packed}, {end}"]
        if self.near is not None:
            found = self.right.view
            assert found is not None
            tiles = [
                *decompose(found.lines, "column_start"),
                *decompose(found.summed, "depth_start"),
                f"geon_tiles_{of.tag}(height, width, depth_run, left,"
                f" near ? {found.address} : panels, near ? {of.panel} : {of.panel} * depth_run,"
                f" near ? {found.summed_step} : {of.panel}, {end}",
            ]
        tiles = [*self.next(), "{", *indent(tiles), "}"]
        if self.few != "0":
            tiles = (
                ["if (direct) {", *indent(self.in_place()), "} else {", *indent(tiles), "}"]
                if self.few != "1"
                else self.in_place()
            )
        return [
            "const int64_t height = block_end - row_start < "
            f"{GROUP} ? block_end - row_start : {GROUP};",
            *self.pack(left=True),
            f"{of.type} *const out = sums"
            " + (depth > depth_block ? (row_start - block_start) * sums_step : 0);",
            *tiles,
            "if (depth_start + depth_run >= depth_last) {",
            *indent(self.part_store() if self.in_parts else self.store()),
            "}",
        ]

    def next(self) -> list[str]:
        """What lies in memory behind the blocks at hand, where that may be what is packed next."""
        left, right, tag = self.left.view, self.right.view, self.of.tag
        lines = [f"struct geon_next_{tag} next = {{left, left, 0, 0}};"]
        if left is not None and left.whole:
            lines += [
                "if (depth_run == depth) {",
                *indent(decompose(left.lines, "row_start")),
                *indent(decompose(left.summed, "0")),
                f"  next.left = {left.address} + height * depth;",
                "  next.left_size = height * depth;",
                "}",
            ]
        if (
            right is not None
            and right.whole
            and any(right.strides[name] != "0" for name in right.batch)
        ):
            lines += [
                "if (depth_run == depth && width == columns) {",
                *indent(decompose(right.lines, "0")),
                *indent(decompose(right.summed, "0")),
                "  next.right_size = depth * columns * height / (block_end - block_start);",
                f"  next.right = {right.address} + depth * columns",
                "    + depth * columns * (row_start - block_start) / (block_end - block_start);",
                "}",
            ]
        return lines

    def in_place(self) -> list[str]:
        """Few rows against the right operand where it lies."""
        found = self.right.view
        assert found is not None
        step = found.summed_step if self.direct == "stream" else found.line_step
        starts = (("column_start", found.lines), ("depth_start", found.summed))
        return [
            *(line for flat, dimensions in starts for line in decompose(dimensions, flat)),
            f"geon_{self.direct}_{self.of.tag}(height, width, depth_run, left, left_step,"
            f" {found.address}, {step}, out, sums_step, depth_start > depth_first);",
        ]

    def part_store(self) -> list[str]:
        """The part's sums put by, or the elements stored where there is one part."""
        place = "((part * batches + batch) * rows + row_start) * columns + column_start"
        return [
            "if (split->parts > 1) {",
            f"  geon_copy_{self.of.tag}(geon_given->part_sums + {place}, columns,",
            "    out, sums_step, height, width);",
            "} else {",
            *indent(self.store()),
            "}",
        ]

    def store(self) -> list[str]:
        """The caller's statements on every element of the group."""
        product, type = self.product, self.of.type
        indices = {d.name: at(d.name) for d in (*product.batch, *product.rows, *product.columns)}
        inner = product.columns[-1:]
        here = [f"const int64_t here = {at(d.name)} + e;" for d in inner]
        here += ["(void)here;" for _ in inner]
        indices.update({d.name: "here" for d in inner})

        def body(column: str, run: str) -> list[str]:
            return [
                "#pragma omp simd",
                f"for (int64_t e = 0; e < {run}; ++e) {{",
                *indent(
                    [
                        *here,
                        f"const {type} value = line[{column} + e];",
                        *product.store(indices, "value"),
                    ]
                ),
                "}",
            ]

        lines = [
            "for (int64_t row = 0; row < height; ++row) {",
            *indent(
                [
                    f"const {type} *restrict line = out + row * sums_step;",
                    *decompose(product.rows, "row_start + row"),
                    *walk(product.columns, "column_start", "width", body),
                ]
            ),
            "}",
        ]
        block = "int64_t row_start, int64_t height, int64_t column_start, int64_t width"
        return self.function(
            "store", f"{block}, const {type} *restrict out, int64_t sums_step", lines
        )


_OWN = frozenset(
    """threads argument index split geon_given batches rows columns depth row_block column_block
    depth_block row_blocks column_blocks direct left_step sums_step near next left_size
    panels_size sums_size staged_size scratch left panels sums staged last item column_start
    block_start width block_end depth_start depth_run row_start height out line row value here
    deep e d l part parts part_sums depth_first depth_last c r panel first_column some
    batch""".split()
)
