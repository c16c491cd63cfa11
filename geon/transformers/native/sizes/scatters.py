"""Scratch memory of scatters that combine values, in bytes: private copies of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.scratch import Size

MIN_PARALLEL_ELEMENTS = 65536  # minimum elements for more than one task: about 50 microseconds
MIN_VALUES_PER_PLACE = 8  # minimum values per element of all copies, so that copies are smaller
MAX_COPIES = 16  # maximum private copies, one for each task


@dataclass(frozen=True, slots=True)
class Copies:
    """Private copies of the result, (outer, n, inner) each, into which parts of m values are added.

    Their number depends only on the lengths; threads share them.
    """

    outer: Size
    n: Size
    inner: Size
    m: Size
    itemsize: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all copies, at most an eighth of those of the values."""
        sizes = (self.outer, self.n, self.inner, self.m)
        outer, n, inner, m = (evaluate(size, lengths) for size in sizes)
        if not outer * n * inner or outer >= MAX_COPIES or m * inner < MIN_PARALLEL_ELEMENTS:
            return 0
        parts = min(m // (MIN_VALUES_PER_PLACE * n), MAX_COPIES)
        return parts * outer * n * inner * self.itemsize if parts > 1 else 0

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        return self.outer * self.inner * (self.m // MIN_VALUES_PER_PLACE) * self.itemsize
