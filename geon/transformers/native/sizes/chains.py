"""Scratch memory of chains of kernels that run block by block, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import evaluate
from ...sizes.blocks import Cut
from ...sizes.scratch import Size


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
