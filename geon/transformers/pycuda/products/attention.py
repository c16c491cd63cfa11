"""Fused attention kernels (flash attention): the matrix of weights is never in memory.

A block has some rows of queries and iterates over tiles of keys. It keeps a running maximum of
scores and rescales its partial results when the maximum grows. Half-precision inputs use tensor
cores, with queries and weights in registers; float32 uses tiles in shared memory. Wide results are
divided among blocks, each of which computes all scores.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ...kernels.products.attention import Attention
from ..launches.naming import CudaFunction, CudaKernelNames
from .attention_text import MAX_PART_RESULTS, size_of
from .attention_tiles import ByTiles
from .attention_wmma import ByMatrices
from .tile_loads import factors_of, narrow

MAX_ROW_RESULTS = (
    4 * MAX_PART_RESULTS
)  # max. results per row; blocks divide them, and each recomputes all scores


def fits(work: Attention) -> bool:
    """Return True if a few blocks can hold the sums of a row's results."""
    size = size_of(work.results)
    return isinstance(size, int) and 0 < size <= MAX_ROW_RESULTS


def half_of(work: Attention) -> str | None:
    """Return the half-precision dtype that tensor cores multiply, or None without them."""
    found = factors_of(work.first)[2]
    deep = size_of(work.first.summed)
    if work.rounded is None or found != name_of(work.rounded):
        return None
    if narrow(work.value).dtype is not work.rounded:
        return None
    return found if isinstance(deep, int) and 0 < deep <= MAX_PART_RESULTS else None


def attention_function(work: Attention, names: CudaKernelNames) -> CudaFunction:
    """Return the attention kernel."""
    half = half_of(work)
    if half is None:
        return ByTiles(work, names, "float32").function()
    return ByMatrices(work, names, half).function()
