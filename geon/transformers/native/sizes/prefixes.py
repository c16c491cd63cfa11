"""Memory of prefix sums and products, in bytes: totals of parts of long lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.scratch import Size

WIDTH = 512  # columns side by side, whose totals stay in the first cache
PIECE = 8192  # elements of a part of a long line: some 4 microseconds
LEAST_ROWS = 64  # and how long it is at least, for wide ones
FEW_LINES = 16  # blocks of lines that are too few to divide the work by
FEW_PIECES = 4  # parts that are not worth finding totals first
TOTAL_BYTES = 8


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
