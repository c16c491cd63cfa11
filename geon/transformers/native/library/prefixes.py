"""C library kernels for prefix sums, products and extremes, and their scratch memory.

The C is in ``c/scan/cumulative.c`` and ``c/scan/contiguous.h``.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import FLOATS, name_of, named_dtype
from ...printing.scalars.c_expressions import ARITHMETIC, calls, expression, literal
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ..names.c_files import FileFunction, file_function
from ..sizes.kernel_scratch import (
    BLOCK_COLUMNS,
    MIN_PARALLEL_BLOCKS,
    MIN_PART_ROWS,
    MIN_PARTS,
    MIN_TASK_ELEMENTS,
    PART_ELEMENTS,
    PartTotals,
)

# Rows of a wide block that are processed together, while their pages are in the TLB
BLOCK_ROWS = 16


def cumulative_text(row: str, dtype: str, result: str | None = None) -> FileFunction:
    """Return ``void(threads, x, out, scratch, outer, n, inner, int exclusive, int reverse)``.

    It combines prefixes as ``row`` does in the dtype ``result``, by default that of ``x``; sums of
    float32 accumulate in float64. ``out`` may be ``x``. ``PartTotals`` describes ``scratch``.
    """
    result = result or dtype
    step = RUNNING[row].step.name
    first = literal(RUNNING[row].identity(named_dtype(result)), result)
    total = "float64" if (row, result) == ("cumsum", "float32") else result
    # A sum starts from -0, so that a first element of -0 is preserved.
    negative_zero = row == "cumsum" and result in ("float32", "float64")
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[result]}
    macros: dict[str, object] = {
        "TOTAL": C_TYPES[total],
        "HELD": "uint8_t" if dtype == "bool" else C_TYPES[dtype],
        "START": "-0.0" if negative_zero else first,
        "IDENTITY": first,
        **_combining(step, total),
        "REORDERS": int(reorders(row, result)),
        "WIDENED": int((dtype, total) == ("float32", "float64")),
        "WIDTH": BLOCK_COLUMNS,
        "ROWS": BLOCK_ROWS,
        "PIECE": PART_ELEMENTS,
        "LEAST_ROWS": MIN_PART_ROWS,
        "FEW_LINES": MIN_PARALLEL_BLOCKS,
        "FEW_PIECES": MIN_PARTS,
        "GRAIN": MIN_TASK_ELEMENTS,
    }
    name = f"geon_{row}_{SUFFIXES[dtype]}_{SUFFIXES[result]}"
    called = calls(step, (total, total), total)
    return file_function("scan/cumulative", name, types, macros, calls=called)


def _combining(step: str, dtype: str) -> dict[str, object]:
    """Return the macros that combine two totals, and two vectors of totals.

    Vectors have no conditional expression in C, so the greater elements are chosen by masks.
    """
    if step in ARITHMETIC:
        text = f"({ARITHMETIC[step].format('(a)', '(b)')})"
        return {"COMBINE(a, b)": text, "COMBINE_LANES(a, b)": text}
    scalar = expression(step, (dtype, dtype), dtype, ("(a)", "(b)"))
    return {
        "COMBINE(a, b)": f"({scalar})",
        "COMBINE_LANES(a, b)": "PART(chosen)(a, b)",
        "IS_CHOSEN(a, b)": scalar.partition(" ? ")[0],
    }


def reorders(row: str, result: str) -> bool:
    """Return True if the prefix operation may be reassociated.

    Products of floats may not: a part can overflow where the whole does not.
    """
    return RUNNING[row].reorders or result not in FLOATS


def prefix_scratch(op: Op) -> PartTotals | None:
    """Return the scratch memory of a prefix operation; None if it is sequential."""
    if not reorders(op.primitive.name, name_of(op.dtype)):
        return None
    at = op.axes.names.index(op.attrs.axis)
    lengths = op.axes.lengths
    return PartTotals(product(lengths[:at]), lengths[at], product(lengths[at + 1 :]))
