"""Scratch memory of prefix sums and products, in bytes: the totals of parts of long lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.scratch import Size

WIDTH = 512  # columns of a block, whose totals fit the L1 cache
PIECE = 8192  # elements of a part of a long line: about 4 microseconds
LEAST_ROWS = 64  # minimum length of a part along the axis, for wide blocks
FEW_LINES = 16  # blocks of lines that suffice to divide the work without parts
FEW_PIECES = 4  # minimum parts of a line for which computing totals first pays off
TOTAL_BYTES = 8  # bytes of a total


@dataclass(frozen=True, slots=True)
class PartTotals:
    """A total for each part of long lines of shape (outer, n, inner).

    The division into parts depends only on the lengths; threads share the totals.
    """

    outer: Size
    n: Size
    inner: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all totals, 0 if lines are not divided."""
        outer, n, inner = (evaluate(size, lengths) for size in (self.outer, self.n, self.inner))
        if not outer * n * inner or outer * -(-inner // WIDTH) >= FEW_LINES:
            return 0
        length = max(PIECE // min(inner, WIDTH), LEAST_ROWS)
        if n < FEW_PIECES * length:
            return 0
        return outer * -(-n // length) * inner * TOTAL_BYTES

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        length = LEAST_ROWS
        if isinstance(self.inner, int):
            length = max(PIECE // min(max(self.inner, 1), WIDTH), LEAST_ROWS)
        return self.outer * ((self.n + length - 1) // length) * self.inner * TOTAL_BYTES
