"""``Node``: a named value with arguments that knows the user's line it was made at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError
from .names import NameableValue
from .sites import Site, describe, resolve

SITES_KEPT = 8


def slot_setter(cls: type, slot: str) -> Callable[[Any, Any], None]:
    """What puts a value into a slot of an object whose class refuses plain assignment."""
    setter: Callable[[Any, Any], None] = cls.__dict__[slot].__set__
    return setter


class DebugInfo:
    """Where in the user's program something was made."""

    __slots__ = ()

    _site: Site

    @property
    def filename(self) -> str:
        """The file of the user's line that made it."""
        return resolve(self._site)[0]

    @property
    def lineno(self) -> int:
        """The number of that line."""
        return resolve(self._site)[1]

    @property
    def file_info(self) -> str:
        """``file:line``, with a remark for ops that a derivative or a rewrite made."""
        return describe(self._site)


@dataclass(slots=True)
class Notes:
    """What people said about an op: no part of its identity, and shared by all who built it."""

    name: str | None = None
    names: list[str] = field(default_factory=list)
    tags: frozenset[str] = frozenset()
    sites: list[Site] = field(default_factory=list)


class Node(NameableValue, DebugInfo):
    """A named value with arguments, tags and provenance."""

    __slots__ = ("__weakref__", "_notes", "_site", "args")

    args: tuple[Node, ...]
    _notes: Notes | None

    def notes(self) -> Notes:
        """The notes of this node, made when first asked for."""
        if self._notes is None:
            _set_notes(self, Notes())
        assert self._notes is not None
        return self._notes

    def _get_name(self) -> str | None:
        return None if self._notes is None else self._notes.name

    def _set_name(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"a name is a string or None, not {name!r}")
        notes = self.notes()
        notes.name = name
        if name is not None and name not in notes.names:
            notes.names.append(name)

    @property
    def tags(self) -> frozenset[str]:
        """The tags given by everybody who built it."""
        return frozenset() if self._notes is None else self._notes.tags

    def add_tags(self, tags: str | list[str] | tuple[str, ...] | set[str] | frozenset[str]) -> None:
        """Unite these tags with those it has."""
        given = (tags,) if isinstance(tags, str) else tags
        if not isinstance(given, (list, tuple, set, frozenset)) or not all(
            isinstance(tag, str) for tag in given
        ):
            raise ArgumentError(f"tags are a string or a list of strings, not {tags!r}")
        notes = self.notes()
        notes.tags = notes.tags | frozenset(given)

    @property
    def sites(self) -> list[str]:
        """``file:line`` of each place that built it, the first one first (bounded)."""
        more = [] if self._notes is None else self._notes.sites
        return [describe(site) for site in (self._site, *more)]

    def note_site(self, site: Site) -> None:
        """Remember another place that built the same node."""
        first = self._site
        if first[0] is site[0] and first[1] == site[1]:
            return
        kept = self.notes().sites
        if len(kept) < SITES_KEPT and site not in kept:
            kept.append(site)


_set_notes = slot_setter(Node, "_notes")
