"""Scratch memory: what the threads of a kernel work in while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...op_graph.axes.lengths import Length, evaluate

Size = int | Length


class Scratch(Protocol):
    """The memory that a kernel works in: a part for each of its threads, part after part."""

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""

    @property
    def lasting(self) -> bool:
        """Whether kernels one after another share it, so that it stays in the caches."""


@dataclass(frozen=True, slots=True)
class PerThread:
    """``each`` bytes for each thread, of which no more than ``tasks`` have work."""

    each: Size
    tasks: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""
        return evaluate(self.each, lengths) * max(1, min(threads, evaluate(self.tasks, lengths)))

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        tasks = self.tasks if isinstance(self.tasks, int) else threads
        return self.each * max(1, min(threads, tasks))


def lines(bytes: Size) -> Size:
    """The next multiple of a line of cache."""
    return (bytes + 63) // 64 * 64
