"""C library kernels for scatter, and the private copies of the result into which threads add.

The C is in ``c/scatter.c``.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.reducers import highest, lowest
from ....op_graph.values.dtypes import HALVES, as_dtype
from ...printing.scalars.c_expressions import cast_calls, combine_expression, literal
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...sizes.limits import L1_BLOCK_BYTES, MIN_LAST_CACHE_BYTES, MIN_TASK_WORK, PREFETCH_DISTANCE
from ..names.c_files import FileFunction, file_function
from ..sizes.kernel_scratch import (
    BLOCK_COLUMNS,
    MAX_COPIES,
    MIN_PARALLEL_ELEMENTS,
    MIN_VALUES_PER_PLACE,
    Copies,
)

# Minimum columns of a task: long contiguous runs use memory bandwidth better.
MIN_TASK_COLUMNS = BLOCK_COLUMNS
# Elements that one task adds up, of all private copies.
ELEMENTS_PER_SUM_TASK = 2 * MIN_TASK_WORK // MAX_COPIES
# Bytes of the result from which on the caches hold little of it.
MIN_UNCACHED_BYTES = 2 * MIN_LAST_CACHE_BYTES
PREFETCH_DISTANCE_POSITIONS = 2 * PREFETCH_DISTANCE  # an index has less work than a row
POSITIONS_PER_BATCH = L1_BLOCK_BYTES // 2  # indices that are filtered for one range at a time
# Maximum tasks that scan all indices, each for its own range of the result.
MAX_RANGE_TASKS = MAX_COPIES // 2


def scatter_text(mode: str, dtype: str, index: str) -> FileFunction:
    """Return ``void(threads, x, positions, value, out, scratch, outer, n, inner, m)``.

    It copies x to ``out`` and sets or combines ``value``, (outer, m, inner), at ``positions``: m
    integers of dtype ``index`` that are in range, negative ones counted from the axis's end. They
    are applied in order, so the later of two equal indices wins for ``set``. Lowering adds and
    multiplies half precision as float32. ``out`` may be ``x``. ``Copies`` describes ``scratch``.
    """
    stored = "value" if mode == "set" else combine_expression(mode, dtype, ("place", "value"))
    types = {"TYPE": C_TYPES[dtype], "INDEX": C_TYPES[index]}
    macros = {"STORED(place, value)": f"({stored})", "ADDED": int(mode != "set")}
    macros |= {
        "NOTHING": _nothing(mode, dtype),
        "GRAIN": MIN_PARALLEL_ELEMENTS,
        "COLUMNS": MIN_TASK_COLUMNS,
    }
    macros |= {"FEW_PLACES": MIN_VALUES_PER_PLACE}
    macros |= {"MOST_PARTS": MAX_COPIES, "PIECE": ELEMENTS_PER_SUM_TASK}
    macros |= {
        "FAR": MIN_UNCACHED_BYTES,
        "AHEAD": PREFETCH_DISTANCE_POSITIONS,
        "LISTED": POSITIONS_PER_BATCH,
        "MOST_RANGES": MAX_RANGE_TASKS,
    }
    name = f"geon_scatter_{mode}_{SUFFIXES[dtype]}_{SUFFIXES[index]}"
    added = mode != "set" and dtype in HALVES
    called = cast_calls(dtype, "float32") + cast_calls("float32", dtype) if added else ()
    return file_function("scatter", name, types, macros, calls=called)


def _nothing(mode: str, dtype: str) -> str:
    """Return the identity element of ``mode`` as a C literal: -0 for a sum of floats.

    For half precision it is the bit pattern.
    """
    known = as_dtype(dtype)
    if mode in ("set", "add"):
        return "0x8000" if dtype in HALVES else "-0.0" if dtype.startswith("float") else "0"
    return literal({"max": lowest(known), "min": highest(known), "multiply": 1}[mode], dtype)


def scatter_scratch(op: Op) -> Copies | None:
    """Return the scratch memory of a scatter, or None for mode "set"."""
    x, index, _ = op.args
    if op.attrs.mode == "set":
        return None
    at, lengths = x.axes.index(op.attrs.axis), x.axes.lengths
    sizes = (product(lengths[:at]), lengths[at], product(lengths[at + 1 :]), index.axes.size)
    return Copies(*sizes, op.dtype.itemsize)
