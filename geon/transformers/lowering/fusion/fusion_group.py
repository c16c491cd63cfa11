"""``FusionGroup``: a kernel under construction."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Fused


@dataclass(eq=False, slots=True)
class FusionGroup:
    """A kernel under construction.

    ``kind`` is that of ``Fused``. ``level`` is lower than those of all kernels that read its
    results. ``results`` are stored; ``inner`` are all ops it computes, ``reductions`` those that
    reduce. ``rows``, ``dot`` and ``names`` are as in ``Fused``. ``statements`` counts the
    statements of its body. ``extents`` are the lengths of the axes of its loops.
    """

    kind: str
    level: int
    results: list[Op] = field(default_factory=list)
    reductions: list[Op] = field(default_factory=list)
    inner: set[Op] = field(default_factory=set)
    rows: frozenset[str] | None = None
    dot: Op | None = None
    names: tuple[tuple[str, str], ...] = ()
    statements: int = 0
    extents: dict[str, int | Length] = field(default_factory=dict)
    reindexed: set[Op] = field(default_factory=set)  # ops computed at indices not their own
    widened: set[Op] = field(default_factory=set)  # ops computed repeatedly along further axes

    @property
    def fused(self) -> Fused:
        """Return the form of the kernel."""
        return Fused(self.kind, self.rows, self.dot, tuple(self.reductions), self.names)
