"""Choose the functions of strips that compute values in vectors, and the nests that call them.

Compilers vectorise operators, but do not use instructions without an operator. A strip is the
elements of one register; a function with such instructions computes all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Nest, Pass
from ...kernels.ir.scalar_code import Apply, RandomBits, Scalar, walk
from ...kernels.nests.buffered_loads import Staged, choose_buffered
from ...loops.gather_prefetch import lookups
from ...printing.scalars import c_expressions
from ...sizes.limits import (
    AVX2_BYTES,
    AVX512_BYTES,
    LONG_LOOP_TURNS,
    MAX_FUNCTION_NODES,
    OP_LATENCY_CYCLES,
)

# Minimum elements of a row, lest the horizontal sums dominate.
MIN_STRIP_ROW_ELEMENTS = LONG_LOOP_TURNS
# Maximum nodes of a pass; above, the values of a strip spill from registers.
MAX_STRIP_NODES = MAX_FUNCTION_NODES // OP_LATENCY_CYCLES
STRIP_BYTES = AVX512_BYTES  # vector width for which all functions exist
HALF_STRIP_BYTES = AVX2_BYTES  # vector width for which those without scaling by powers of two exist
SCALED = ("geon_exp_strip_f64", "geon_sigmoid_", "geon_softplus_")


def function_of(value: Scalar, vector_bytes: int) -> str | None:
    """Return the function of strips that computes a value, or None."""
    if not isinstance(value, Apply):
        return None
    source = name_of(value.args[0].dtype)
    rounded = isinstance(value.args[0], Apply) and value.args[0].row.name == "cast"
    found = c_expressions.strip_function(value.row.name, name_of(value.dtype), source, rounded)
    return found if found is not None and exists(found, vector_bytes) else None


def exists(function: str, vector_bytes: int) -> bool:
    """Return True if a function of strips exists for registers of ``vector_bytes``."""
    if function.startswith(SCALED):
        return vector_bytes >= STRIP_BYTES
    return vector_bytes >= HALF_STRIP_BYTES


def function_itemsize(nest: Nest, vector_bytes: int) -> int | None:
    """Return the bytes of an element of the vectors of a nest that calls functions of strips.

    Return None for a nest without such calls, or with passes that have a form of their own.
    """
    if nest.across is not None or not all(step.loops for step in nest.passes):
        return None
    depths = Depths.of(nest)
    found: list[int] = []
    for step in nest.passes:
        inner = [node for node in walk(*step.computed) if depths.value(node) == ELEMENT_DEPTH]
        if has_own_form(nest, step, inner) or is_ordered(step):
            return None
        extent = step.loops[-1].extent
        short = isinstance(extent, int) and extent < MIN_STRIP_ROW_ELEMENTS
        if not short and len(inner) <= MAX_STRIP_NODES:
            calls = [node for node in inner if function_of(node, vector_bytes) is not None]
            found += [max(4, node.dtype.itemsize) for node in calls]
    return min(found, default=None)


def has_own_form(nest: Nest, step: Pass, inner: Sequence[Scalar]) -> bool:
    """Return True if a pass prefetches or buffers some of its loads, or draws among ``inner``.

    These are the values of its elements: bits that a row draws are the same for all its elements.
    """
    draws = any(isinstance(node, RandomBits) for node in inner)
    return (
        draws
        or any(map(is_periodic, choose_buffered(step, nest.most)))
        or bool(lookups(nest, step))
    )


def is_periodic(staged: Staged) -> bool:
    """Return True if a buffered value has digits of the loop variable: other loads are lanes'."""
    return bool(staged.digits) or staged.every > 0


def is_ordered(step: Pass) -> bool:
    """Return True if a reduction of a pass takes its elements in order."""
    return any(each.reducer.step is each.reducer.further for each in step.reductions)
