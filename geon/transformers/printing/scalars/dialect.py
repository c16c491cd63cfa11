"""Protocols of what languages of the C family express differently from plain C."""

from __future__ import annotations

from typing import Protocol


class Dialect(Protocol):
    """What scalar code may assume.

    ``wraps``: signed integers wrap around. ``spares``: loads are guarded, so that nothing is read
    that no select uses. ``hides``: strides that compilers vectorise worse are hidden from them.
    """

    wraps: bool
    spares: bool
    hides: bool


class Lanes(Dialect, Protocol):
    """Representation of row values where ``number`` rows are computed in lanes.

    ``tiles``: passes across memory read transposed loads from tiles. ``flat``: short contiguous
    rows are collapsed into one loop. ``windows``: random bits of a loop are buffered before it.
    ``together``: stores of row values share one loop over lanes. ``fetches``: positions are
    computed before innermost loops.
    """

    number: str
    tiles: bool
    flat: bool
    windows: bool
    together: bool
    fetches: bool

    def held(self, name: str, ctype: str) -> str:
        """Return the text of value ``name``, of this type, for the current row."""

    def array_of(self, text: str) -> str | None:
        """Return the array over lanes whose current element is ``text``; None if there is none."""

    def alone(self, name: str) -> str:
        """Return the text of value ``name`` of a state where no rows are in lanes."""

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """Return the statements that define ``name`` as ``text`` for each row."""

    def stored(self, statement: str, side_by_side: bool) -> str:
        """Return the statement that stores a value of the row, or of each row in lanes."""

    def all(self, statements: list[str]) -> list[str]:
        """Return the statements of one loop over lanes that runs ``statements`` for each row."""
