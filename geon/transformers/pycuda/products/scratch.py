"""Scratch memory of CUDA kernels: exact sizes for given lengths, bounds for open ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, evaluate, exact_quotient, product
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call
from ...loops.tree import Space
from ...lowering.planning.kernel_forms import FormChoice, KernelForm
from ...lowering.planning.schedule import Schedule
from ...sizes.scratch import PerThread, Scratch, largest
from ..kernels import factorisations, fourier
from ..kernels.cooperative_threads import SCALAR_BYTES
from ..kernels.scattering import ScatterStep, ScatterWay
from ..kernels.scratch_layout import scratch_layout
from ..kernels.sorting import LineSort, SortWay
from ..kernels.thread_text import launched
from ..kernels.tree_choice import TeamTree
from ..launches.launch_ir import FULL_DEVICE_BLOCKS, Parts
from .library_dispatch import LibraryProduct, library_scratch
from .product_forms import TiledProduct, results


@dataclass(frozen=True, slots=True)
class Bytes:
    """Scratch memory of ``size`` bytes that all blocks share, if no size in ``holds`` is negative.

    Lengths of the names in ``numbers`` are numbers of parts; ``bound`` is then an upper bound of
    the size, over open lengths alone.
    """

    size: Size
    holds: tuple[Size, ...] = ()
    numbers: tuple[tuple[str, Parts], ...] = ()
    bound: Size | None = None
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes; 0 where none are used."""
        if any(evaluate(size, lengths) < 0 for size in self.holds):
            return 0
        numbers = {name: parts.number(lengths) for name, parts in self.numbers}
        return evaluate(self.size, {**lengths, **numbers})

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``."""
        if any(isinstance(size, int) and size < 0 for size in self.holds):
            return 0
        return self.size if self.bound is None else self.bound


# Steps of sorts and scatters with indices in scratch memory; where there are runs, also the step
# before them has these.
SORTED_IN_MEMORY = (SortWay.BY_DIGITS, ScatterWay.BY_RUNS)
# Scratch memory of calls of one form, by primitive.
SCRATCH: dict[str, Callable[[Op], Scratch]] = {
    "fourier_parts": lambda op: Bytes(fourier.scratch_bytes(op)),
    **dict.fromkeys(factorisations.WRITERS, lambda op: Bytes(factorisations.scratch_bytes(op))),
}


def scratch_of(schedule: Schedule, forms: Mapping[Op, KernelForm]) -> dict[Op, Scratch]:
    """Return the scratch memory of a schedule's kernels, whose ``forms`` are given, by their op."""
    found: dict[Op, Scratch] = {}
    known: dict[KernelForm, Scratch | None] = {}
    for kernel in schedule.kernels:
        form, work = forms.get(kernel.op), kernel.work
        if form is not None:
            if form not in known:
                known[form] = of_forms(form.parts)
            scratch = known[form]
        else:
            call = SCRATCH.get(work.op.primitive.name) if isinstance(work, Call) else None
            scratch = None if call is None else call(work.op)  # type: ignore[union-attr]  # a call
        if scratch is not None:
            found[kernel.op] = scratch
    return found


def of_product(form: TiledProduct, holds: tuple[Size, ...]) -> Scratch | None:
    """Return the scratch memory of a product's partial sums."""
    work, tiles, parts = form
    if parts is None:
        return None
    itemsize, name = work.dtype.itemsize, str(parts)
    sums = results(work) * itemsize  # bytes of a part
    bound = parts.wanted * tiles.rows * tiles.columns * itemsize
    if isinstance(sums, int):
        bound = min(bound, parts.wanted * sums)
    return Bytes(sums * Length.of(name), (*holds, *parts.several), ((name, parts),), bound)


def of_forms(forms: Sequence[Any], holds: tuple[Size, ...] = ()) -> Scratch | None:
    """Return the scratch memory of forms that run if no size in ``holds`` is negative."""
    found: list[Scratch | None] = []
    for form in forms:
        if isinstance(form, TeamTree):
            found.append(of_tree(form, holds))
        elif isinstance(form, FormChoice):
            found.append(of_forms(form.forms, (*holds, *form.holds)))
            # a single size is negative where the others run
            negative = [-size - 1 for size in form.holds] if len(form.holds) == 1 else []
            found.append(of_forms(form.others, (*holds, *negative)))
        elif isinstance(form, TiledProduct):
            found.append(of_product(form, holds))
        elif isinstance(form, LibraryProduct):
            found.append(Bytes(library_scratch(form), holds))
        elif isinstance(form, LineSort | ScatterStep) and form.way in SORTED_IN_MEMORY:
            found.append(Bytes(sum(form.memory.parts, start=0), holds))
    return largest(found)


def of_tree(form: TeamTree, holds: tuple[Size, ...]) -> Scratch | None:
    """Return the scratch memory of a tree: buffers that all tasks share, or slots of teams."""
    size = scratch_layout(form.tree, Space.SCRATCH).size
    if size != 0:
        shared = [buffer.size for buffer in form.tree.buffers if buffer.space is Space.SCRATCH]
        bound = sum([most_elements(form, each) for each in shared], start=0) * SCALAR_BYTES
        return Bytes(size, holds, tuple(form.numbers.items()), bound)
    slot = scratch_layout(form.tree, Space.STACK).size
    if form.team.size == 1 or slot == 0:
        return None
    ((loops, _),) = launched(form.tree)
    rows = product(loop.extent for loop in loops)
    return PerThread(slot, rows, slots=FULL_DEVICE_BLOCKS)


def most_elements(form: TeamTree, size: Size) -> Size:
    """Return an upper bound of a buffer's elements: with one part, or as many as are wanted."""
    for name, parts in form.numbers.items():
        each = exact_quotient(size, Length.of(name))
        if each is not None:
            return each + parts.wanted * max(form.team.beside, 1)
    return size
