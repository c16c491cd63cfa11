"""Scratch memory of prefix sums and products, in bytes: the totals of parts of long lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.scratch import Size

BLOCK_COLUMNS = 512  # columns of a block, whose totals fit the L1 cache
PART_ELEMENTS = 8192  # elements of a part of a long line: about 4 microseconds
MIN_PART_ROWS = 64  # minimum length of a part along the axis, for wide blocks
MIN_PARALLEL_BLOCKS = 16  # blocks of lines that suffice to divide the work without parts
MIN_PARTS = 4  # minimum parts of a line for which computing totals first pays off
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
        if not outer * n * inner or outer * -(-inner // BLOCK_COLUMNS) >= MIN_PARALLEL_BLOCKS:
            return 0
        length = max(PART_ELEMENTS // min(inner, BLOCK_COLUMNS), MIN_PART_ROWS)
        if n < MIN_PARTS * length:
            return 0
        return outer * -(-n // length) * inner * TOTAL_BYTES

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        length = MIN_PART_ROWS
        if isinstance(self.inner, int):
            length = max(PART_ELEMENTS // min(max(self.inner, 1), BLOCK_COLUMNS), MIN_PART_ROWS)
        return self.outer * ((self.n + length - 1) // length) * self.inner * TOTAL_BYTES
