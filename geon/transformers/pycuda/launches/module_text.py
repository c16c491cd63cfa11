"""The text of a module in pieces: some kernels, with what they may need, are a text of their own.

No kernel knows of another one, and no text has memory that kernels share. So compilers take a
module as several texts at one time.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# The least work of a text that is worth a compiler of its own: some 0.05 s for NVRTC, which takes
# 0.02 s for nothing.
LEAST = 8000


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a module's text: the kernel of this name, or what any kernel may need.

    Compiling it takes so much ``work``, in characters.
    """

    text: str
    kernel: str | None = None
    work: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What a module begins with, and its pieces in order, each of which may use those before."""

    common: str
    pieces: tuple[Piece, ...] = ()

    @property
    def whole(self) -> str:
        """All of the text."""
        return "\n".join([self.common, *(piece.text for piece in self.pieces)])

    @property
    def own(self) -> str:
        """The text of its pieces alone."""
        return "\n".join([piece.text for piece in self.pieces])

    def of(self, kernels: Collection[str]) -> str:
        """The text that has these kernels alone."""
        kept = [each.text for each in self.pieces if each.kernel is None or each.kernel in kernels]
        return "\n".join([self.common, *kept])

    def divided(self, most: int) -> list[list[str]]:
        """All kernels in groups of about the same work, ``most`` of them or as many as pay."""
        kernels = [(piece.work, piece.kernel) for piece in self.pieces if piece.kernel is not None]
        pay = sum(work for work, _ in kernels) // LEAST
        groups: list[list[str]] = [[] for _ in range(min(max(pay, 1), most, len(kernels)))]
        works = [0] * len(groups)
        for work, kernel in sorted(kernels, key=lambda each: -each[0]):
            lightest = works.index(min(works))
            groups[lightest].append(kernel)
            works[lightest] += work
        return groups
