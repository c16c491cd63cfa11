"""C library kernels for prefix sums and products, and the memory that their parts' totals take.

The C is in ``c/cumulative.c`` and ``c/scan.h``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...op_graph.affine import Size
from ...op_graph.dtypes import FLOATS, name_of
from ...op_graph.lengths import evaluate, product
from ...op_graph.op_graph import Op
from ..printing.c_expressions import ARITHMETIC, calls, literal
from ..printing.c_types import C_TYPES, SUFFIXES
from .c_files import FileFunction, file_function

PREFIXES = frozenset(("cumsum", "cumprod"))
WIDTH = 512  # columns side by side, whose totals stay in the first cache
ROWS = 16  # rows of wide blocks that are gone over together, while their pages are known
PIECE = 8192  # elements of a part of a long line: some 4 microseconds
LEAST_ROWS = 64  # and how long it is at least, for wide ones
FEW_LINES = 16  # blocks of lines that are too few to divide the work by
FEW_PIECES = 4  # parts that are not worth finding totals first
GRAIN = 16384  # elements that are worth a task of their own
TOTAL_BYTES = 8


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


@dataclass(frozen=True, slots=True)
class PartTotals:
    """A total for each part that long lines of (outer, n, inner) are cut into.

    How they are cut follows from the lengths; threads share these totals.
    """

    outer: Size
    n: Size
    inner: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all totals."""
        outer, n, inner = (evaluate(size, lengths) for size in (self.outer, self.n, self.inner))
        if not outer * n * inner or outer * -(-inner // WIDTH) >= FEW_LINES:
            return 0
        length = max(PIECE // min(inner, WIDTH), LEAST_ROWS)
        if n < FEW_PIECES * length:
            return 0
        return outer * -(-n // length) * inner * TOTAL_BYTES

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        length = LEAST_ROWS
        if isinstance(self.inner, int):
            length = max(PIECE // min(max(self.inner, 1), WIDTH), LEAST_ROWS)
        return self.outer * ((self.n + length - 1) // length) * self.inner * TOTAL_BYTES
