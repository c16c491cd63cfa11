"""The C statements of one block of a product: packed, multiplied group by group, and stored."""

from __future__ import annotations

from .product_packing import View
from .product_parts import Parts
from .product_shape import GROUP
from .product_walk import Dimension, at, decompose, indent, walk


class Blocks(Parts):
    """The text of one block of rows and columns of one batch."""

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

    def group(self) -> list[str]:
        """One group of rows: packed, multiplied, and stored after the last summed block."""
        pack, store = self.pack(left=True), self.part_store() if self.in_parts else self.store()
        if self.near_rows is not None:
            pack = [
                f"const int near_rows = {self.near_rows};",
                "if (!near_rows) {",
                *indent(pack),
                "}",
            ]
        stored = "!straight && " if self.result is not None else ""
        return [
            "const int64_t height = block_end - row_start < "
            f"{GROUP} ? block_end - row_start : {GROUP};",
            *pack,
            *self.out(),
            *self.product_of_group(),
            f"if ({stored}depth_start + depth_run >= depth_last) {{",
            *indent(store),
            "}",
        ]

    def out(self) -> list[str]:
        """Where the group's sums go: scratch memory, or the result itself."""
        sums = "sums + (depth > depth_block ? (row_start - block_start) * sums_step : 0);"
        if self.result is None:
            return [f"{self.of.type} *const out = {sums}"]
        step = [f"out_step = {self.result.line_step};"]
        return [
            f"{self.of.type} *out = {sums}",
            "int64_t out_step = sums_step;",
            f"const int straight = {self.straight()};",
            "if (straight) {",
            *indent([*_place("out", self.result, "row_start", "column_start"), *step]),
            "}",
        ]

    def product_of_group(self) -> list[str]:
        """The group's rows times the block's columns, in place or by register tiles."""
        if self.few == "1":
            return self.in_place()
        tiles = self.tiles()
        if self.few == "0":
            return ["{", *indent(tiles), "}"]
        return ["if (direct) {", *indent(self.in_place()), "} else {", *indent(tiles), "}"]

    def tiles(self) -> list[str]:
        """Register tiles over packed operands, or over those that lie well where they are."""
        panel, type = self.of.panel, self.of.type
        lines = [
            *self.next(),
            f"const {type} *rows_at = left, *columns_at = panels;",
            f"int64_t rows_step = left_step, panel_step = {panel} * depth_run,"
            f" columns_step = {panel};",
        ]
        if self.near_rows is not None:
            found = self.left.view
            assert found is not None
            lines += [
                "if (near_rows) {",
                *indent(_place("rows_at", found, "row_start", "depth_start")),
                f"  rows_step = {found.line_step};",
                "}",
            ]
        if self.near is not None:
            found = self.right.view
            assert found is not None
            lines += [
                "if (near) {",
                *indent(_place("columns_at", found, "column_start", "depth_start")),
                f"  panel_step = {panel};",
                f"  columns_step = {found.summed_step};",
                "}",
            ]
        out_step = "sums_step" if self.result is None else "out_step"
        return [
            *lines,
            f"geon_tiles_{self.of.tag}(height, width, depth_run, rows_at, rows_step, columns_at,",
            f"  panel_step, columns_step, out, {out_step}, depth_start > depth_first, next);",
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


def _place(pointer: str, found: View, line: str, summed: str) -> list[str]:
    """Sets a pointer to a view's element at one flat index of its lines, one of the others."""
    starts: tuple[tuple[tuple[Dimension, ...], str], ...] = (
        (found.lines, line),
        (found.summed, summed),
    )
    found_at = [text for dimensions, flat in starts for text in decompose(dimensions, flat)]
    return [*found_at, f"{pointer} = {found.address};"]
