"""The text that brings what windows show into a band, and gives the place of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...op_graph.index_map import Guard
from ..kernels.types import Loop
from .product_bands import Along, Band, most_rows, runs
from .product_shape import Shape
from .product_views import Operand
from .product_walk import Walker, at, indent


@dataclass(frozen=True)
class PlacesText:
    """Rows that are windows without a border, read where the operand lies."""

    operand: Operand
    batch: Sequence[Loop]
    rows: Sequence[Loop]
    summed: Sequence[Loop]
    walker: Walker
    of: Shape

    elements = 0

    @property
    def steps(self) -> dict[str, str]:
        """What each summed loop steps by."""
        length, strides = self.walker.length, self.operand.strides
        return {d.name: length(strides.get(d.name, 0)) for d in self.summed}

    @property
    def most(self) -> int:
        """The most rows at a time."""
        return most_rows(self.summed, self.of)

    def runs(self) -> tuple[list[str], int]:
        """The offsets of a row's runs of elements, and how long they are."""
        return runs(self.summed, self.steps)

    def lines(self) -> list[str]:
        """The statements that fill in the places of rows."""
        pointer = self.operand.pointer
        assert pointer is not None
        names = [loop.name for loop in (*self.batch, *self.rows)]
        place = self.walker.address(pointer, self.operand.strides, names)
        step = self.walker.length(self.operand.strides.get(self.rows[-1].name, 0))
        return self.walker.walk(
            self.rows,
            "row_start",
            "height",
            lambda line, count: [
                f"const {self.operand.type} *const place = {place};",
                *fill(line, count, step),
            ],
        )


@dataclass(frozen=True)
class BandText:
    """Rows that are windows in a band, which is made of lines that windows below share."""

    operand: Operand
    found: Band
    batch: Sequence[Loop]
    rows: Sequence[Loop]
    summed: Sequence[Loop]
    walker: Walker
    tag: str

    @property
    def most(self) -> int:
        """The most rows at a time."""
        return self.found.most

    @property
    def elements(self) -> int:
        """The size of a band."""
        return self.found.elements

    @property
    def line(self) -> str:
        """The distance of two lines of the band."""
        found = self.found
        across, length = found.across, found.across.rows.extent
        each = found.count * found.each
        if isinstance(length, int):
            return str(found.positions(length) * each)
        text = self.walker.factor(length)
        least = f"({text} < {found.most} ? {text} : {found.most})"
        return f"((({least} - 1) * {across.step} + {across.span}) * {each})"

    def runs(self) -> tuple[list[str], int]:
        """The offsets of a row's runs of elements, and how long they are."""
        return runs(self.summed, self.steps)

    @property
    def steps(self) -> dict[str, str]:
        """What each summed loop steps by."""
        return self.found.steps(self.line)

    def lines(self) -> list[str]:
        """The statements that make the band and fill in the places of rows."""
        type = self.operand.type
        return [
            f"{type} *place = to, *unused = to;",
            "int64_t before = 1;",
            f"const int64_t geon_line = {self.line};",
            *self.walker.walk(self.rows, "row_start", "height", self.segment),
        ]

    def segment(self, line: str, count: str) -> list[str]:
        """The lines that rows of one run show, but for those that the run above had."""
        found, down = self.found, self.found.down
        across, height = found.across, found.height
        fresh = ["const int64_t fresh = 0;", "place = unused;"]
        if down is not None and down.step < height:
            fresh = [
                f"const int64_t below = {line} > 0 && before == 0 && {at(down.rows.name)} > 0;",
                f"const int64_t fresh = below ? {height - down.step} : 0;",
                f"place = below ? place + {down.step} * geon_line : unused;",
            ]
        return [
            *fresh,
            f"before = {at(across.rows.name)};",
            f"unused = place + {height} * geon_line;",
            f"const int64_t wide = ({count} - 1) * {across.step} + {across.span};",
            *inside("from_left", "until_right", across, "wide", self.walker),
            f"for (int64_t deep = fresh; deep < {height}; ++deep) {{",
            *indent([*self.down(), *self.plane(list(found.planes))]),
            "}",
            *fill(line, count, str(across.step * found.each)),
        ]

    def down(self) -> list[str]:
        """The statement that says whether a line is inside."""
        down = self.found.down
        if down is None or down.guard is None:
            return ["const int is_inside = 1;"]
        position = f"{at(down.rows.name)} * {down.step} + deep"
        return [f"const int is_inside = {self.holds(down.guard, position)};"]

    def holds(self, guard: Guard, position: str | None = None) -> str:
        """The condition that a guard holds, at this place of loops without what is constant."""
        length = self.walker.length
        if position is None:
            terms = [f"{at(str(n))} * ({length(t)})" for n, t in guard.index.terms.items()]
            position = " + ".join(terms) or "0"
        place = f"{position} + ({length(guard.index.constant)})"
        return f"({place} >= ({length(guard.low)}) && {place} < ({length(guard.high)}))"

    def plane(self, planes: list[Loop]) -> list[str]:
        """The copies of one line, plane by plane."""
        found, operand, walker = self.found, self.operand, self.walker
        assert operand.border is not None and operand.pointer is not None
        if planes:
            outer, name = planes[0], at(planes[0].name)
            return [
                f"for (int64_t {name} = 0; {name} < {outer.extent}; ++{name}) {{",
                *indent(self.plane(planes[1:])),
                "}",
            ]
        loops = [*self.batch, *self.rows, *found.planes]
        offset = walker.address(operand.border.start, operand.strides, [d.name for d in loops])
        if found.down is not None:
            offset += f" + deep * {walker.factor(found.down.far)}"
        number = "0"
        for loop in found.planes:
            number = f"({number} * {loop.extent} + {at(loop.name)})"
        within = " && ".join(["is_inside", *(self.holds(guard) for guard in found.others)])
        target = f"place + deep * geon_line + {number} * (geon_line / {found.count})"
        given = (
            f"{target}, {operand.pointer}, {offset}, {walker.length(found.across.far)}, "
            f"{found.each}, wide, from_left, {within} ? until_right : 0"
        )
        return [f"geon_line_{self.tag}({given});"]


def inside(begin: str, end: str, along: Along, count: str, walker: Walker) -> list[str]:
    """Statements that declare which of the positions along an axis are inside."""
    guard, length = along.guard, walker.length
    if guard is None:
        return [f"const int64_t {begin} = 0, {end} = {count};"]
    step = guard.index.terms[along.rows.name]
    # Rows that are the positions themselves may be steps of a guard apart.
    apart = 1 if along.taps is not None else step
    base = f"{at(along.rows.name)} * {step} + ({length(guard.index.constant)})"
    low, high = (f"({length(bound)}) - ({base})" for bound in (guard.low, guard.high))
    if apart != 1:
        low, high = (f"({bound} + {apart} - 1) / {apart}" for bound in (low, high))
    return [f"const int64_t {begin} = {low};", f"const int64_t {end} = {high};"]


def fill(line: str, count: str, step: str) -> list[str]:
    """Statements that fill in the places of a run of rows."""
    return [
        f"for (int64_t e = 0; e < {count}; ++e)",
        f"  rows[{line} + e] = place + e * ({step});",
    ]
