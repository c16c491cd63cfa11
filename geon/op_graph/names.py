"""``NameableValue``: base class of values to which a user can give a name."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError

# The tag of variables that a frontend named because the user did not; names may repeat.
DEFAULT_NAME = "default name"
# The tag of variables that count the calls of a random stream, and their name in messages and
# checkpoints if the stream has no name.
RANDOM_CALLS = "random_calls"


def checked_name(name: Any) -> str:
    """Return the name as a plain ``str``; raise ``ArgumentError`` if it cannot be encoded."""
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
    """A value with a settable name; subclasses define the meaning of a name."""

    __slots__ = ()

    @property
    def name(self) -> str | None:
        """The displayed name, or None."""
        return self._get_name()

    @name.setter
    def name(self, name: str | None) -> None:
        self._set_name(name)

    def _get_name(self) -> str | None:
        raise NotImplementedError

    def _set_name(self, name: str | None) -> None:
        raise NotImplementedError
