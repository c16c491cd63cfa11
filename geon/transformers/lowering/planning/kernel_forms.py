"""Forms of kernels: how the kernels of one structure run on a target, as fields of a plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Fill, Nest, Region
from ...kernels.kernel_lowering import Work
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


def choice(
    holds: Sequence[Size], forms: tuple[Any, ...], others: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return ``forms`` if no size in ``holds`` is negative, else ``others``.

    Where open sizes decide, return a ``FormChoice`` by these alone.
    """
    if any(isinstance(size, int) and size < 0 for size in holds):
        return others
    open_sizes = tuple([size for size in holds if not isinstance(size, int)])
    return (FormChoice(open_sizes, forms, others),) if open_sizes else forms


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
    and ``FormChoice``. For a chain, they are the parts of each step; for a scan, a product, a call
    and a region, what the target chose. The kernels of a region's bodies have forms of their own.
    """

    work: Nest | Contraction | Blocked | OrderedLoop | Call | Region
    parts: tuple[Any, ...]


def operands_of(work: Work) -> tuple[Op, ...]:
    """Return the operands whose memory a form depends on; it does on none of a call or region."""
    return () if isinstance(work, Call | Region) else work.operands


# Returns the parts of a kernel's form from its work, the memory of its operands, and the numbers of
# those that may have any element alignment.
ChooseParts = Callable[[Any, Sequence[Place], Set[int]], tuple[Any, ...]]


class FormTable:
    """The forms of a program's kernels, each made once for all kernels of its structure.

    ``parts_of`` makes those of a kind of work, by the class of the work; kernels of other kinds
    have no form, nor do calls without parts. The forms are for registers of ``vector_bytes`` bytes,
    0 if the target has no vectors. ``generated`` is the table for kernels of programs that can
    fail, which are skipped after a failure, and of regions: no library computes these. If
    ``by_writes``, kernels that write variables have other forms than those that do not. If
    ``from_starts``, products that differ in the constant start offsets of their operands share
    forms, which are without these.
    ``region_parts`` makes the parts of a region from its work and the plans of its bodies; no two
    regions share a form.
    """

    def __init__(self, parts_of: dict[type, ChooseParts], vector_bytes: int = 0) -> None:
        self.parts_of, self.vector_bytes = parts_of, vector_bytes
        self.known: dict[Hashable, KernelForm | None] = {}
        self.generated: FormTable = self
        self.by_writes = False
        self.from_starts = False
        self.region_parts: Callable[[Region, Sequence[Any]], tuple[Any, ...]] | None = None

    def form(
        self,
        kernel: Kernel,
        place: Callable[[Op], Place],
        unaligned: Set[Place],
        plans: Sequence[Any] = (),
    ) -> KernelForm | None:
        """Return the form of a kernel, given the memory of values and the ``plans`` of its bodies.

        Values at places ``unaligned`` may have any element alignment. Operands that share memory do
        so in all kernels of a form.
        """
        work: Any = kernel.work
        if isinstance(work, Region) and self.region_parts is not None:
            return KernelForm(work, self.region_parts(work, plans))
        choose = self.parts_of.get(type(work))
        if choose is None:
            return None
        places = [place(op) for op in operands_of(work)]
        if self.from_starts and isinstance(work, Contraction):
            work, _ = from_starts(work, places)
        moving = frozenset([k for k, each in enumerate(places) if each in unaligned])
        writes = self.by_writes and bool(kernel.writes)
        key = structure(work), first_occurrences(places), moving, writes
        if key not in self.known:
            parts = choose(work, places, moving)
            self.known[key] = (
                KernelForm(work, parts) if parts or not isinstance(work, Call) else None
            )
        return self.known[key]
