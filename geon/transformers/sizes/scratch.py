"""Scratch memory that the threads of a kernel use while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...op_graph.axes.lengths import Length, evaluate

Size = int | Length


class Scratch(Protocol):
    """The scratch memory of a kernel: consecutive parts, one for each of its threads."""

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all parts for a call on ``threads`` threads."""

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""

    @property
    def lasting(self) -> bool:
        """Return True if consecutive kernels share the memory, so that it stays in the caches."""


@dataclass(frozen=True, slots=True)
class PerThread:
    """Scratch memory of ``each`` bytes for each thread, at most ``tasks`` of which have work."""

    each: Size
    tasks: Size
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all parts for a call on ``threads`` threads."""
        return evaluate(self.each, lengths) * max(1, min(threads, evaluate(self.tasks, lengths)))

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        tasks = self.tasks if isinstance(self.tasks, int) else threads
        return self.each * max(1, min(threads, tasks))


def lines(bytes: Size) -> Size:
    """Round bytes up to a multiple of a cache line."""
    return (bytes + 63) // 64 * 64
