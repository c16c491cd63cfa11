"""Emit the packing of a product's operands: copies, transposes or computed elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import as_one
from ...printing.nests.contractions import PrintedElement
from ...sizes.product_blocks import FEW_ROWS_PANELS, MAX_SHALLOW_DEPTH, ROWS_PER_GROUP, Shape
from .multi_index import Walker, indent, index_name, size
from .operand_views import Operand, View, view
from .packing_copies import PackingMoves


@dataclass(frozen=True)
class PackingWriter:
    """Emits the code that packs a block of one operand; batch indices are in scope.

    A block of the left operand has `height` rows from `row_start`, at most `GROUP`, in `left`. A
    block of the right operand has `width` columns from `column_start`, in `panels`. Both have
    `depth_run` summed indices from `depth_start`.
    """

    operand: Operand
    of: Shape
    batch: tuple[Loop, ...]
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    walker: Walker

    @cached_property
    def view(self) -> View | None:
        """Return the operand as a view in memory, or None."""
        return view(self.operand, self.of.type, self.batch, self.lines, self.summed)

    @property
    def plain(self) -> View | None:
        """Return the view if it has one stride along lines and one along summed indices."""
        found = self.view
        return found if found is not None and found.is_plain else None

    @property
    def along_lines(self) -> bool:
        """Return True if elements are best computed along rows or columns."""
        return any(d.name == self.operand.unit for d in self.lines[-1:])

    @property
    def along_summed(self) -> bool:
        """Return True if elements are best computed along the summed index."""
        return any(d.name == self.operand.unit for d in self.summed[-1:])

    @property
    def own_lines(self) -> tuple[Loop, ...]:
        """Return the loops over lines, collapsed as far as elements allow."""
        return as_one(self.lines, self.operand.joined)[0]

    @property
    def own_summed(self) -> tuple[Loop, ...]:
        """Return the summed loops, collapsed as far as elements allow."""
        return as_one(self.summed, self.operand.joined)[0]

    def is_run(self, outer: Sequence[Loop], inner: Sequence[Loop], most: int) -> bool:
        """Return True if a block with all iterations of `inner`, at most `most`, is one loop."""
        count = size(inner)
        if not (isinstance(count, int) and count <= most and len(outer) == len(inner) == 1):
            return False
        return (outer[0].name, inner[0].name) in self.operand.joined

    def runs_along_lines(self, left: bool) -> bool:
        """Return True if a block is computed in one loop in which the lines of a summed index are
        contiguous.

        The block has all lines. Columns that are packed like rows are at most `WHOLE` panels.
        """
        most = min(ROWS_PER_GROUP, FEW_ROWS_PANELS * self.of.panel) if left else self.of.panel
        return self.along_lines and self.is_run(self.own_summed, self.own_lines, most)

    @property
    def runs_along_summed(self) -> bool:
        """Return True if a block is computed in one loop in which a line's summed indices are
        contiguous.
        """
        return self.is_run(self.own_lines, self.own_summed, MAX_SHALLOW_DEPTH)

    def staged(self, left: bool) -> int:
        """Return the maximum elements of the staging buffer for each summed index."""
        if self.view is not None:
            return 0
        if left:
            return ROWS_PER_GROUP if self.along_lines else 0
        return self.of.panel if self.along_summed or self.runs_along_lines(False) else 0

    def left(self) -> list[str]:
        """Return the statements that pack rows."""
        found, tag = self.view, self.of.tag
        if found is not None:
            lines = self.moved(found, "row_start", "height", "left", "left_step", True)
        elif self.runs_along_lines(True):
            lines = [
                *self.run("height * depth_run", "staged"),
                f"geon_transpose_{tag}(left, left_step, staged, height, depth_run, height);",
            ]
        elif self.along_lines:
            lines = [
                *self.computed_along_lines(
                    "row_start", "height", lambda k, r: f"staged[({k}) * height + {r}]"
                ),
                f"geon_transpose_{tag}(left, left_step, staged, height, depth_run, height);",
            ]
        elif self.runs_along_summed:
            lines = self.run("height * depth_run", "left", "row_start")
        else:
            lines = self.computed_along_summed("row_start", "height", "left", "left_step")
        return lines

    def right(self) -> list[str]:
        """Return the statements that pack columns into panels, padded with zeros."""
        found, tag, panel = self.view, self.of.tag, self.of.panel
        if found is None and self.runs_along_lines(False):
            return [
                *self.run("width * depth_run", "staged"),
                f"memset(panels, 0, (size_t)depth_run * {panel} * sizeof *panels);",
                f"geon_copy_{tag}(panels, {panel}, staged, width, depth_run, width);",
            ]
        if found is None and not self.along_summed:
            rest = f"{panel} * depth_run, staged, {panel}, (width + {panel - 1}) / {panel}, {panel}"
            return [
                f"for (int64_t c = width; c % {panel}; ++c) staged[c] = 0;",
                *self.computed_along_lines(
                    "column_start",
                    "width",
                    lambda k, c: f"staged[{c}]",
                    lambda k: [f"geon_copy_{tag}(panels + ({k}) * {panel}, {rest});"],
                ),
            ]
        if found is not None:
            lines = self.moved(found, "first_column", "some", "panel", str(panel), False)
        elif self.runs_along_summed:
            lines = [
                *self.run("some * depth_run", "staged", "first_column"),
                f"geon_transpose_{tag}(panel, {panel}, staged, depth_run, some, depth_run);",
            ]
        else:
            lines = [
                *self.computed_along_summed("first_column", "some", "staged", "depth_block"),
                f"geon_transpose_{tag}(panel, {panel}, staged, depth_block, some, depth_run);",
            ]
        return [
            f"for (int64_t c = 0; c < width; c += {panel}) {{",
            *indent(
                [
                    "const int64_t first_column = column_start + c;",
                    f"const int64_t some = width - c < {panel} ? width - c : {panel};",
                    f"{self.of.type} *panel = panels + c * depth_run;",
                    f"if (some < {panel})",
                    f"  memset(panel, 0, (size_t)depth_run * {panel} * sizeof *panel);",
                    *lines,
                ]
            ),
            "}",
        ]

    def run(self, count: str, to: str, first_line: str | None = None) -> list[str]:
        """Return one loop over contiguous elements: of whole lines from `first_line` on, or of all
        lines of the summed indices from `depth_start` on.
        """
        outer, inner = self.own_summed, self.own_lines
        start = "depth_start"
        if first_line is not None:
            outer, inner, start = inner, outer, first_line
        return [
            "{",
            *indent(
                [
                    *self.walker.decompose(outer, start),
                    *self.walker.decompose(inner, "0"),
                    *self.loop(inner, count, {}, f"{to}[e]"),
                ]
            ),
            "}",
        ]

    def moved(
        self, found: View, start: str, length: str, to: str, step: str, lines_first: bool
    ) -> list[str]:
        """Return copies or transposes of a view's elements into the block."""
        return PackingMoves(self.walker, self.of.tag, found, to, step, lines_first).text(
            start, length
        )

    def computed_along_summed(self, start: str, length: str, to: str, step: str) -> list[str]:
        """Return a loop over lines, each computed along the summed index."""
        inner = self.own_summed[-1:]
        loops = self.walker.walk(
            self.own_summed,
            "depth_start",
            "depth_run",
            lambda k, ks: self.loop(inner, ks, {}, f"{to}[l * {step} + {k} + e]"),
        )
        return [
            f"for (int64_t l = 0; l < {length}; ++l) {{",
            *indent([*self.walker.decompose(self.own_lines, f"{start} + l"), *loops]),
            "}",
        ]

    def computed_along_lines(
        self,
        start: str,
        length: str,
        place: Callable[[str, str], str],
        after: Callable[[str], list[str]] = lambda k: [],
    ) -> list[str]:
        """Return a loop over summed indices, each computed along lines."""

        def one(k: str, ks: str) -> list[str]:
            deep = self.own_summed[-1].name if self.summed else None
            outer = {deep: "deep"} if deep is not None else {}
            here = [f"const int64_t deep = {index_name(deep)} + d;", "(void)deep;"] if deep else []
            loops = self.walker.walk(
                self.own_lines,
                start,
                length,
                lambda line, lines: self.loop(
                    self.own_lines[-1:], lines, outer, place(f"{k} + d", f"{line} + e")
                ),
            )
            return [
                f"for (int64_t d = 0; d < {ks}; ++d) {{",
                *indent([*here, *loops, *after(f"{k} + d")]),
                "}",
            ]

        return self.walker.walk(self.own_summed, "depth_start", "depth_run", one)

    def loop(
        self, inner: tuple[Loop, ...], count: str, others: Mapping[str, str], place: str
    ) -> list[str]:
        """Return a loop that computes elements along a run of `inner`."""
        indices = {
            d.name: index_name(d.name) for d in (*self.batch, *self.own_lines, *self.own_summed)
        }
        for loops in (self.lines, self.summed):
            indices.update(dict.fromkeys(as_one(loops, self.operand.joined)[1], "0"))
        indices.update(others)
        here = []
        for loop in inner:
            here = [f"const int64_t here = {index_name(loop.name)} + e;", "(void)here;"]
            indices[loop.name] = "here"
        made = self.operand.element(indices, inner[-1].name if inner else None)

        def run(form: PrintedElement) -> list[str]:
            """Return the loop for one form of the elements."""
            put = f"{place} = ({self.of.type})({form.value});"
            return [
                "#pragma omp simd",
                f"for (int64_t e = 0; e < {count}; ++e) {{",
                *indent([*here, *form.lines, put]),
                "}",
            ]

        if not made.chosen:
            return [*made.around, *run(made)]
        lines = [*made.around]
        for k, (condition, form) in enumerate(made.chosen):
            lines += [f"{'} else ' if k else ''}if ({condition}) {{", *indent(run(form))]
        return [*lines, "} else {", *indent(run(made)), "}"]
