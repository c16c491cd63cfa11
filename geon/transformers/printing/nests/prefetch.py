"""Prefetches during a pass: operands of the next row, and results of later passes.

The first pass of a row waits for memory, later ones for arithmetic. A later pass that is long
enough to be printed in strips prefetches the cache lines that are needed after it. Hardware
prefetchers follow contiguous reads by themselves, but not while nothing is read, and not beyond a
page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....op_graph.axes.affine import AffineIndex, Size
from ...kernels.ir.nest import Nest, Pass
from ...kernels.ir.scalar_code import Load, walk
from .transposed_passes import is_direct

MAX_PREFETCHED_ARRAYS = 4  # maximum arrays that a pass prefetches
MAX_PREFETCHED_BYTES = (
    1 << 16
)  # maximum bytes of all prefetched rows: they fit into any second-level cache


@dataclass(frozen=True, slots=True)
class PrefetchStream:
    """Elements from ``offset`` of operand number ``operand`` on, contiguous along ``loop``.

    ``stores`` is True for memory that is written. ``room`` is negative in calls whose rows are too
    long.
    """

    operand: int
    offset: AffineIndex
    itemsize: int
    loop: str
    stores: bool
    room: Size = 0


def places(nest: Nest, step: Pass) -> list[PrefetchStream]:
    """Return the prefetches of a pass; [] in the first one, or if rows are known to be too long."""
    passes = list(nest.passes)
    if not nest.rows or nest.across is not None or step is passes[0]:
        return []
    loads = [value for value in walk(*passes[0].computed) if isinstance(value, Load)]
    next_row = nest.rows[-1].name
    found = [
        PrefetchStream(x.operand, x.offset + x.offset.step(next_row), x.dtype.itemsize, loop, False)
        for loop in walked_as(passes[0], step)
        for x in dict.fromkeys(loads)
        if x.offset.step(next_row) != 0
    ]
    later = passes[passes.index(step) + 1 :]
    found += [
        PrefetchStream(x.operand, x.offset, x.dtype.itemsize, loop, True)
        for each in later
        for loop in walked_as(each, step)
        for x in each.stores
    ]
    found = [x for x in found if is_direct(x.offset) and x.offset.step(x.loop) == 1]
    room = MAX_PREFETCHED_BYTES - sum(x.itemsize for x in found) * step.loops[-1].extent
    if len(found) > MAX_PREFETCHED_ARRAYS or (isinstance(room, int) and room < 0):
        return []
    return [replace(x, room=room) for x in found]


def walked_as(other: Pass, step: Pass) -> list[str]:
    """Return the variable of ``other``'s only loop, in a list, if ``step``'s is as long.

    Return [] otherwise.
    """
    loops = (*other.loops, *step.loops)
    alike = len(loops) == 2 and loops[0].extent == loops[1].extent
    return [other.loops[0].name] if alike else []
