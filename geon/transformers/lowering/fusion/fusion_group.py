"""A kernel in the making."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Fused


@dataclass(eq=False, slots=True)
class FusionGroup:
    """A kernel in the making."""

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
    reindexed: set[Op] = field(default_factory=set)  # computed at other indices than their own
    widened: set[Op] = field(default_factory=set)  # computed for more elements than they have

    @property
    def fused(self) -> Fused:
        """How the kernel computes."""
        return Fused(self.kind, self.rows, self.dot, tuple(self.reductions), self.names)
