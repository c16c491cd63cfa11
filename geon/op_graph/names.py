"""``NameableValue``: anything a user can give a name to."""

from __future__ import annotations


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
