"""Scratch memory of kernels that are not products, in bytes.

Sorts have words and transposed tiles, prefix sums the totals of parts of long lines, scatters
private copies of the result, and chains of kernels the rows of a block.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import Length, evaluate
from ....op_graph.values.dtypes import named_dtype
from ...sizes.blocks import CACHE_LINE_BYTES, MAX_NARROW_SORT_LENGTH, MIN_BLOCKS, Cut
from ...sizes.limits import (
    LONG_LOOP_TURNS,
    MIN_LAST_CACHE_BYTES,
    MIN_SIZE_RATIO,
    MIN_TASK_WORK,
    MIN_WORK,
    PAGE_BYTES,
)
from ...sizes.scratch import Size, lines

MAX_TILE_BYTES = MIN_LAST_CACHE_BYTES  # maximum bytes of a transposed tile of long lines
MIN_TASK_ELEMENTS = MIN_TASK_WORK // 2  # elements of a task: about 100 microseconds


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


TOTAL_BYTES = named_dtype("float64").itemsize  # bytes of a total
BLOCK_COLUMNS = PAGE_BYTES // TOTAL_BYTES  # columns of a block, whose totals fit the L1 cache
PART_ELEMENTS = MIN_TASK_WORK // 4  # elements of a part of a long line: about 4 microseconds
MIN_PART_ROWS = LONG_LOOP_TURNS  # minimum length of a part along the axis, for wide blocks
MIN_PARALLEL_BLOCKS = MIN_BLOCKS  # blocks of lines that suffice to divide the work without parts
MIN_PARTS = MIN_BLOCKS // 4  # minimum parts of a line for which computing totals first pays off


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


# Minimum elements for more than one task: about 50 microseconds.
MIN_PARALLEL_ELEMENTS = MIN_WORK // 2
# Minimum values per element of all copies, so that copies are smaller.
MIN_VALUES_PER_PLACE = MIN_SIZE_RATIO
MAX_COPIES = MIN_BLOCKS  # maximum private copies, one for each task


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


@dataclass(frozen=True, slots=True)
class BlockedScratch:
    """The scratch memory of each thread of a chain.

    ``cut`` has the values that steps pass on within a block. ``packed`` are the bytes of the
    products' scratch memory, ``arrays`` those of the nests' row arrays.
    """

    cut: Cut
    packed: int
    arrays: Size
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for all threads of a call."""
        each = self.cut.bytes(lengths) + self.packed + evaluate(self.arrays, lengths)
        return each * max(1, min(threads, self.cut.blocks(lengths)))

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        return (self.cut.most() + self.packed + self.arrays) * threads
