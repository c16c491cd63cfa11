"""``Buffer``: arena memory of a plan, with the bytes that it takes in a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...op_graph.axes.lengths import Length, evaluate
from .scratch import Scratch


@dataclass(frozen=True, slots=True)
class Buffer:
    """Arena memory, alive from step ``first`` to step ``last``; where kernels run side by side,
    from the first step of a wave to the last of one.

    Steps are kernels; of a region, those of its bodies. It holds a value of ``size`` bytes, or is
    the scratch memory of one kernel or of several: then as large as what the one that needs most
    takes.
    """

    size: int | Length
    first: int
    last: int
    scratch: tuple[Scratch, ...] = ()

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Its bytes under ``lengths``, for a call on so many threads."""
        if self.scratch:
            return max(each.bytes(lengths, threads) for each in self.scratch)
        return evaluate(self.size, lengths)

    def most(self, threads: int) -> int | Length:
        """An expression over open lengths that is never less than ``bytes``."""
        bounds = {each.most(threads) for each in self.scratch}
        total = self.size + max((bound for bound in bounds if isinstance(bound, int)), default=0)
        for bound in bounds:
            if not isinstance(bound, int):
                total = total + bound
        return total
