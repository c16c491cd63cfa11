"""Memory of scatters that add, in bytes: copies of places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.scratch import Size

GRAIN = 65536  # elements that are worth more than one task: some 50 microseconds
FEW_PLACES = 8  # values for each place of all copies, so that these take less than the values
MOST_PARTS = 16  # copies, each of which a thread may add in


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of places that parts of m values are added in, each (outer, n, inner).

    How many there are follows from the lengths; threads share them.
    """

    outer: Size
    n: Size
    inner: Size
    m: Size
    itemsize: int
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all copies, at most an eighth of the values'."""
        sizes = (self.outer, self.n, self.inner, self.m)
        outer, n, inner, m = (evaluate(size, lengths) for size in sizes)
        if not outer * n * inner or outer >= MOST_PARTS or m * inner < GRAIN:
            return 0
        parts = min(m // (FEW_PLACES * n), MOST_PARTS)
        return parts * outer * n * inner * self.itemsize if parts > 1 else 0

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        return self.outer * self.inner * (self.m // FEW_PLACES) * self.itemsize
