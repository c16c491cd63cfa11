"""Source text of a module, divisible into several translation units compiled in parallel.

Kernels do not refer to each other, and no unit defines global memory, so each group of kernels
compiles with the shared text alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# Min. work of a translation unit, in characters: about 0.05 s for NVRTC, which takes 0.02 s for an
# empty text.
MIN_TEXT_WORK = 8000


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a module's source: the kernel ``kernel``, or shared text if that is None.

    ``work`` estimates the cost of compiling it, in characters.
    """

    text: str
    kernel: str | None = None
    work: int = 0


@dataclass(frozen=True, slots=True)
class CudaSource:
    """The common prelude of a module, and its pieces in order; a piece may use earlier ones."""

    common: str
    pieces: tuple[TextPiece, ...] = ()

    @property
    def whole(self) -> str:
        """Return the complete text."""
        return "\n".join([self.common, *(piece.text for piece in self.pieces)])

    @property
    def own(self) -> str:
        """Return the text without the prelude."""
        return "\n".join([piece.text for piece in self.pieces])

    def of(self, kernels: Collection[str]) -> str:
        """Return the text with these kernels only."""
        kept = [each.text for each in self.pieces if each.kernel is None or each.kernel in kernels]
        return "\n".join([self.common, *kept])

    def divided(self, most: int) -> list[list[str]]:
        """Partition the kernels into at most ``most`` groups of similar, sufficient work."""
        kernels = [(piece.work, piece.kernel) for piece in self.pieces if piece.kernel is not None]
        pay = sum(work for work, _ in kernels) // MIN_TEXT_WORK
        groups: list[list[str]] = [[] for _ in range(min(max(pay, 1), most, len(kernels)))]
        works = [0] * len(groups)
        for work, kernel in sorted(kernels, key=lambda each: -each[0]):
            lightest = works.index(min(works))
            groups[lightest].append(kernel)
            works[lightest] += work
        return groups
