"""What is said to the functions of products of windows that tiles read where they overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import Guard
from ...kernels.ir.nest import Loop
from ..sizes.blocking import Shape
from .implicit_im2col import Along, Band, most_rows, runs
from .multi_index import Walker
from .operand_views import Operand

NO_END = "INT64_MAX"


@dataclass(frozen=True)
class PlacesText:
    """Rows that are windows without a border, read where the operand lies."""

    operand: Operand
    batch: Sequence[Loop]
    rows: Sequence[Loop]
    summed: Sequence[Loop]
    walker: Walker
    of: Shape

    @property
    def elements(self) -> int:
        """How many elements are brought into memory for them."""
        return 0

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

    def view(self) -> str:
        """The initializer of a `geon_view`."""
        loops = [*self.batch, *self.rows]
        strides = [self.operand.strides.get(loop.name, 0) for loop in loops]
        fields = (
            f".from = {self.start()}, .batches = {len(self.batch)}, .loops = {len(self.rows)}",
            f".extents = {self.array(loop.extent for loop in loops)}",
            f".strides = {self.array(strides)}{self.band()}",
        )
        return f"{{{', '.join(fields)}}}"

    def start(self) -> str:
        """Where the operand's element lies whose indices are all 0."""
        assert self.operand.pointer is not None
        return self.operand.pointer

    def band(self) -> str:
        """What is said of a band."""
        return ""

    def array(self, sizes: Iterable[Size]) -> str:
        """Some lengths as an array."""
        return array(map(self.walker.length, sizes))


@dataclass(frozen=True)
class BandText(PlacesText):
    """Rows that are windows in a band, which is made of lines that windows below share."""

    found: Band

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

    @property
    def steps(self) -> dict[str, str]:
        """What each summed loop steps by."""
        return self.found.steps(self.line)

    def start(self) -> str:
        """Where the operand's element would lie that windows at the first place begin with."""
        assert self.operand.border is not None
        return f"{self.operand.pointer} + ({self.operand.border.start})"

    def band(self) -> str:
        """What is said of the band: its lines, its planes, and what is outside of the operand."""
        found, length = self.found, self.walker.length
        planes = found.planes
        strides = [self.operand.strides.get(loop.name, 0) for loop in planes]
        fields = [
            f".line = {self.line}, .each = {found.each}, .far = {length(found.across.far)}",
            f".step = {found.across.step}, .span = {found.across.span}, .height = {found.height}",
            self.bounds("across", found.across),
            *self.down(),
        ]
        if planes or found.others:
            fields.append(f".planes = {len(planes)}, .count = {found.count}")
            fields.append(f".plane_extents = {self.array(loop.extent for loop in planes)}")
            fields.append(f".plane_strides = {self.array(strides)}")
        if found.others:
            guards = [text for guard in found.others for text in self.guard(guard)]
            fields.append(f".guards = {len(found.others)}, .guard = {array(guards)}")
        return f", .band = &(const struct geon_band){{{', '.join(fields)}}}"

    def down(self) -> list[str]:
        """What is said of lines below each other, where windows reach over several."""
        down = self.found.down
        if down is None:
            return []
        number = len(self.batch) + self.rows.index(down.rows)
        far = self.walker.length(down.far)
        step = f".down = {number}, .down_step = {down.step}, .down_far = {far}"
        return [step, self.bounds("below", down)]

    def bounds(self, name: str, along: Along) -> str:
        """The positions inside: those of the first row from `low` to before `high`, and how far
        each row after it goes on; where rows are positions, these may be some ``apart``.
        """
        guard, length = along.guard, self.walker.length
        if guard is None:
            return f".{name} = {{0, {NO_END}, 0, 1}}"
        step = guard.index.terms[along.rows.name]
        apart = 1 if along.taps is not None else step
        low, high = (
            f"({length(bound)}) - ({length(guard.index.constant)})"
            for bound in (guard.low, guard.high)
        )
        return f".{name} = {{{low}, {high}, {length(step)}, {length(apart)}}}"

    def guard(self, guard: Guard) -> list[str]:
        """A guard of whole planes: its bounds, its constant, and a term for each loop."""
        length = self.walker.length
        loops = [*self.batch, *self.rows, *self.found.planes]
        sizes = [guard.low, guard.high, guard.index.constant]
        return [
            *map(length, sizes),
            *(length(guard.index.terms.get(loop.name, 0)) for loop in loops),
        ]


def array(texts: Iterable[str]) -> str:
    """Some numbers as an array in C."""
    return f"(const int64_t[]){{{', '.join(texts)}}}"
