"""Prefetch of gathered rows: rows at computed positions are requested several iterations ahead.

Hardware prefetchers follow contiguous rows, but cannot predict the address of the next gathered
row. Its position was computed before, so each iteration prefetches the row some iterations ahead.
"""

from __future__ import annotations

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.affine import AffineIndex, Size, variable
from ...op_graph.axes.index_map import InRange
from ..kernels.ir.loop_variables import variables_in
from ..kernels.ir.nest import Loop, Nest, Pass
from ..kernels.ir.scalar_code import NODES, Load, ScalarBuilder, walk
from ..sizes.blocks import L1_BYTES
from ..sizes.limits import MISSES_PER_PAGE, PREFETCH_DISTANCE
from .prefetch import MAX_PREFETCHED_ARRAYS
from .substitution import Substitution
from .tree import CachePrefetch, Choose

MAX_PREFETCHED_LINES = MISSES_PER_PAGE + 1  # of a row; then the hardware prefetcher takes over
# Maximum tables per pass, as their positions are computed twice.
MAX_PREFETCHED_TABLES = MAX_PREFETCHED_ARRAYS // 2
MAX_CACHED_TABLE_BYTES = L1_BYTES  # bytes of a table that is not prefetched


@dataclass(frozen=True, slots=True)
class Lookup:
    """A load of rows of ``size`` bytes at positions that vary with a loop's ``variable``."""

    load: Load
    variable: str
    size: Size


def lookups(nest: Nest, step: Pass) -> list[Lookup]:
    """Return the loads of a pass that gather rows by the loop around the innermost one."""
    around = [loop.name for loop in (*nest.rows, *step.loops[:-1])]
    if nest.across is not None or not around or not step.loops:
        return []
    inner, found = step.loops[-1], list[Lookup]()
    for load in [node for node in walk(*step.computed) if isinstance(node, Load)]:
        atoms = [atom for atom in load.offset.terms if isinstance(atom, NODES)]
        names = {name for atom in atoms for name in variables_in(atom)}
        runs = load.offset.step(inner.name) == 1 and inner.name not in names
        if runs and around[-1] in names:
            table = nest.operands[load.operand].axes.size * load.dtype.itemsize
            if not (isinstance(table, int) and table <= MAX_CACHED_TABLE_BYTES):
                found.append(Lookup(load, around[-1], inner.extent * load.dtype.itemsize))
    return found if len(found) <= MAX_PREFETCHED_TABLES else []


def asked_ahead(lookup: Lookup, row: Loop, inner: Loop, code: ScalarBuilder) -> Choose:
    """Return the prefetch of the row that a load along ``inner`` reads some iterations later."""
    later = variable(row.name) + PREFETCH_DISTANCE
    change = Substitution(code, {row.name: later, inner.name: AffineIndex()})
    start = change.index(lookup.load.offset)
    fetch = CachePrefetch(lookup.load.operand, start, nbytes=lookup.size)
    return Choose((InRange(later, 0, row.extent),), (fetch,), ())
