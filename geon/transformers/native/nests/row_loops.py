"""Emit a loop nest by rows: tasks of neighbouring rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...kernels.ir.nest import Loop
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import PrintedPass
from ...printing.nests.scalar_statements import MAX_LANES
from ...sizes.blocks import MIN_BLOCKS
from ..vectors.nontemporal_stores import Past
from ..vectors.transpose_tiles import (
    COLLAPSED_TILE_ELEMENTS,
    TILE_LANES,
    lanes_of_tile,
    patterns,
)
from .multiple_hint import masked_count
from .task_text import NestTasks

MAX_VECTOR_ELEMENTS = 16  # float32 elements of the widest vectors: minimum rows in lanes
MIN_SPLIT_ROW_ELEMENTS = 1 << 16  # minimum iterations of a row's pass for which that pays off
MIN_PARALLEL_ROWS = MIN_BLOCKS  # rows, or blocks of rows, that occupy all threads
STRETCH = ("first_turn", "last_turn")  # names of the bounds of a part of a row


class NestByRows(NestTasks):
    """A nest with row loops or rows in lanes."""

    def by_rows(self) -> str:
        """Return the functions of a nest whose tasks are ranges of rows."""
        nest, task = self.nest, f"{self.name}_rows"
        past = self.passes.past = Past(self.passing, self.names)
        cut = self.cut()
        bounds = None if cut is None else STRETCH
        row = self.passes.statements(nest.row.lines, bounds)
        top = self.top()
        inner = self.row_work()
        counts = [f"({self.passes.extent(loop)})" for loop in nest.rows]
        if nest.lanes is not None:
            counts.append(f"(({self.passes.extent(nest.lanes)} + block - 1) / block)")
        if cut is not None:
            counts.append(f"(({self.passes.extent(cut)} + stretch - 1) / stretch)")
            inner = f"({inner} / ({counts[-1]} > 0 ? {counts[-1]} : 1))"  # 0 parts: no row runs
        body = [
            "const int64_t begin = task * grain;",
            "const int64_t end = begin + grain < rows ? begin + grain : rows;",
            *self.hidden("grain"),
            *top,
            *self.buffers(),
            *[line for made in nest.passes for line in patterns(made, self.names)],
            *past.task(self.row_loop(row)),
        ]  # fmt: skip
        extra = [Parameter(name, "int64_t", None, False) for name in self.divisors()]
        main = [
            *self.block_size(),
            *([] if cut is None else [f"const int64_t stretch = {self.stretch(cut)};"]),
            f"const int64_t rows = {' * '.join(counts)};",
            f"const int64_t work = {inner};",
            "const int64_t grain = geon_grain(rows, work);",
            "const int64_t parts = rows > 0 ? (rows + grain - 1) / grain : 0;",
            *self.launch(task, {name: name for name in self.divisors()}),
        ]
        return self.whole([
            self.structure(task, extra),
            self.function(task, body, extra),
            [self.head(), "{", *indent(main), "}"],
        ])  # fmt: skip

    def row_loop(self, row: list[str]) -> list[str]:
        """Return the loop over the rows of a task; ``row`` has one row's statements."""
        head = "for (int64_t row = begin; row < end; row++) {"
        return [head, *indent([*self.row_indices(), *row]), "}"]

    def divisors(self) -> list[str]:
        """Return the names of the fields that describe the division into tasks."""
        blocks = ["block"] if self.nest.lanes is not None else []
        return ["grain", "rows", *blocks, *(["stretch"] if self.cut() is not None else [])]

    def cut(self) -> Loop | None:
        """Return the loop of a pass that is divided as well if rows are too few for all threads, or
        None.

        Only a pass without reductions can be divided anywhere.
        """
        nest, lines = self.nest, self.nest.row.lines
        loops = [*nest.rows, *([] if nest.lanes is None else [nest.lanes])]
        extents = [loop.extent for loop in loops if isinstance(loop.extent, int)]
        if len(lines) != 1 or len(extents) < len(loops):
            return None
        blocks = 1 if nest.lanes is None else -(-extents.pop() // TILE_LANES)
        (made,) = lines
        if not isinstance(made, PrintedPass) or len(made.loops) != 1 or nest.arrays:
            return None
        if math.prod(extents) * blocks > MIN_PARALLEL_ROWS or made.flat:
            return None
        extent = made.loops[0].extent
        long = not isinstance(extent, int) or extent >= MIN_SPLIT_ROW_ELEMENTS
        return made.loops[0] if long else None

    def stretch(self, cut: Loop) -> str:
        """Return the iterations of the divided loop in one part, in whole tiles, as C."""
        return (
            f"(({self.passes.extent(cut)}) / {MIN_PARALLEL_ROWS * TILE_LANES} + 1) * {TILE_LANES}"
        )

    def block_size(self) -> list[str]:
        """Return the statements that compute ``block``, the number of rows in lanes."""
        if self.nest.lanes is None:
            return []
        row = self.open_row()
        if row is not None:  # the block may have fewer rows than ``TILE_LANES``
            size = (
                f"{COLLAPSED_TILE_ELEMENTS} / ({self.passes.extent(row)}) & -{MAX_VECTOR_ELEMENTS}"
            )
            return [
                f"const int64_t many = {size};",
                f"const int64_t block = many < {MAX_LANES} ? many : {MAX_LANES};",
            ]
        sizes = [lanes_of_tile(made) for made in self.nest.passes if made.crosses]
        return [f"const int64_t block = {max(sizes, default=TILE_LANES)};"]

    def row_work(self) -> str:
        """Return the estimated number of statements of one row, as C."""
        parts = []
        for line in self.nest.row.lines:
            if isinstance(line, PrintedPass):
                counts = [str(line.weight)]
                counts += [f"({self.passes.extent(loop)})" for loop in line.loops]
                parts.append(" * ".join(counts))
        lanes = " * block" if self.nest.lanes is not None else ""
        return f"({' + '.join(['1', *parts])}){lanes}"

    def row_indices(self) -> list[str]:
        """Return the statements that compute row loop indices, lanes and bounds from the row
        number.
        """
        nest = self.nest
        outside = len(nest.rows) - (nest.inside if nest.lanes is not None else 0)
        number, lines = "row", []
        cut = self.cut()
        if cut is not None:
            lines = self.stretch_of_row(cut, number)
            number = "whole_row"
        found, rest = self.indices(nest.rows[outside:], number, outside == 0 and nest.lanes is None)
        lines += found
        if nest.lanes is not None:
            size = self.passes.extent(nest.lanes)
            blocks = f"(({size} + block - 1) / block)"
            first = f"({rest} % {blocks})" if outside else rest
            lines.append(f"const int64_t first_lane = {first} * block;")
            left = f"({size}) - first_lane"
            count = masked_count(f"{left} < block ? {left} : block", nest.lanes.extent, self.lanes)
            few = isinstance(nest.lanes.extent, int) and nest.lanes.extent <= TILE_LANES
            if few and self.open_row() is None:
                count = size  # one block of known size
            lines.append(f"const int64_t lanes = {count};")
            if outside:
                lines.append(f"const int64_t outer = {rest} / {blocks};")
                rest = "outer"
        more, _ = self.indices(nest.rows[:outside], rest, True)
        return [*lines, *more]

    def open_row(self) -> Loop | None:
        """Return the loop over short adjacent rows of open length that a tile collapses, or None.

        The number of rows of a block then depends on that length.
        """
        flat = [made.loops[-1] for made in self.nest.passes if made.crosses and made.flat]
        return next((row for row in flat if not isinstance(row.extent, int)), None)

    def stretch_of_row(self, cut: Loop, number: str) -> list[str]:
        """Return the statements that compute the bounds of part ``number`` and the row's number."""
        size = self.passes.extent(cut)
        end = f"first_turn + stretch < {size} ? first_turn + stretch : {size}"
        return [
            f"const int64_t stretches = (({size}) + stretch - 1) / stretch;",
            f"const int64_t first_turn = {number} % stretches * stretch;",
            f"const int64_t whole_row = {number} / stretches;",
            f"const int64_t last_turn = {end};",
        ]

    def indices(self, loops: Sequence[Loop], rest: str, last: bool) -> tuple[list[str], str]:
        """Decompose the number ``rest`` into an index for each loop.

        Return the statements, and the remaining quotient if these loops are not the ``last`` ones.
        """
        lines = []
        for k in range(len(loops) - 1, -1, -1):
            loop = loops[k]
            if k == 0 and last:
                lines.append(f"const int64_t {loop.name} = {rest};")
                break
            size = self.passes.extent(loop) if loop.extent != 0 else "1"  # avoids % 0 in dead code
            lines.append(f"const int64_t {loop.name} = {rest} % ({size});")
            lines.append(f"const int64_t before_{loop.name} = {rest} / ({size});")
            rest = f"before_{loop.name}"
        return lines, rest
