"""Sums of a few rows over the same turns: of each turn of the outermost loop all rows are taken.

What rows share is read from a near cache then, as the slopes of a filter read images: row by row,
each would bring all of it from memory again.
"""

from __future__ import annotations

import math

from ....op_graph.axes.lengths import product
from ...printing.nests.pass_text import PrintedPass
from ...printing.nests.scalar_statements import LANES
from ..names.loop_lines import for_loop, indented
from .accumulators import is_float_sum, wide
from .split_reduction import (
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
        """Whether there are a few known rows, all of which are sums of one pass of long turns, or
        of turns between which the other rows lie.
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
        if not VECTOR <= lanes < LANES or (has_short_turns(first) and not self.nest.far):
            return False
        sizes = [loop.extent for loop in self.nest.rows if isinstance(loop.extent, int)]
        rows = math.prod(sizes)
        few = len(sizes) == len(self.nest.rows) and rows * lanes * len(first.sums) <= WIDE_SUMS
        return few and rows > 1

    def by_shared_turns(self) -> str:
        """Tasks of neighbouring turns, with a partial sum for each row of each."""
        (first,) = self.nest.passes
        before = self.passes.statements(self.lines_before(first))
        rest = self.nest.row.lines[self.nest.row.lines.index(first) + 1 :]
        task, lanes = f"{self.name}_part", self.known_lanes()
        rows = math.prod(loop.extent for loop in self.nest.rows if isinstance(loop.extent, int))
        top = [*self.top(), "const int64_t first_lane = 0;", f"const int64_t lanes = {lanes};"]
        extra = self.partial(first)
        start = [
            *self.shares(first, str(rows * lanes), WIDE_RUNS, turns_at_once(first)),
            *(f"{p.ctype} {p.name}[{WIDE_RUNS * rows * lanes}];" for p in extra[1:]),
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
            [self.head(), "{", *indented(main), "}"],
        ])  # fmt: skip

    def lines_before(self, made: PrintedPass) -> list[object]:
        """What rows have for themselves before their pass."""
        return self.nest.row.lines[: self.nest.row.lines.index(made)]

    def turns(self, made: PrintedPass, before: list[str], rows: int) -> list[str]:
        """The turns of a task, and in each all rows, whose sums are added up."""
        held = {
            t.name: wide(t) for t in made.sums if t.name in self.passes.accumulation(made).blocked
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
            *indented([last, *self.each_row(body)]),
            "}",
        ]

    def combined(self, made: PrintedPass, rows: int) -> list[str]:
        """The statements that add up, in order, what tasks gave for one row."""
        found, lanes, over = [], self.known_lanes(), self.passes.over
        for t in made.sums:
            place = f"part * {rows * lanes} + first_sum + lane"
            ctype = partial_type(t)
            own, part = over.at(wide(t), ctype), over.at(f"{t.name}_parts", ctype, place)
            found += [
                over.array(ctype, wide(t), lanes),
                f"{over.head()} {own} = {over.each(ctype, '0')};",
                "for (int64_t part = 0; part < parts; part++)",
                f"    {over.head()} {own} += {part};",
                over.array(t.ctype, t.name, lanes),
                over.narrowed(t.ctype, t.name, wide(t)),
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


def has_short_turns(made: PrintedPass) -> bool:
    """Whether a turn of the outermost loop of a pass is known to have few terms."""
    turn = product(loop.extent for loop in made.loops[1:])
    return isinstance(turn, int) and turn < SHORT_TURN


def turns_at_once(made: PrintedPass) -> int:
    """How many turns of a row are taken before the next row, so that there are terms to add up."""
    return SHORT_TURN if has_short_turns(made) else 1
