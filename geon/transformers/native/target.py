"""The ``TARGET`` of native code: the facts and rules that stages 3 to 5 use."""

from __future__ import annotations

from ...op_graph.axes.lengths import is_below, product
from ...op_graph.core.primitive import PRIMITIVES
from ...op_graph.op_graph import Op
from ..kernels.scans.scalarised_scans import TurnBounds
from ..loops.rules.transposed_tiles import MAX_ADJACENT_ELEMENTS
from ..lowering.facts.target import Arrangement, Layout, Target
from ..lowering.fusion import fusion_groups
from ..lowering.fusion.op_facts import is_product, shows
from ..lowering.fusion.thin_products import SHORT_SUMS
from ..lowering.rules.loop_rules import LAST, RULES
from ..lowering.rules.split_reductions import SPLIT_FOLDS
from ..sizes.limits import MIN_SIZE_RATIO
from .emit.form_table import form_table
from .emit.scratch import scratch_of
from .library.library_kernels import lacks
from .machine.measured_machine import MODEL, machine
from .products.packed_weight_cache import packed_copies

# Minimum known elements of a result for each of the weights that are copied to be read in vectors.
MIN_WEIGHT_USES = 2 * MIN_SIZE_RATIO


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Give the result the order of its axes; copy weights of windows that vectors cannot read."""
    first, second = [
        weight_order(op, *args)
        for args in ((op.args[1], op.args[0], x), (op.args[0], op.args[1], y))
    ]
    return Arrangement((first, second), op.axes.names)


def weight_order(op: Op, windows: Op, weights: Op, layout: Layout) -> tuple[str, ...] | None:
    """Return the order in which a vector of a depthwise convolution's weights is contiguous.

    The vectors of its nest go over the innermost axis of the images. Return None if that is no axis
    of the weights, if they are in such an order, or if ``op`` is another reduction.
    """
    kept = [name for name in windows.axes.names if name in op.axes.names]
    if not (shows(windows) and kept and kept[-1] in weights.axes) or is_product(op):
        return None
    if not set(weights.axes.names) <= set(windows.axes.names):
        return None
    repeats = product(a.expression for a in op.axes if a.name not in weights.axes)
    if is_below(repeats, MIN_WEIGHT_USES) or layout.order[-1] == kept[-1]:
        return None
    shared = [name for name in kept if name in weights.axes]
    return tuple([name for name in weights.axes.names if name not in shared] + shared)


# Maximum scalar statements of a scan iteration whose small tensors are scalarised. For one row,
# where SLP has already made vectors, gcc 12 takes 0.2 to 0.4 ms of processor time for a statement.
# For rows in lanes it vectorises and takes 1 to 8 ms: 0.7 s for 720 statements, 4 s for 1,824, 39 s
# for 5,184. A loop that calls kernels takes 0.4 s to compile for any number. With more statements
# than these its iterations are mostly as fast, since it has vectorised elementary functions along
# small axes.
MAX_TURN_STATEMENTS = TurnBounds(single=1750, lanes=900)
# Elements of a row that is transposed in blocks of whole rows.
MAX_COLLAPSED_ROW_ELEMENTS = MAX_ADJACENT_ELEMENTS
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
    forms=form_table,
    scratch=scratch_of,
    lacks=lacks,
    machine=machine,
    model=MODEL,
    collapsed=MAX_COLLAPSED_ROW_ELEMENTS,
    scattered=32,  # multiply-adds in the time of one scatter-add: 0.02 ns against 0.5 ns
    orders=MAX_TURN_STATEMENTS,
    stops=("scan", "while"),
)
