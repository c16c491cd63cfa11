"""Forms of kernels: how the kernels of one structure run on a target, as fields of a plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Fill, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.operand_starts import from_starts
from ...kernels.products.row_blocking import Blocked
from ...kernels.scans.sequential_scan import OrderedLoop
from ...kernels.structural_key import first_occurrences, structure
from ..fusion.kernel import Kernel

Place = tuple[str, object]  # kind of memory, and its number or the value that owns it


class FormChoice(NamedTuple):
    """A choice: ``forms`` run if no size in ``holds`` is negative, else ``others``."""

    holds: tuple[Size, ...]
    forms: tuple[Any, ...]
    others: tuple[Any, ...]


@runtime_checkable
class Summarised(Protocol):
    """A part of a form that has no tree, and a line for ``explain`` instead."""

    @property
    def summary(self) -> str:
        """Return the part in a line."""


def trees_in(forms: Sequence[Any]) -> Iterator[Any]:
    """Yield the scheduled trees of a nest's forms, of choices those of both sides."""
    for form in forms:
        if isinstance(form, FormChoice):
            yield from trees_in((*form.forms, *form.others))
        elif not isinstance(form, Fill):
            yield form


@dataclass(frozen=True, eq=False, slots=True)
class KernelForm:
    """What the kernels of one structure run; they share this object.

    ``work`` is that of the first of them; that of a product may lack constant start offsets of its
    operands (``from_starts``), which callers add to pointers. For a nest, ``parts`` are run in
    order: the target's scheduled trees, each with a field ``tree``, copies of operands (``Fill``),
    and ``FormChoice``. For a chain, they are the parts of each step; for a scan and a product, what
    the target chose.
    """

    work: Nest | Contraction | Blocked | OrderedLoop
    parts: tuple[Any, ...]


# Returns the parts of a kernel's form from its work, the memory of its operands, and the numbers of
# those that may have any element alignment.
ChooseParts = Callable[[Any, Sequence[Place], Set[int]], tuple[Any, ...]]


class FormTable:
    """The forms of a program's kernels, each made once for all kernels of its structure.

    ``parts_of`` makes those of a kind of work, by the class of the work; kernels of other kinds
    have no form. The forms are for registers of ``vector_bytes`` bytes, 0 if the target has no
    vectors. ``generated`` is the table for kernels of programs that can fail, which are skipped
    after a failure, and of regions: no library computes these. If ``by_writes``, kernels that write
    variables have other forms than those that do not. If ``from_starts``, products that differ in
    the constant start offsets of their operands share forms, which are without these.
    """

    def __init__(self, parts_of: dict[type, ChooseParts], vector_bytes: int = 0) -> None:
        self.parts_of, self.vector_bytes = parts_of, vector_bytes
        self.known: dict[Hashable, KernelForm] = {}
        self.generated: FormTable = self
        self.by_writes = False
        self.from_starts = False

    def form(
        self, kernel: Kernel, place: Callable[[Op], Place], unaligned: Set[Place]
    ) -> KernelForm | None:
        """Return the form of a kernel, given the memory of values.

        Values at places ``unaligned`` may have any element alignment. Operands that share memory do
        so in all kernels of a form.
        """
        choose = self.parts_of.get(type(kernel.work))
        if choose is None:
            return None
        work: Any = kernel.work
        places = [place(op) for op in work.operands]
        if self.from_starts and isinstance(work, Contraction):
            work, _ = from_starts(work, places)
        moving = frozenset([k for k, each in enumerate(places) if each in unaligned])
        writes = self.by_writes and bool(kernel.writes)
        key = structure(work), first_occurrences(places), moving, writes
        form = self.known.get(key)
        if form is None:
            form = self.known[key] = KernelForm(work, choose(work, places, moving))
        return form
