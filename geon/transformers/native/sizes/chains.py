"""Memory of chains of kernels that run block by block, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.blocks import Cut
from ...sizes.scratch import Size


@dataclass(frozen=True, slots=True)
class BlockedScratch:
    """What each thread of a chain works in: what its steps hand on for one block, then the
    ``packed`` bytes of its products, then the arrays of rows of its nests.
    """

    cut: Cut
    packed: int
    arrays: Size
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""
        each = self.cut.bytes(lengths) + self.packed + evaluate(self.arrays, lengths)
        return each * max(1, min(threads, self.cut.blocks(lengths)))

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        return (self.cut.most() + self.packed + self.arrays) * threads
