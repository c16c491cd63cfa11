"""``Cut``: how the rows of kernels that run block by block are cut into blocks, in a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...op_graph.axes.lengths import evaluate, product
from .scratch import Size

BLOCK = 1 << 19  # bytes of the values of one block: half of what stays in the second cache
LEAST_ROWS = 96  # of a block, even where that is more bytes: an operand is packed for each block
MOST_ROWS = 480
LINE = 64  # bytes of a line of cache, at which each memory of a block begins
BLOCKS = 16  # wanted of all, so that threads end together
FEWEST_ROWS = 24  # of a block, for the sake of that


@dataclass(frozen=True, slots=True)
class Cut:
    """How rows are cut into blocks: for each index over ``batch`` those of ``rows``.

    ``memory`` has the bytes that each inner memory has for one row.
    """

    batch: tuple[Size, ...]
    rows: Size
    memory: tuple[Size, ...]

    def parts(self, lengths: Mapping[str, int]) -> int:
        """How many blocks the rows of a batch are cut into, each of as many rows or one more."""
        rows, batches = evaluate(self.rows, lengths), evaluate(product(self.batch), lengths)
        each = max(sum(evaluate(size, lengths) for size in self.memory), 1)
        most = min(max(BLOCK // each, LEAST_ROWS), MOST_ROWS)
        few = min(up(BLOCKS, max(batches, 1)), up(rows, FEWEST_ROWS))
        return max(up(rows, most), few, 1)

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """How many blocks there are of all batches."""
        rows = evaluate(self.rows, lengths)
        return evaluate(product(self.batch), lengths) * self.parts(lengths) if rows else 0

    def bytes(self, lengths: Mapping[str, int]) -> int:
        """The bytes of all inner memory, for the largest block."""
        rows = up(evaluate(self.rows, lengths), self.parts(lengths))
        return sum(up(rows * evaluate(size, lengths), LINE) * LINE for size in self.memory)

    def most(self) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        each: Size = sum(self.memory)
        return each * LEAST_ROWS + BLOCK + LINE * len(self.memory)


def up(total: int, each: int) -> int:
    """The quotient rounded up."""
    return -(-total // each)
