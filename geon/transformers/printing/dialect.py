"""What a language of the C family says in its own way, and plain C has not."""

from __future__ import annotations

from typing import Protocol


class Lanes(Protocol):
    """How a language holds values of rows that are computed side by side, ``number`` at a time."""

    number: str

    def held(self, name: str) -> str:
        """The value called ``name`` of the row that is at hand."""

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statements that make ``name`` the value ``text`` of each row."""

    def each(self, statement: str) -> str:
        """The statement, run for each row."""
