"""Chooses the passes whose vectors are interleaved.

An elementary function is a chain of dependent operations. Out-of-order execution looks ahead over
so many of them that it finds little of the next vector's chain, so code that interleaves the
operations of several vectors takes less time for the same work.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Pass
from ...kernels.ir.scalar_code import Apply, Load, Select, walk
from ..scalars.c_expressions import is_serial

MAX_UNROLLED_NODES = 96  # maximum nodes of a pass; above, one vector has enough parallelism


def interleaved_item_bytes(step: Pass, depths: Depths) -> int:
    """Return the bytes of the widest element of a pass whose vectors should be interleaved.

    Return 0 if that is not faster.
    """
    inner = step.loops[-1].name
    nodes = [node for node in walk(*step.computed) if depths.value(node) == ELEMENT_DEPTH]
    applied = [node for node in nodes if isinstance(node, Apply)]
    if not any(node.row.cost == "expensive" for node in applied) or len(nodes) > MAX_UNROLLED_NODES:
        return 0
    if any(is_serial(node.row.name, [name_of(x.dtype) for x in node.args]) for node in applied):
        return 0
    loads = [node for node in nodes if isinstance(node, Load)]
    if any(isinstance(node, Select) for node in nodes) or not all(
        all(isinstance(atom, str) for atom in load.offset.terms)
        and load.offset.step(inner) in (0, 1)
        for load in loads
    ):
        return 0
    return max(4, *(node.dtype.itemsize for node in nodes))
