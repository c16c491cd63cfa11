"""What a language of the C family says in its own way, and plain C has not."""

from __future__ import annotations

from typing import Protocol


class Lanes(Protocol):
    """How a language holds values of rows, where ``number`` of them are computed side by side.

    Passes that cross memory read what adjoins along lanes from ``tiles``, short rows that adjoin
    are walked as one that is ``flat``, random bits of a loop are made in ``windows`` before it, and
    loads of an order of their own in ``stages``, where a language does so. What is stored of rows
    is computed ``together``, in one loop over them. Where it ``wraps``, sums of signed integers do
    so by themselves; where it ``spares`` memory, nothing is read that no choice takes; where it
    ``hides`` steps, compilers are not told of those that they make worse vectors of. Where it
    ``fetches``, rows at computed positions are asked for ahead.
    """

    number: str
    tiles: bool
    flat: bool
    windows: bool
    stages: bool
    together: bool
    wraps: bool
    spares: bool
    hides: bool
    fetches: bool

    def held(self, name: str, ctype: str) -> str:
        """The value called ``name``, of this type, of the row that is at hand."""

    def array_of(self, text: str) -> str | None:
        """The array over lanes whose value at hand is called ``text``; None where it is none."""

    def alone(self, name: str) -> str:
        """The value called ``name`` of a state, where no rows are side by side."""

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statements that make ``name`` the value ``text`` of each row."""

    def stored(self, statement: str, side_by_side: bool) -> str:
        """The statement that stores a value of the row, or of each of those side by side."""

    def all(self, statements: list[str]) -> list[str]:
        """Statements that are run for each of the rows side by side, in one loop."""


class Strips(Protocol):
    """How a language holds the values of a strip: neighbouring elements that functions take at
    once. Statements are run for each element, between calls for all of them.
    """

    @property
    def put(self) -> str:
        """The function that puts float32 of a strip by, or "" where a loop does as well."""

    def has(self, function: str) -> bool:
        """Whether the machine has what a function of strips needs to be worth its call."""

    def held(self, name: str) -> str:
        """The value called ``name`` of the element that is at hand."""

    def variable(self, name: str) -> str:
        """The loop variable ``name`` at the element that is at hand."""

    def start(self, name: str) -> str:
        """The loop variable ``name`` at the first element of the strip."""

    def declare(self, ctype: str, name: str) -> str:
        """The statement that declares ``name``, which has a value for each element."""

    def sums(self, name: str) -> str:
        """What a function is given that adds to the sum called ``name``."""
