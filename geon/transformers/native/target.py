"""The ``TARGET`` of native code: the facts and rules that stages 3 to 5 use."""

from __future__ import annotations

from ...op_graph.core.primitive import PRIMITIVES
from ...op_graph.op_graph import Op
from ..kernels.scans.scalarised_scans import TurnBounds
from ..lowering.facts.target import Arrangement, Layout, Target
from ..lowering.fusion import fusion_groups
from ..lowering.fusion.thin_products import SHORT_SUMS
from ..lowering.rules.loop_rules import LAST, RULES
from ..lowering.rules.split_reductions import SPLIT_FOLDS
from .emit.completeness import lacks
from .emit.scratch import scratch_of
from .machine.measured_machine import MODEL, machine
from .products.packed_weight_cache import packed_copies


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Keep the layouts of the operands and give the result the order of its axes."""
    return Arrangement((None, None), op.axes.names)


# Maximum scalar statements of a scan iteration whose small tensors are scalarised. For one row,
# where SLP has already made vectors, gcc 12 takes 0.2 to 0.4 ms of processor time for a statement.
# For rows in lanes it vectorises and takes 1 to 8 ms: 0.7 s for 720 statements, 4 s for 1,824, 39 s
# for 5,184. A loop that calls kernels takes 0.4 s to compile for any number. With more statements
# than these its iterations are mostly as fast, since it has vectorised elementary functions along
# small axes.
MAX_TURN_STATEMENTS = TurnBounds(single=1750, lanes=900)
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
    scattered=32,  # multiply-adds in the time of one scatter-add: 0.02 ns against 0.5 ns
    orders=MAX_TURN_STATEMENTS,
    stops=("scan", "while"),
)
