"""``TARGET``: what stages 3 to 5 need to know of native code."""

from __future__ import annotations

from ...op_graph.op_graph import Op
from ...op_graph.registry import PRIMITIVES
from ..lowering.fusion import fusion_groups
from ..lowering.loop_rules import LAST, RULES
from ..lowering.short_sums import SHORT_SUMS
from ..lowering.split_folds import SPLIT_FOLDS
from ..lowering.target import Arrangement, Layout, Target
from .completeness import lacks
from .machine import MODEL, machine
from .packed_copies import packed_copies
from .scratch import scratch_of


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Operands as they lie, the result in the order of its axes."""
    return Arrangement((None, None), op.axes.names)


TARGET = Target(
    name="native",
    rules=RULES,
    arrange=arrange,
    in_place={name: row.in_place for name, row in PRIMITIVES.items() if row.in_place},
    hidden={},
    contiguous={
        **{row.name: tuple(range(8)) for row in PRIMITIVES.values() if row.cost == "kernel"},
        "print": (0,),
    },
    group=fusion_groups,
    last=LAST,
    fused=SHORT_SUMS | SPLIT_FOLDS,
    packed=packed_copies,
    scratch=scratch_of,
    lacks=lacks,
    machine=machine,
    model=MODEL,
    scattered=32,  # 0.5 ns, where a multiply-add takes 0.02
    orders=True,
    stops=("scan", "while"),
)
