"""The C functions of one product: the task, what it packs and stores, and the call that runs it."""

from __future__ import annotations

from .product_block import Blocks
from .product_shape import GROUP
from .product_walk import indent


class ProductText(Blocks):
    """The text of one product."""

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


_OWN = frozenset(
    """threads argument index split geon_given batches rows columns depth row_block column_block
    depth_block row_blocks column_blocks direct left_step sums_step near near_rows straight next
    rows_at columns_at rows_step panel_step columns_step out_step left_size
    panels_size sums_size staged_size scratch left panels sums staged last item column_start
    block_start width block_end depth_start depth_run row_start height out line row value here
    deep e d l part parts part_sums depth_first depth_last c r panel first_column some
    batch""".split()
)
