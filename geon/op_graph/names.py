"""``NameableValue``: anything a user can give a name to."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError

# The tag of a variable that a frontend named where its user gave no name; several may have one.
DEFAULT_NAME = "default name"
# The kind of a variable that counts the calls of a random stream: its tag, and what it is called
# in messages and checkpoints where the stream has no name.
RANDOM_CALLS = "random_calls"


def checked_name(name: Any) -> str:
    """The name as Python's own string; ``ArgumentError`` for what no file can hold as a text."""
    if not isinstance(name, str):
        raise ArgumentError(f"a name is a string or None, not {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArgumentError(
            f"the name {name!r} has half of a surrogate pair, which no file can hold; take it out, "
            "for example with name.encode(errors='replace').decode()"
        ) from None
    return name if type(name) is str else str.__str__(name)


class NameableValue:
    """A value with a settable name; what a name means is the subclass's."""

    __slots__ = ()

    @property
    def name(self) -> str | None:
        """The name shown for it, or None."""
        return self._get_name()

    @name.setter
    def name(self, name: str | None) -> None:
        self._set_name(name)

    def _get_name(self) -> str | None:
        raise NotImplementedError

    def _set_name(self, name: str | None) -> None:
        raise NotImplementedError
