"""Sums of a few rows over the same turns: of each turn of the outermost loop all rows are taken.

What rows share is read from a near cache then, as the slopes of a filter read images: row by row,
each would bring all of it from memory again.
"""

from __future__ import annotations

import math

from ...op_graph.lengths import product
from ..printing.printed import PrintedPass
from ..printing.scalars import LANES
from .accumulate import OWN_LANES, is_float_sum, wide
from .loops import for_loop, indented
from .nest_divided import (
    WIDE_RUNS,
    WIDE_SUMS,
    DividedNest,
    only_folds_and_stores,
    partial_type,
)

VECTOR = 16  # elements of the widest vectors: fewer rows side by side fill none
SHORT_TURN = 32  # terms of a turn: of fewer, adding up what it gave costs as much


class SharedNest(DividedNest):
    """A nest whose rows may share what they go over."""

    def shares_turns(self) -> bool:
        """Whether there are a few known rows, all of which are sums of one pass of long turns."""
        first, *rest = self.nest.row.lines or [None]
        if not isinstance(first, PrintedPass) or self.nest.arrays or not self.has_known_lanes():
            return False
        if any(isinstance(line, PrintedPass) for line in rest) or len(first.loops) < 2:
            return False
        if first.stores or not first.sums or not only_folds_and_stores(first):
            return False
        if not all(map(is_float_sum, first.sums)):
            return False
        lanes, turn = self.known_lanes(), product(loop.extent for loop in first.loops[1:])
        if not VECTOR <= lanes < LANES or (isinstance(turn, int) and turn < SHORT_TURN):
            return False
        sizes = [loop.extent for loop in self.nest.rows if isinstance(loop.extent, int)]
        rows = math.prod(sizes)
        few = len(sizes) == len(self.nest.rows) and rows * lanes * len(first.sums) <= WIDE_SUMS
        return few and rows > 1

    def by_shared_turns(self) -> str:
        """Tasks of neighbouring turns, with a partial sum for each row of each."""
        first, *rest = self.nest.row.lines
        assert isinstance(first, PrintedPass)
        task, lanes = f"{self.name}_part", self.known_lanes()
        rows = math.prod(loop.extent for loop in self.nest.rows if isinstance(loop.extent, int))
        top = [*self.top(), "const int64_t first_lane = 0;", f"const int64_t lanes = {lanes};"]
        extra = self.partial(first)
        start = [
            *self.shares(first, str(rows * lanes), WIDE_RUNS),
            *(f"{p.ctype} {p.name}[{WIDE_RUNS * rows * lanes}];" for p in extra[1:]),
            *self.launch(task, {"grain": "grain"} | {p.name: p.name for p in extra[1:]}),
        ]
        ending = self.each_row([*self.combined(first, rows), *self.passes.statements(rest)])
        main = [*self.hidden("threads"), *top, *start, *ending]
        return self.whole([
            self.structure(task, extra),
            self.function(task, [*self.hidden("grain"), *top, *self.turns(first, rows)], extra),
            [self.head(), "{", *indented(main), "}"],
        ])  # fmt: skip

    def turns(self, made: PrintedPass, rows: int) -> list[str]:
        """The turns of a task, and in each all rows, whose sums are added up."""
        held = {
            t.name: wide(t) for t in made.sums if t.name in self.passes.accumulation(made).blocked
        }
        body = self.passes.text(made, ("share", "share + 1"), partial=True)
        size, total = self.extent(made), rows * self.known_lanes()
        lines = [
            "const int64_t begin = task * grain;",
            f"const int64_t end = begin + grain < {size} ? begin + grain : {size};",
        ]
        for t in made.sums:
            each = f"{t.name}_own"
            body.append(
                f"{OWN_LANES} {each}[first_sum + lane] += {held.get(t.name, t.name)}[lane];"
            )
            lines.append(f"{partial_type(t)} *const {each} = {t.name}_parts + task * {total};")
            lines.append(f"for (int64_t k = 0; k < {total}; k++) {each}[k] = 0;")
        return [*lines, *for_loop("share", "begin", "end", self.each_row(body))]

    def combined(self, made: PrintedPass, rows: int) -> list[str]:
        """The statements that add up, in order, what tasks gave for one row."""
        found, lanes = [], self.known_lanes()
        for t in made.sums:
            place = f"part * {rows * lanes} + first_sum + lane"
            found += [
                f"{partial_type(t)} {wide(t)}[{lanes}];",
                f"{OWN_LANES} {wide(t)}[lane] = 0;",
                "for (int64_t part = 0; part < parts; part++)",
                f"    {OWN_LANES} {wide(t)}[lane] += {t.name}_parts[{place}];",
                f"{t.ctype} {t.name}[{lanes}];",
                f"{OWN_LANES} {t.name}[lane] = ({t.ctype}){wide(t)}[lane];",
            ]
        return found

    def each_row(self, body: list[str]) -> list[str]:
        """Loops over the rows, and where the sums of each are."""
        number = "0"
        for loop in self.nest.rows:
            number = loop.name if number == "0" else f"({number}) * {loop.extent} + {loop.name}"
        lines = [f"const int64_t first_sum = ({number}) * lanes;", *body]
        for loop in reversed(self.nest.rows):
            lines = for_loop(loop.name, "0", str(loop.extent), lines)
        return lines
