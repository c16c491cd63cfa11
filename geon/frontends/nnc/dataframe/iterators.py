"""``DataIterator``: the rows of columns one after another, with a cursor and prefetching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ArgumentError, IndexRangeError
from ...neon.checks import at_least_zero
from ...neon.training.prefetch import Prefetch
from ..checks import checked

if TYPE_CHECKING:
    from .frame import DataFrame


@checked
class DataIterator:
    """An iterator over the rows of columns of a frame.

    ``next`` returns a tuple with the value of each column in one row. ``cursor`` is the number of
    the next row. The iterator also serves as data of ``fit``, where each row is a batch.
    """

    def __init__(self, frame: DataFrame, names: Sequence[str], prefetch: int = 0) -> None:
        self.frame, self.names, self.cursor = frame, tuple(names), 0
        self._ahead: Iterator[tuple[Any, ...]] | None = None
        self._row: int | None = None
        self._depth = 0
        self.prefetch(prefetch)

    def next(self) -> tuple[Any, ...]:
        """Return the values of the next row; raise ``IndexRangeError`` after the last one."""
        if self.cursor >= len(self.frame):
            raise IndexRangeError(
                f"the iterator is past the last of {len(self.frame)} rows; set_cursor(0) begins "
                "again"
            )
        if self._depth and self._ahead is None:
            self._ahead = Prefetch(self, self._depth).epoch(0, self.cursor)
        values = self._at(self.cursor) if self._ahead is None else next(self._ahead)
        self._row, self.cursor = self.cursor, self.cursor + 1
        return values

    def peek(self, *columns: str) -> tuple[Any, ...]:
        """Return the values of columns in the row that ``next`` returned last."""
        if self._row is None:
            raise IndexRangeError("there is no current row before next(); call it first")
        check_names(columns, self.frame.names)
        return self._at(self._row, columns or self.names)

    def prefetch(self, count: int) -> None:
        """Let a thread pull up to ``count`` rows ahead of ``next``; 0 ends that."""
        at_least_zero("DataIterator.prefetch", "count", count)
        self._close()
        self._depth = count

    def set_cursor(self, row: int) -> None:
        """Let ``next`` continue at a row; raise ``IndexRangeError`` if there is no such row."""
        at_least_zero("DataIterator.set_cursor", "row", row)
        if row > len(self.frame):
            raise IndexRangeError(
                f"row {row} of {len(self.frame)} rows; give one from 0 to {len(self.frame)}"
            )
        self._close()
        self.cursor, self._row = row, None

    def epoch(self, number: int, start: int = 0) -> Iterator[tuple[Any, ...]]:
        """Yield the rows from ``start`` on; the turn of random columns is ``number`` later."""
        for row in range(start, len(self.frame)):
            yield self._at(row, turn=number)

    def _at(self, row: int, names: Sequence[str] = (), turn: int = 0) -> tuple[Any, ...]:
        names = names or self.names
        found = self.frame._values(names, np.array([row]), turn)
        return tuple([found[name][0] for name in names])

    def _close(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()  # type: ignore[attr-defined]  # a generator

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> DataIterator:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.cursor >= len(self.frame):
            self._close()
            raise StopIteration
        return self.next()


def check_names(names: Sequence[Any], known: Sequence[str], where: str = "the frame") -> None:
    """Raise ``ArgumentError`` for a column that does not exist."""
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"{where} has no column {name!r}; it has {', '.join(map(repr, known)) or 'none'}"
            )
