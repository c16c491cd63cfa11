"""``Kernel``: one step of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.op_graph import Leaf, Op
from ...kernels.ir.nest import Fused
from ...kernels.kernel_lowering import Work
from .fusion_groups import Apart


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One step: computes its results into memory of their own, or in place.

    ``op`` is its first result, or the op that prints or checks; ``reads`` are the values whose
    memory it reads; ``in_place`` for each result those among them whose memory may hold it;
    ``writes`` the variables whose storage results are put into; ``fused`` says which ops it
    computes together, and ``work`` what it does, as data; ``apart`` why it is not one with others.
    It ``raises`` where data can be wrong, and ``stops`` at an interrupt. Where a constant brought
    infinities into its results, they may be ``infinite`` and only no number is wrong.
    """

    op: Op
    results: tuple[Op, ...]
    reads: tuple[Op, ...]
    in_place: dict[Op, tuple[Op, ...]]
    writes: dict[Op, Leaf]
    raises: bool
    fused: Fused | None
    work: Work
    apart: tuple[Apart, ...] = ()
    stops: bool = False
    infinite: bool = False

    @property
    def kind(self) -> str:
        """``nest``, ``contraction`` or ``call``."""
        return type(self.work).__name__.lower()

    @property
    def acts(self) -> bool:
        """Whether it has no result of its own: it prints or checks its argument."""
        return not self.results

    @property
    def ends(self) -> bool:
        """Whether a call may end with it, before what comes later is done."""
        return self.raises or self.stops

    @property
    def may_join(self) -> list[tuple[Op, Op]]:
        """Each result with each value whose memory may hold it."""
        return [(op, value) for op in self.results for value in self.in_place[op]]
