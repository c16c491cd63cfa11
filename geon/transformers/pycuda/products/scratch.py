"""Scratch memory of CUDA kernels: exact sizes for given lengths, bounds for open ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate, product
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Nest, RowArray
from ...kernels.kernel_lowering import Work
from ...kernels.products.contraction import Contraction
from ...loops.rules.teams import MAX_SHARED_BYTES
from ...lowering.planning.schedule import Schedule
from ...sizes.scratch import Scratch
from ...sizes.scratch import lines as up_to_lines
from ..kernels import factorisations, fourier
from ..kernels.cooperative_threads import SCALAR_BYTES
from ..kernels.scattering import position_memory
from ..kernels.sorting import SORTS, memory_of
from ..kernels.split_reductions import division_of, states
from ..kernels.team_text import MAX_SCRATCH_BLOCKS
from ..kernels.tree_choice import is_by_threads
from ..launches.dialect import takes_tf32
from ..launches.launch_ir import Parts
from .contractions import cut_deep, results, tiles_of


@dataclass(frozen=True, slots=True)
class Slots:
    """``each`` bytes per concurrent block: one slot per row, at most ``slots``."""

    each: Size
    rows: Size
    slots: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all slots."""
        return evaluate(self.each, lengths) * max(1, min(self.slots, evaluate(self.rows, lengths)))

    def most(self, threads: int) -> Size:
        """Return an expression of open lengths that is an upper bound of ``bytes``."""
        rows = self.rows if isinstance(self.rows, int) else self.slots
        return self.each * max(1, min(self.slots, rows))


@dataclass(frozen=True, slots=True)
class Bytes:
    """A fixed number of bytes."""

    size: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the size."""
        return evaluate(self.size, lengths)

    def most(self, threads: int) -> Size:
        """Return the size."""
        return self.size


@dataclass(frozen=True, slots=True)
class PartStates:
    """Partial states of divided passes: of each pass, its parts and scalars in the states.

    There are such states of ``lines`` rows or columns if no size in ``holds`` is negative, and of
    at most ``beside`` of them in a block.
    """

    passes: tuple[tuple[Parts, int], ...]
    lines: Size
    holds: tuple[Size, ...]
    beside: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all partial states; 0 if nothing is divided."""
        if any(evaluate(size, lengths) < 0 for size in self.holds):
            return 0
        total = sum(parts.number(lengths) * scalars for parts, scalars in self.passes)
        return total * evaluate(self.lines, lengths) * SCALAR_BYTES

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``: there is one part, or all blocks are as wanted."""
        total: Size = 0
        for parts, scalars in self.passes:
            total = total + (self.lines + parts.wanted * self.beside) * scalars * SCALAR_BYTES
        return total


@dataclass(frozen=True, slots=True)
class PartSums:
    """Partial sums of a split contraction: ``size`` bytes per part."""

    parts: Parts
    size: Size
    bound: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all parts; 0 if sums are not split."""
        number = self.parts.number(lengths)
        return number * evaluate(self.size, lengths) if number > 1 else 0

    def most(self, threads: int) -> Size:
        """Return an expression of open lengths that is an upper bound of ``bytes``."""
        if isinstance(self.size, int):
            return min(self.bound, self.parts.wanted * self.size)
        return self.bound


@dataclass(frozen=True, slots=True)
class Largest:
    """Scratch memory of functions that run one after another: the maximum of theirs."""

    parts: tuple[Scratch, ...]
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the largest size; negative sizes of variants that do not run count as 0."""
        return max(0, *[part.bytes(lengths, threads) for part in self.parts])

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``: the sum, since open sizes cannot be compared."""
        known = [part.most(threads) for part in self.parts]
        found: Size = max([size for size in known if isinstance(size, int)], default=0)
        for size in known:
            found = found if isinstance(size, int) else found + size
        return found


# Scratch memory of calls, by primitive.
SCRATCH: dict[str, Callable[[Op], Scratch]] = {
    **dict.fromkeys(SORTS, memory_of),
    "scatter": position_memory,
    "fourier_parts": lambda op: Bytes(fourier.scratch_bytes(op)),
    **dict.fromkeys(factorisations.WRITERS, lambda op: Bytes(factorisations.scratch_bytes(op))),
}


def scratch_of(schedule: Schedule) -> dict[Op, Scratch]:
    """Return the scratch memory of a schedule's kernels, by their op."""
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
    scratch = SCRATCH.get(work.op.primitive.name) if isinstance(work, Call) else None
    return None if scratch is None else scratch(work.op)  # type: ignore[union-attr]  # a call


def _of_contraction(work: Contraction, tf32: bool) -> Scratch | None:
    """Return the scratch memory of a contraction's partial sums."""
    tiles = tiles_of(work, tf32)
    parts = cut_deep(work, tiles)
    if parts is None:
        return None
    size = work.dtype.itemsize
    return PartSums(parts, results(work) * size, parts.wanted * tiles.rows * tiles.columns * size)


def _of_nest(nest: Nest) -> Scratch | None:
    """Return the scratch memory of a nest's row arrays or of its partial values."""
    if nest.pieces:
        each = [_of_nest(piece) for piece in (replace(nest, pieces=()), *nest.pieces)]
        found = tuple([scratch for scratch in each if scratch is not None])
        return Largest(found) if found else None
    division = None if is_by_threads(nest) else division_of(nest)
    if division is not None:
        passes = zip(division.parts, map(states, division.passes), strict=True)
        rows = [*nest.rows, *([] if nest.across is None else [nest.across])]
        lines = product(loop.extent for loop in rows)
        return PartStates(tuple(passes), lines, division.holds, max(division.team.beside, 1))
    size = slot_bytes(nest.arrays)
    if isinstance(size, int) and size == 0:
        return None
    return Slots(size, product(loop.extent for loop in nest.rows), MAX_SCRATCH_BLOCKS)


def slot_bytes(arrays: Sequence[RowArray]) -> Size:
    """Return the bytes of scratch memory of a row for its arrays; 0 if they need none."""
    sizes = [array.size * array.dtype.itemsize for array in arrays]
    total: Size = sum(sizes, start=0)
    if isinstance(total, int) and total <= MAX_SHARED_BYTES:
        return 0
    return sum(map(up_to_lines, sizes), start=0)
