"""Scratch memory of sorts, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import Length, evaluate
from ....op_graph.values.dtypes import named_dtype
from ...sizes.blocks import CACHE_LINE_BYTES
from ...sizes.scratch import Size, lines

MAX_NARROW_SORT_LENGTH = 256  # maximum elements of lines that vectors of two numbers sort in lanes
MAX_TILE_BYTES = 1 << 22  # maximum bytes of a transposed tile of long lines
MIN_TASK_ELEMENTS = 16384  # elements of a task: about 100 microseconds


def lines_of_task(length: int | Length) -> int | Length:
    """Return the number of lines of this length that one task sorts."""
    return 1 + MIN_TASK_ELEMENTS // (length + 1)


def word_bytes(row: str, dtype: str) -> int:
    """Return the bytes of a word in which ``row`` sorts elements of ``dtype``."""
    return named_dtype(dtype).itemsize if row == "sort" else 8


@dataclass(frozen=True, slots=True)
class SortScratch:
    """The scratch memory of each thread of a sort: two words for each element of a line, and a tile
    for strided long lines.

    ``row`` is the primitive's name. ``sizes`` are (outer, n, inner) of the operand, ``k`` is the
    number of results of a line.
    """

    row: str
    dtype: str
    sizes: tuple[Size, Size, Size]
    k: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for all threads of a call."""
        outer, n, inner = (evaluate(size, lengths) for size in self.sizes)
        k, tasks = evaluate(self.k, lengths), -(-outer * inner // evaluate(lines_of_task(n), {}))
        element = named_dtype(self.dtype).itemsize
        line = n * element + k * (element if self.row == "sort" else 8)
        turned = min(MAX_TILE_BYTES // (line + 1), CACHE_LINE_BYTES // element, inner)
        tile = 0 if n <= MAX_NARROW_SORT_LENGTH or turned < 2 else lines(turned * line)
        return evaluate(self._words(n) + tile, {}) * max(1, min(threads, tasks))

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        if all(isinstance(size, int) for size in (*self.sizes, self.k)):
            return self.bytes({}, threads)
        tile = 0 if self.sizes[2] == 1 else MAX_TILE_BYTES + 64
        return (self._words(self.sizes[1]) + tile) * threads

    def _words(self, n: Size) -> Size:
        return lines(2 * n * word_bytes(self.row, self.dtype))
