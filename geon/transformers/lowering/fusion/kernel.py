"""``Kernel``: one step of a schedule."""

from __future__ import annotations

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Leaf, Op
from ...kernels.ir.nest import Fused
from ...kernels.kernel_lowering import Work
from .fusion_groups import Apart


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One step of a schedule, which computes its results into memory of their own, or in place.

    ``op`` is its first result, or the op that prints or checks. ``reads`` are the values whose
    memory it reads. ``in_place`` maps each result to the values whose memory it may overwrite.
    ``writes`` maps results to the variables in whose storage they are put. ``raises`` is True if
    data can make it fail. ``fused`` is its form, ``work`` its lowered loops. ``apart`` has the
    reasons why it is not fused with others. ``stops`` is True if an interrupt ends it. ``infinite``
    is True if a constant brought infinities into its results, so that a check takes only NaN for an
    error.
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
        """Return the class name of its work in lowercase, such as ``nest`` or ``call``."""
        return type(self.work).__name__.lower()

    @property
    def has_side_effect(self) -> bool:
        """Return True if it has no result: it prints or checks its argument."""
        return not self.results

    @property
    def ends(self) -> bool:
        """Return True if a call may end with it, before later kernels run."""
        return self.raises or self.stops

    @property
    def may_join(self) -> list[tuple[Op, Op]]:
        """Return pairs of each result and each value whose memory it may overwrite."""
        return [(op, value) for op in self.results for value in self.in_place[op]]
