"""Memory of sorts, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import Length, evaluate
from ....op_graph.values.dtypes import named_dtype
from ...sizes.scratch import Size, lines

NARROW_ROWS = 256  # elements of the longest lines that vectors of two numbers sort side by side
CACHE_LINE = 64  # bytes of long lines side by side that are brought together
TILE = 1 << 22  # bytes of long lines that are brought side by side
GRAIN = 16384  # elements that are worth a task of their own: some 100 microseconds


def lines_of_task(length: int | Length) -> int | Length:
    """How many lines of this length one task sorts."""
    return 1 + GRAIN // (length + 1)


def word_bytes(row: str, dtype: str) -> int:
    """The bytes of a word in which ``row`` sorts elements of ``dtype``."""
    return named_dtype(dtype).itemsize if row == "sort" else 8


@dataclass(frozen=True, slots=True)
class SortScratch:
    """What each thread of a sort works in: two words for each element of a line, and where
    lines run across memory room for some long ones.

    ``sizes`` are (outer, n, inner) of what is sorted, of which ``k`` elements are found.
    """

    row: str
    dtype: str
    sizes: tuple[Size, Size, Size]
    k: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""
        outer, n, inner = (evaluate(size, lengths) for size in self.sizes)
        k, tasks = evaluate(self.k, lengths), -(-outer * inner // evaluate(lines_of_task(n), {}))
        element = named_dtype(self.dtype).itemsize
        line = n * element + k * (element if self.row == "sort" else 8)
        turned = min(TILE // (line + 1), CACHE_LINE // element, inner)
        tile = 0 if n <= NARROW_ROWS or turned < 2 else lines(turned * line)
        return evaluate(self._words(n) + tile, {}) * max(1, min(threads, tasks))

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        if all(isinstance(size, int) for size in (*self.sizes, self.k)):
            return self.bytes({}, threads)
        tile = 0 if self.sizes[2] == 1 else TILE + 64
        return (self._words(self.sizes[1]) + tile) * threads

    def _words(self, n: Size) -> Size:
        if named_dtype(self.dtype).itemsize == 1:
            return 0  # bytes are counted
        return lines(2 * n * word_bytes(self.row, self.dtype))
