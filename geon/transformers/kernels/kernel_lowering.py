"""Last step of stage 4: lower each group of ops to the kernel that computes it, as data."""

from __future__ import annotations

from ...op_graph.op_graph import Op
from .ir.nest import Call, Fused, Nest, Region
from .nests.index_set_splitting import make_nest
from .nests.inlining import OperandInliner
from .nests.nest_lowering import make_update
from .products.contraction import Contraction, make_contraction
from .products.row_blocking import Blocked, make_blocked
from .scans.sequential_scan import OrderedLoop

Printed = Nest | Contraction | Blocked | OrderedLoop  # kernels for which source is printed
Work = Printed | Region | Call


def lower(op: Op, fused: Fused | None, operands: OperandInliner) -> Printed | Call:
    """Return the kernel that computes the results of ``operands``; ``op`` is the first of them.

    ``fused`` is None on a target that does not fuse: each op is then a library call.
    """
    if fused is None:
        return Call(op)
    if fused.chain is not None:
        blocked = make_blocked(fused.chain, operands)
        assert blocked is not None, "a step reads other rows of a block"
        return blocked
    if fused.kind == "contraction":
        return make_contraction(fused, operands)
    if fused.kind == "nest":
        return make_nest(fused, operands)
    return make_update(op, operands) if fused.kind == "update" else Call(op)
