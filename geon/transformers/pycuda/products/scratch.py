"""Scratch memory of CUDA kernels: exact sizes for given lengths, bounds for open ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, evaluate, exact_quotient, product
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.structural_key import structure
from ...loops.tree import Space
from ...lowering.planning.schedule import Schedule
from ...sizes.scratch import Scratch
from ..kernels import factorisations, fourier
from ..kernels.cooperative_threads import SCALAR_BYTES
from ..kernels.scattering import position_memory
from ..kernels.scratch_layout import scratch_layout
from ..kernels.sorting import SORTS, memory_of
from ..kernels.split_reductions import division_of
from ..kernels.team_text import MAX_SCRATCH_BLOCKS
from ..kernels.thread_text import launched
from ..kernels.tree_choice import FormChoice, Forms, TeamTree, forms_of
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
    """Partial states of divided passes, of ``size`` bytes.

    In it, lengths of the names in ``numbers`` are numbers of parts. ``bound`` is not less.
    """

    size: Size
    numbers: tuple[tuple[str, Parts], ...]
    bound: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all partial states."""
        numbers = {name: parts.number(lengths) for name, parts in self.numbers}
        return evaluate(self.size, {**lengths, **numbers})

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``."""
        return self.bound


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


@dataclass(frozen=True, slots=True)
class Where:
    """Scratch memory of ``chosen`` if no size in ``holds`` is negative, else of ``others``."""

    holds: tuple[Size, ...]
    chosen: Scratch | None
    others: Scratch | None
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of what runs."""
        is_chosen = all(evaluate(size, lengths) >= 0 for size in self.holds)
        scratch = self.chosen if is_chosen else self.others
        return 0 if scratch is None else scratch.bytes(lengths, threads)

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``."""
        both = [scratch for scratch in (self.chosen, self.others) if scratch is not None]
        return Largest(tuple(both)).most(threads)


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
    nests: dict[Hashable, Scratch | None] = {}  # by structure: their trees are scheduled once
    for kernel in schedule.kernels:
        work = kernel.work
        if isinstance(work, Nest):
            key = structure(work) if may_need_scratch(work) else None
            if key is not None and key not in nests:
                nests[key] = of_forms(forms_of(work))
            scratch = nests.get(key)
        elif isinstance(work, Contraction):
            scratch = _of_contraction(work, takes_tf32(schedule.target))
        else:
            call = SCRATCH.get(work.op.primitive.name) if isinstance(work, Call) else None
            scratch = None if call is None else call(work.op)  # type: ignore[union-attr]  # a call
        if scratch is not None:
            found[kernel.op] = scratch
    return found


def _of_contraction(work: Contraction, tf32: bool) -> Scratch | None:
    """Return the scratch memory of a contraction's partial sums."""
    tiles = tiles_of(work, tf32)
    parts = cut_deep(work, tiles)
    if parts is None:
        return None
    size = work.dtype.itemsize
    return PartSums(parts, results(work) * size, parts.wanted * tiles.rows * tiles.columns * size)


def may_need_scratch(nest: Nest) -> bool:
    """Return True if a nest has row arrays, or reductions that may be divided."""
    return any(piece.arrays or division_of(piece) for piece in (nest, *nest.pieces))


def of_forms(forms: Forms) -> Scratch | None:
    """Return the scratch memory of forms that run one after another."""
    found: dict[Scratch, None] = {}
    for form in forms:
        scratch = None
        if isinstance(form, TeamTree):
            scratch = of_tree(form)
        elif isinstance(form, FormChoice):
            both = of_forms(form.forms), of_forms(form.others)
            scratch = None if both == (None, None) else Where(form.holds, *both)
        if scratch is not None:
            found[scratch] = None
    return Largest(tuple(found)) if len(found) > 1 else next(iter(found), None)


def of_tree(form: TeamTree) -> Scratch | None:
    """Return the scratch memory of a tree: buffers that all tasks share, or slots of teams."""
    size = scratch_layout(form.tree, Space.SCRATCH).size
    if size != 0:
        shared = [buffer.size for buffer in form.tree.buffers if buffer.space is Space.SCRATCH]
        bound = sum([most_elements(form, each) for each in shared], start=0) * SCALAR_BYTES
        return PartStates(size, tuple(form.numbers.items()), bound)
    slot = scratch_layout(form.tree, Space.STACK).size
    if form.team.size == 1 or slot == 0:
        return None
    ((loops, _),) = launched(form.tree)
    return Slots(slot, product(loop.extent for loop in loops), MAX_SCRATCH_BLOCKS)


def most_elements(form: TeamTree, size: Size) -> Size:
    """Return an upper bound of a buffer's elements: with one part, or as many as are wanted."""
    for name, parts in form.numbers.items():
        each = exact_quotient(size, Length.of(name))
        if each is not None:
            return each + parts.wanted * max(form.team.beside, 1)
    return size
