"""Prefetches during a pass: operands of the next row, and results of later passes.

The first pass of a row waits for memory, later ones for arithmetic. A later pass that computes
elementary functions prefetches the cache lines that are needed after it. Hardware prefetchers
follow contiguous reads by themselves, but not while nothing is read, and not beyond a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...op_graph.axes.affine import AffineIndex, variable
from ..kernels.ir.nest import Nest, Pass
from ..kernels.ir.scalar_code import Apply, Load, walk
from ..sizes.blocks import L1_BYTES
from ..sizes.limits import L1_WAYS
from .tree import CachePrefetch

# Maximum arrays that a pass prefetches: half of a set is for what it reads.
MAX_PREFETCHED_ARRAYS = L1_WAYS // 2
# Maximum bytes of all prefetched rows: they fit into any second-level cache.
MAX_PREFETCHED_BYTES = 2 * L1_BYTES


def prefetches(nest: Nest, step: Pass) -> list[CachePrefetch]:
    """Return the prefetches of an element of a pass; [] in the first one.

    They are those of operands that the first pass reads for the next row, and of results that later
    passes store, along loops of the same length. Rows that are known to be too long have none.
    """
    passes = list(nest.passes)
    if not nest.rows or nest.across is not None or step is passes[0]:
        return []
    nodes = walk(*step.computed)
    if not any(isinstance(node, Apply) and node.row.cost == "expensive" for node in nodes):
        return []
    loads = [value for value in walk(*passes[0].computed) if isinstance(value, Load)]
    row = nest.rows[-1].name
    found = [
        CachePrefetch(load.operand, offset + load.offset.step(row))
        for load in dict.fromkeys(loads)
        for offset in moved(load.offset, passes[0], step)
        if load.offset.step(row) != 0
    ]
    found += [
        CachePrefetch(store.operand, offset, stores=True)
        for each in passes[passes.index(step) + 1 :]
        for store in each.stores
        for offset in moved(store.offset, each, step)
    ]
    itemsizes = [nest.operands[each.operand].dtype.itemsize for each in found]
    room = MAX_PREFETCHED_BYTES - sum(itemsizes) * step.loops[-1].extent
    if len(found) > MAX_PREFETCHED_ARRAYS or (isinstance(room, int) and room < 0):
        return []
    return [replace(each, room=room) for each in found]


def moved(offset: AffineIndex, other: Pass, step: Pass) -> Sequence[AffineIndex]:
    """Return an offset along the only loop of ``other`` as one along that of ``step``.

    Return () unless both loops have one length and elements are adjacent along them.
    """
    loops = (*other.loops, *step.loops)
    direct = all(isinstance(atom, str) for atom in offset.terms)
    if len(loops) != 2 or loops[0].extent != loops[1].extent or not direct:
        return ()
    source, target = (loop.name for loop in loops)
    if offset.step(source) != 1:
        return ()
    return (offset - variable(source) + variable(target),)
