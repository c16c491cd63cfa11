"""``Cut``: the division of rows into blocks for kernels that run block by block."""

from __future__ import annotations

from collections.abc import Mapping

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.lengths import evaluate, product
from .scratch import Size

L1_BYTES = 1 << 15  # bytes of the first-level cache of a core: plans are for any machine
L2_BYTES = 1 << 20  # bytes of the second-level cache of a core
BLOCK_BYTES = L2_BYTES // 2  # bytes of the values of one block
MIN_BLOCK_ROWS = 96  # minimum rows of a block of more bytes: operands are packed for each block
MAX_BLOCK_ROWS = 480  # maximum rows of a block
CACHE_LINE_BYTES = 64  # bytes of a cache line, to which the values of a block are aligned
MAX_NARROW_SORT_LENGTH = 256  # maximum elements of lines that are sorted in vector lanes
MIN_BLOCKS = 16  # desired number of all blocks of rows, or of parts of a loop, for load balance
MIN_BALANCED_BLOCK_ROWS = 24  # minimum rows of a block if they are cut further for that


@dataclass(frozen=True, slots=True)
class Cut:
    """The division of rows into blocks: for each index over ``batch`` those of ``rows``.

    ``memory`` has the bytes per row of each value that is passed between steps.
    """

    batch: tuple[Size, ...]
    rows: Size
    memory: tuple[Size, ...]

    def parts(self, lengths: Mapping[str, int]) -> int:
        """Return the number of blocks in a batch; their sizes differ by at most one row."""
        rows, batches = evaluate(self.rows, lengths), evaluate(product(self.batch), lengths)
        each = max(sum(evaluate(size, lengths) for size in self.memory), 1)
        most = min(max(BLOCK_BYTES // each, MIN_BLOCK_ROWS), MAX_BLOCK_ROWS)
        few = min(up(MIN_BLOCKS, max(batches, 1)), up(rows, MIN_BALANCED_BLOCK_ROWS))
        return max(up(rows, most), few, 1)

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """Return the number of blocks in all batches."""
        rows = evaluate(self.rows, lengths)
        return evaluate(product(self.batch), lengths) * self.parts(lengths) if rows else 0

    def bytes(self, lengths: Mapping[str, int]) -> int:
        """Return the bytes of all values between steps, for the largest block."""
        rows = up(evaluate(self.rows, lengths), self.parts(lengths))
        return sum(
            up(rows * evaluate(size, lengths), CACHE_LINE_BYTES) * CACHE_LINE_BYTES
            for size in self.memory
        )

    def most(self) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        each: Size = sum(self.memory)
        return each * MIN_BLOCK_ROWS + BLOCK_BYTES + CACHE_LINE_BYTES * len(self.memory)


def up(total: int, each: int) -> int:
    """Return the quotient rounded up."""
    return -(-total // each)
