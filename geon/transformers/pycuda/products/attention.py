"""Attention as one kernel: no square of weights is in memory, however long rows are.

A block has some rows, and goes over keys tile by tile: weights are powers of scores less the
largest so far, and what was found before shrinks where a larger one comes. Halves are multiplied by
tensor cores, which hold queries and weights in registers; float32 by tiles in shared memory. Where
results are wide, blocks have a part of them each, and the same scores.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ...kernels.products.attention import Attention
from ..launches.naming import Function, KernelNames
from .attention_text import WIDEST, size_of
from .attention_tiles import ByTiles
from .attention_wmma import ByMatrices
from .tile_loads import multiplied, narrow

MOST = 4 * WIDEST  # results of a row, of which each block finds a part and all scores anew


def fits(work: Attention) -> bool:
    """Whether a few blocks have room for the sums of a row's results."""
    size = size_of(work.results)
    return isinstance(size, int) and 0 < size <= MOST


def half_of(work: Attention) -> str | None:
    """The half that tensor cores multiply; None where they do not."""
    found = multiplied(work.first)[2]
    deep = size_of(work.first.summed)
    if work.rounded is None or found != name_of(work.rounded):
        return None
    if narrow(work.value).dtype is not work.rounded:
        return None
    return found if isinstance(deep, int) and 0 < deep <= WIDEST else None


def attention_function(work: Attention, names: KernelNames) -> Function:
    """The function of attention: a block for so many rows."""
    half = half_of(work)
    if half is None:
        return ByTiles(work, names, "float32").function()
    return ByMatrices(work, names, half).function()
