"""What scratch memory CUDA kernels work in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate, product
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Nest
from ...kernels.kernel_lowering import Work
from ...kernels.products.contraction import Contraction
from ...lowering.planning.schedule import Schedule
from ...sizes.scratch import Scratch
from ..kernels.column_reduction import TEAM, blocks_of, cut, most_bytes, states
from ..kernels.cooperative_threads import SCALAR
from ..kernels.nest_text import SLOTS, parts_bytes
from ..kernels.row_storage import slot_bytes
from ..kernels.scattering import position_memory
from ..kernels.sorting import SORTS, memory_of
from ..kernels.split_row_reduction import cut_rows
from ..launches.launch_ir import LEAST, Parts
from ..launches.target import takes_tf32
from .contractions import cut_deep, results, tiles_of


@dataclass(frozen=True, slots=True)
class Slots:
    """``each`` bytes for each block that works at one time: one for a row, and no more than
    there are ``slots``."""

    each: Size
    rows: Size
    slots: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all slots."""
        return evaluate(self.each, lengths) * max(1, min(self.slots, evaluate(self.rows, lengths)))

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        rows = self.rows if isinstance(self.rows, int) else self.slots
        return self.each * max(1, min(self.slots, rows))


@dataclass(frozen=True, slots=True)
class Bytes:
    """So many bytes."""

    size: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """That many."""
        return evaluate(self.size, lengths)

    def most(self, threads: int) -> Size:
        """That many."""
        return self.size


@dataclass(frozen=True, slots=True)
class Columns:
    """A line of scalars for each of the ``parts`` and scalars of states."""

    parts: Parts
    lines: Size
    states: int
    bound: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all lines; none where the rows are not cut."""
        if evaluate(self.parts.count, lengths) <= LEAST:
            return 0
        return self.states * self.parts.number(lengths) * evaluate(self.lines, lengths) * SCALAR

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        return self.states * self.lines * SCALAR + self.bound


@dataclass(frozen=True, slots=True)
class RowParts:
    """A scalar for each part of a row and of ``states``, where rows are cut."""

    parts: Parts
    states: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts."""
        number = self.parts.number(lengths)
        return self.states * number * evaluate(self.parts.blocks, lengths) * SCALAR * (number > 1)

    def most(self, threads: int) -> Size:
        """Never less than ``bytes``: there are no more parts than blocks are wanted."""
        return self.states * self.parts.wanted * SCALAR


@dataclass(frozen=True, slots=True)
class PartSums:
    """So many ``bytes`` for each of the parts that long sums are cut into, where there are some."""

    parts: Parts
    size: Size
    bound: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts; none where sums are not cut."""
        number = self.parts.number(lengths)
        return number * evaluate(self.size, lengths) if number > 1 else 0

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        if isinstance(self.size, int):
            return min(self.bound, self.parts.wanted * self.size)
        return self.bound


@dataclass(frozen=True, slots=True)
class Largest:
    """What functions that run one after another work in: as much as one of them takes."""

    parts: tuple[Scratch, ...]
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts; lengths at which pieces do not run make none of them."""
        return max(0, *[part.bytes(lengths, threads) for part in self.parts])

    def most(self, threads: int) -> Size:
        """Never less than ``bytes``: which of open sizes is the largest is not known."""
        known = [part.most(threads) for part in self.parts]
        found: Size = max([size for size in known if isinstance(size, int)], default=0)
        for size in known:
            found = found if isinstance(size, int) else found + size
        return found


def scratch_of(schedule: Schedule) -> dict[Op, Scratch]:
    """The scratch memory of a schedule's kernels, by their op."""
    found: dict[Op, Scratch] = {}
    for kernel in schedule.kernels:
        scratch = _of(kernel.work, takes_tf32(schedule.target))
        if scratch is not None:
            found[kernel.op] = scratch
    return found


def _of(work: Work, tf32: bool) -> Scratch | None:
    if isinstance(work, Nest):
        return _of_nest(work)
    if isinstance(work, Contraction):
        return _of_contraction(work, tf32)
    if isinstance(work, Call) and work.op.primitive.name in SORTS:
        return memory_of(work.op)
    if isinstance(work, Call) and work.op.primitive.name == "scatter":
        return position_memory(work.op)
    return None


def _of_contraction(work: Contraction, tf32: bool) -> Scratch | None:
    """The parts of long sums."""
    tiles = tiles_of(work, tf32)
    parts = cut_deep(work, tiles)
    if parts is None:
        return None
    size = work.dtype.itemsize
    return PartSums(parts, results(work) * size, parts.wanted * tiles.rows * tiles.columns * size)


def _of_nest(nest: Nest) -> Scratch | None:
    """The arrays of rows that do not lie in shared memory, or the parts of what is reduced."""
    if nest.pieces:
        each = [_of_nest(piece) for piece in (replace(nest, pieces=()), *nest.pieces)]
        found = tuple([scratch for scratch in each if scratch is not None])
        return Largest(found) if found else None
    columns = cut(nest)
    if columns is not None:
        lines = blocks_of(nest) * TEAM.beside
        return Columns(columns, lines, states(nest), most_bytes(nest))
    rows = cut_rows(nest)
    if rows is not None:
        return RowParts(rows, states(nest))
    size, parts = slot_bytes(nest.arrays), parts_bytes(nest)
    if not (isinstance(size, int) and size == 0):
        return Slots(size, product(loop.extent for loop in nest.rows), SLOTS)
    if not (isinstance(parts, int) and parts == 0):
        return Bytes(parts)
    return None
