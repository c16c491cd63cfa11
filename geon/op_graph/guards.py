"""``Guard``: what is assumed of lengths until data come."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import GuardError
from .lengths import Length, substituted


class Guard:
    """An assumption about lengths that only data can confirm, checked before each call.

    ``left == right``, or ``left <= right`` when ``relation`` is ``<=``.
    """

    __slots__ = ("left", "meaning", "relation", "right")

    def __init__(
        self, relation: str, left: int | Length, right: int | Length, meaning: str
    ) -> None:
        self.relation, self.left, self.right, self.meaning = relation, left, right, meaning

    def holds(self, left: int, right: int) -> bool:
        """Whether the assumption holds for these two integers."""
        return left == right if self.relation == "==" else left <= right

    def refuse_broken(self, lengths: Mapping[str, int], given: str) -> None:
        """Raise ``GuardError`` where these lengths, which ``given`` describes, break it."""
        left, right = substituted(self.left, lengths), substituted(self.right, lengths)
        if isinstance(left, int) and isinstance(right, int) and not self.holds(left, right):
            raise GuardError(
                f"{self.meaning}\nwith {given}: {self.left} {self.relation} {self.right} is "
                f"needed, and {left} {self.relation} {right} is false"
            )
