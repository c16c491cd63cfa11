"""Scratch memory that the threads of a kernel use while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...lazy_dataclasses import dataclass
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
    """Scratch memory of ``each`` bytes for each thread, at most ``tasks`` of which have work.

    If ``slots`` is not None, so many share the work instead of the threads of a call.
    """

    each: Size
    tasks: Size
    lasting: bool = False
    slots: int | None = None

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes of all parts for a call on ``threads`` threads."""
        threads = threads if self.slots is None else self.slots
        return evaluate(self.each, lengths) * max(1, min(threads, evaluate(self.tasks, lengths)))

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        threads = threads if self.slots is None else self.slots
        tasks = self.tasks if isinstance(self.tasks, int) else threads
        return self.each * max(1, min(threads, tasks))


@dataclass(frozen=True, slots=True)
class Largest:
    """Scratch memory of functions that run one after another: the maximum of theirs."""

    parts: tuple[Scratch, ...]
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the largest size; negative sizes of variants that do not run count as 0."""
        return max(0, *[part.bytes(lengths, threads) for part in self.parts])

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``: the sum, since open sizes cannot be compared."""
        known = [part.most(threads) for part in self.parts]
        found: Size = max([size for size in known if isinstance(size, int)], default=0)
        for size in known:
            found = found if isinstance(size, int) else found + size
        return found


def largest(parts: Iterable[Scratch | None]) -> Scratch | None:
    """Return the scratch memory of functions that run one after another, None without any."""
    found = dict.fromkeys([part for part in parts if part is not None])
    return Largest(tuple(found)) if len(found) > 1 else next(iter(found), None)


def lines(bytes: Size) -> Size:
    """Round bytes up to a multiple of a cache line."""
    return (bytes + 63) // 64 * 64
