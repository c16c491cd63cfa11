"""C library kernels for prefix sums and products, and the memory that their parts' totals take.

The C is in ``c/cumulative.c`` and ``c/scan.h``.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOATS, name_of
from ...printing.scalars.c_expressions import ARITHMETIC, calls, literal
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ..names.c_files import FileFunction, file_function
from ..sizes.prefixes import FEW_LINES, FEW_PIECES, LEAST_ROWS, PIECE, WIDTH, PartTotals

PREFIXES = frozenset(("cumsum", "cumprod"))
ROWS = 16  # rows of wide blocks that are gone over together, while their pages are known
GRAIN = 16384  # elements that are worth a task of their own


def cumulative_text(row: str, dtype: str, result: str | None = None) -> FileFunction:
    """``void(threads, x, out, scratch, outer, n, inner, int exclusive, int reverse)``.

    Running totals, which accumulate in the dtype of the result, that of ``x`` unless given, sums of
    float32 in float64; ``out`` may be ``x``. ``scratch`` is what ``PartTotals`` says.
    """
    result = result or dtype
    step = "add" if row == "cumsum" else "multiply"
    first = literal(0 if row == "cumsum" else 1, result)
    total = "float64" if (row, result) == ("cumsum", "float32") else result
    # A sum starts from -0, so that the first element stays what it is even where that is -0.
    negative_zero = row == "cumsum" and result in ("float32", "float64")
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[result]}
    macros: dict[str, object] = {
        "TOTAL": C_TYPES[total],
        "HELD": "uint8_t" if dtype == "bool" else C_TYPES[dtype],
        "START": "-0.0" if negative_zero else first,
        "IDENTITY": first,
        "OPERATOR": ARITHMETIC[step].format("", "").strip(),
        "REORDERS": int(reorders(row, result)),
        "WIDENED": int((dtype, total) == ("float32", "float64")),
        "WIDTH": WIDTH,
        "ROWS": ROWS,
        "PIECE": PIECE,
        "LEAST_ROWS": LEAST_ROWS,
        "FEW_LINES": FEW_LINES,
        "FEW_PIECES": FEW_PIECES,
        "GRAIN": GRAIN,
    }
    name = f"geon_{row}_{SUFFIXES[dtype]}_{SUFFIXES[result]}"
    called = calls(step, (total, total), total)
    return file_function("cumulative", name, types, macros, calls=called)


def reorders(row: str, result: str) -> bool:
    """Whether totals may be found in another order than one after another.

    Products of floats may not: a part of one can overflow where the whole does not.
    """
    return row == "cumsum" or result not in FLOATS


def prefix_scratch(op: Op) -> PartTotals | None:
    """The scratch memory of a prefix sum or product, where it takes any."""
    if not reorders(op.primitive.name, name_of(op.dtype)):
        return None
    at = op.axes.names.index(op.attrs[0])
    lengths = op.axes.lengths
    return PartTotals(product(lengths[:at]), lengths[at], product(lengths[at + 1 :]))
