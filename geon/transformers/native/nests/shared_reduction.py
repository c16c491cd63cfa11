"""Interchanged reductions: each iteration of the outermost reduction loop updates all rows' sums.

Operands that rows share are then read from a near cache, for example the images in the gradient of
a filter. Row by row, each row would read all of them from memory again.
"""

from __future__ import annotations

import math

from ....op_graph.axes.lengths import product
from ...printing.nests.pass_text import PrintedPass
from ...printing.nests.scalar_statements import MAX_LANES
from ..names.loop_lines import for_loop, indent
from .accumulators import is_float_sum, wide_name
from .split_reduction import (
    MAX_ROW_SUMS,
    MAX_WIDE_ROW_PARTIALS,
    DividedNest,
    only_folds_and_stores,
    partial_type,
)

MAX_VECTOR_ELEMENTS = 16  # float32 elements of the widest vectors: minimum rows in lanes
MIN_TURN_TERMS = 32  # terms of an iteration below which adding its partial sums costs as much


class SharedNest(DividedNest):
    """A nest whose rows may share the outermost reduction loop."""

    def shares_turns(self) -> bool:
        """Return True if the reduction loop should be outside of the row loops.

        The rows are few and their number is known. All of them are float sums of one pass, whose
        outer iterations are long or further apart in memory than rows are.
        """
        if len(self.nest.passes) != 1 or self.nest.arrays or not self.has_known_lanes():
            return False
        (first,) = self.nest.passes
        if not first.loops or (self.lines_before(first) and not self.nest.far):
            return False
        if first.stores or not first.sums or not only_folds_and_stores(first):
            return False
        if not all(map(is_float_sum, first.sums)):
            return False
        lanes = self.known_lanes()
        if not MAX_VECTOR_ELEMENTS <= lanes < MAX_LANES or (
            has_short_turns(first) and not self.nest.far
        ):
            return False
        sizes = [loop.extent for loop in self.nest.rows if isinstance(loop.extent, int)]
        rows = math.prod(sizes)
        few = len(sizes) == len(self.nest.rows) and rows * lanes * len(first.sums) <= MAX_ROW_SUMS
        return few and rows > 1

    def by_shared_turns(self) -> str:
        """Return the functions of tasks of neighbouring iterations, with a partial sum for each
        row.
        """
        (first,) = self.nest.passes
        before = self.passes.statements(self.lines_before(first))
        rest = self.nest.row.lines[self.nest.row.lines.index(first) + 1 :]
        task, lanes = f"{self.name}_part", self.known_lanes()
        rows = math.prod(loop.extent for loop in self.nest.rows if isinstance(loop.extent, int))
        top = [*self.top(), "const int64_t first_lane = 0;", f"const int64_t lanes = {lanes};"]
        extra = self.partial(first)
        start = [
            *self.shares(first, str(rows * lanes), MAX_WIDE_ROW_PARTIALS, turns_at_once(first)),
            *(f"{p.ctype} {p.name}[{MAX_WIDE_ROW_PARTIALS * rows * lanes}];" for p in extra[1:]),
            *self.launch(task, {"grain": "grain"} | {p.name: p.name for p in extra[1:]}),
        ]
        combined = self.combined(first, rows)
        ending = self.each_row([*before, *combined, *self.passes.statements(rest)])
        main = [*self.hidden("threads"), *top, *start, *ending]
        return self.whole([
            self.structure(task, extra),
            self.function(
                task, [*self.hidden("grain"), *top, *self.turns(first, before, rows)], extra
            ),
            [self.head(), "{", *indent(main), "}"],
        ])  # fmt: skip

    def lines_before(self, made: PrintedPass) -> list[object]:
        """Return the statements of a row before its pass."""
        return self.nest.row.lines[: self.nest.row.lines.index(made)]

    def turns(self, made: PrintedPass, before: list[str], rows: int) -> list[str]:
        """Return the iterations of a task; each runs all rows and adds up their sums."""
        held = {
            t.name: wide_name(t)
            for t in made.sums
            if t.name in self.passes.accumulation(made).blocked
        }
        some = turns_at_once(made)
        last = "share + 1" if some == 1 else "share_end"
        body = [*before, *self.passes.text(made, ("share", last), partial=True)]
        size, total = self.extent(made), rows * self.known_lanes()
        lines = [
            "const int64_t begin = task * grain;",
            f"const int64_t end = begin + grain < {size} ? begin + grain : {size};",
        ]
        for t in made.sums:
            each, over = f"{t.name}_own", self.passes.over
            own = over.at(each, partial_type(t), "first_sum + lane")
            ctype = partial_type(t) if t.name in held else t.ctype
            added = over.converted(ctype, partial_type(t), held.get(t.name, t.name))
            body.append(f"{over.head()} {own} += {added};")
            lines.append(f"{partial_type(t)} *const {each} = {t.name}_parts + task * {total};")
            lines.append(f"for (int64_t k = 0; k < {total}; k++) {each}[k] = 0;")
        if some == 1:
            return [*lines, *for_loop("share", "begin", "end", self.each_row(body))]
        last = f"const int64_t share_end = share + {some} < end ? share + {some} : end;"
        return [
            *lines,
            f"for (int64_t share = begin; share < end; share += {some}) {{",
            *indent([last, *self.each_row(body)]),
            "}",
        ]

    def combined(self, made: PrintedPass, rows: int) -> list[str]:
        """Return the statements that add the tasks' partial sums of one row in order."""
        found, lanes, over = [], self.known_lanes(), self.passes.over
        for t in made.sums:
            place = f"part * {rows * lanes} + first_sum + lane"
            ctype = partial_type(t)
            own, part = over.at(wide_name(t), ctype), over.at(f"{t.name}_parts", ctype, place)
            found += [
                over.array(ctype, wide_name(t), lanes),
                f"{over.head()} {own} = {over.each(ctype, '0')};",
                "for (int64_t part = 0; part < parts; part++)",
                f"    {over.head()} {own} += {part};",
                over.array(t.ctype, t.name, lanes),
                over.narrowed(t.ctype, t.name, wide_name(t)),
            ]
        return found

    def each_row(self, body: list[str]) -> list[str]:
        """Return loops over the rows around ``body``, with the offset of their sums."""
        number = "0"
        for loop in self.nest.rows:
            number = loop.name if number == "0" else f"({number}) * {loop.extent} + {loop.name}"
        lines = [f"const int64_t first_sum = ({number}) * lanes;", *body]
        for loop in reversed(self.nest.rows):
            lines = for_loop(loop.name, "0", str(loop.extent), lines)
        return lines


def has_short_turns(made: PrintedPass) -> bool:
    """Return True if an iteration of the outermost loop is known to have few terms."""
    turn = product(loop.extent for loop in made.loops[1:])
    return isinstance(turn, int) and turn < MIN_TURN_TERMS


def turns_at_once(made: PrintedPass) -> int:
    """Return the iterations of one row before the next row, enough terms to add up."""
    return MIN_TURN_TERMS if has_short_turns(made) else 1
