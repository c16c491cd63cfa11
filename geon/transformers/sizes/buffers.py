"""``Buffer``: one buffer in the arena of a plan, with its live range and its bytes in a call."""

from __future__ import annotations

from collections.abc import Mapping

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.lengths import Length, evaluate
from .scratch import Scratch


@dataclass(frozen=True, slots=True)
class Buffer:
    """Arena memory with the live range from step ``first`` to step ``last``.

    Steps are kernels; a region counts as the kernels of its bodies. If kernels run concurrently,
    the live range has whole waves. The buffer is a value of ``size`` bytes, or the scratch memory
    of one or several kernels, as large as the largest of them.
    """

    size: int | Length
    first: int
    last: int
    scratch: tuple[Scratch, ...] = ()

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for these lengths and a call on ``threads`` threads."""
        if self.scratch:
            return max(each.bytes(lengths, threads) for each in self.scratch)
        return evaluate(self.size, lengths)

    def most(self, threads: int) -> int | Length:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        bounds = {each.most(threads) for each in self.scratch}
        total = self.size + max((bound for bound in bounds if isinstance(bound, int)), default=0)
        for bound in bounds:
            if not isinstance(bound, int):
                total = total + bound
        return total
