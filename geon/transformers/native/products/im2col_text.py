"""Emit the view descriptors of overlapping windows (implicit im2col), with or without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import InRange
from ...kernels.ir.nest import Loop
from .implicit_im2col import Band, WindowAxis, run_offsets
from .multi_index import Walker
from .operand_views import Operand

NO_END = "INT64_MAX"


@dataclass(frozen=True)
class WindowsText:
    """Windows without padding, read in place: their descriptor and the offsets of their runs."""

    operand: Operand
    batch: Sequence[Loop]
    rows: Sequence[Loop]
    summed: Sequence[Loop]
    walker: Walker

    @property
    def steps(self) -> dict[str, str]:
        """Return the stride of each summed loop, as C."""
        length, strides = self.walker.length, self.operand.strides
        return {d.name: length(strides.get(d.name, 0)) for d in self.summed}

    def runs(self, run: int) -> str:
        """Return the offsets of a row's contiguous runs of ``run`` elements, as a C array."""
        return array(run_offsets(self.summed, self.steps, run))

    def view(self) -> str:
        """Return the initialiser of a `geon_view`."""
        loops = [*self.batch, *self.rows]
        strides = [self.operand.strides.get(loop.name, 0) for loop in loops]
        fields = (
            f".from = {self.start()}, .batches = {len(self.batch)}, .loops = {len(self.rows)}",
            f".extents = {self.array(loop.extent for loop in loops)}",
            f".strides = {self.array(strides)}{self.band()}",
        )
        return f"{{{', '.join(fields)}}}"

    def start(self) -> str:
        """Return the pointer to the operand's element with all indices 0."""
        assert self.operand.pointer is not None
        return self.operand.pointer

    def band(self) -> str:
        """Return the initialiser of a band: none for windows in place."""
        return ""

    def array(self, sizes: Iterable[Size]) -> str:
        """Return lengths as a C array."""
        return array(map(self.walker.length, sizes))


@dataclass(frozen=True)
class BandText(WindowsText):
    """Windows in a band, a padded copy of the lines that neighbouring windows share."""

    found: Band

    @property
    def line(self) -> str:
        """Return the stride between two lines of the band, as C."""
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
        """Return the stride of each summed loop in the band, as C."""
        return self.found.steps(self.line)

    def start(self) -> str:
        """Return the pointer to the first element of the first window, maybe in the padding."""
        assert self.operand.border is not None
        return f"{self.operand.pointer} + ({self.operand.border.start})"

    def band(self) -> str:
        """Return the initialiser of a `geon_band`: lines, planes and padding."""
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
        """Return the initialisers of the second axis if windows span several lines."""
        down = self.found.down
        if down is None:
            return []
        number = len(self.batch) + self.rows.index(down.rows)
        far = self.walker.length(down.far)
        step = f".down = {number}, .down_step = {down.step}, .down_far = {far}"
        return [step, self.bounds("below", down)]

    def bounds(self, name: str, along: WindowAxis) -> str:
        """Return the initialiser of the valid positions along an axis.

        It has the bounds ``low`` and ``high`` for the first row, the step of them per row, and
        ``apart``, the distance of positions if rows themselves are positions.
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

    def guard(self, guard: InRange) -> list[str]:
        """Return a guard of whole planes: bounds, constant, and a coefficient for each loop."""
        length = self.walker.length
        loops = [*self.batch, *self.rows, *self.found.planes]
        sizes = [guard.low, guard.high, guard.index.constant]
        return [
            *map(length, sizes),
            *(length(guard.index.terms.get(loop.name, 0)) for loop in loops),
        ]


def array(texts: Iterable[str]) -> str:
    """Return numbers as a C array."""
    return f"(const int64_t[]){{{', '.join(texts)}}}"
