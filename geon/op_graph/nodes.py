"""``Node``: a named value with arguments that stores the user's line where it was built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ..errors import ArgumentError
from ..lazy_dataclasses import dataclass
from .core.source_info import Site, describe, resolve
from .names import NameableValue, checked_name

MAX_SITES = 8  # maximum source lines of a node besides the first
MAX_SHOWN_NAMES = 4  # maximum names of a node in messages


def slot_setter(cls: type, slot: str) -> Callable[[Any, Any], None]:
    """Return the setter of a slot, for objects whose class refuses plain assignment."""
    setter: Callable[[Any, Any], None] = cls.__dict__[slot].__set__
    return setter


class DebugInfo:
    """The line in the user's program where something was built."""

    __slots__ = ()

    _site: Site

    @property
    def filename(self) -> str:
        """The file of the user's line that built it."""
        return resolve(self._site)[0]

    @property
    def lineno(self) -> int:
        """The number of that line."""
        return resolve(self._site)[1]

    @property
    def file_info(self) -> str:
        """``file:line``, with a remark for ops that a derivative or a rewrite built."""
        return describe(self._site)


@dataclass(slots=True)
class Notes:
    """Annotations of an op, which are not part of its identity and shared by all who built it.

    ``name`` is the last name given, ``names`` are all names, the last one last. ``tags`` are the
    tags. ``sites`` are the lines that built it, except for the first, the newest last.
    ``coordinates`` are those of the labelled data in it. ``called`` is the name of the composite
    function that built it as its last op, such as ``mean``.
    """

    name: str | None = None
    names: list[str] = field(default_factory=list)
    tags: frozenset[str] = frozenset()
    sites: list[Site] = field(default_factory=list)
    coordinates: Any = None
    called: str | None = None

    def copy(self) -> Notes:
        """Return a copy of the notes."""
        return Notes(
            self.name,
            list(self.names),
            self.tags,
            list(self.sites),
            self.coordinates,
            self.called,
        )


class Node(NameableValue, DebugInfo):
    """A named value with arguments, tags and provenance."""

    __slots__ = ("__weakref__", "_notes", "_site", "args")

    _unique = False  # True if no other line can build the same node (leaves)

    args: tuple[Node, ...]
    _notes: Notes | None

    @property
    def line_info(self) -> str:
        """``file:line`` for messages: the newest line that built it, and the first one.

        Equal ops are one object, so the first line may not be the one that the reader knows.
        """
        sites = sites_of(self)
        own = [site for site in sites if not site[2]] or sites
        newest, first = describe(own[-1]), describe(own[0])
        if newest == first or not self.args:
            return newest
        return f"{newest}, first made at {first}"

    def notes(self) -> Notes:
        """Return the notes of this node; create them at the first call."""
        if self._notes is None:
            _set_notes(self, Notes())
        assert self._notes is not None
        return self._notes

    def _get_name(self) -> str | None:
        return None if self._notes is None else self._notes.name

    def _set_name(self, name: str | None) -> None:
        if name is not None and not (type(name) is str and name.isascii()):
            name = checked_name(name)
        notes = self.notes()
        notes.name = name
        if name is not None and notes.names[-1:] != [name]:
            notes.names = [*(known for known in notes.names if known != name), name]

    @property
    def tags(self) -> frozenset[str]:
        """The tags given by all lines that built it."""
        return frozenset() if self._notes is None else self._notes.tags

    def add_tags(self, tags: str | list[str] | tuple[str, ...] | set[str] | frozenset[str]) -> None:
        """Add these tags."""
        given = (tags,) if isinstance(tags, str) else tags
        if not isinstance(given, (list, tuple, set, frozenset)) or not all(
            isinstance(tag, str) for tag in given
        ):
            raise ArgumentError(f"tags are a string or a list of strings, not {tags!r}")
        notes = self.notes()
        notes.tags = notes.tags | frozenset(given)

    @property
    def sites(self) -> list[str]:
        """``file:line`` of each line that built it, the first one first.

        The list is bounded: it has the first line and the newest others.
        """
        return list(dict.fromkeys(map(describe, sites_of(self))))

    def note_site(self, site: Site) -> None:
        """Store another line that built the same node."""
        first, known = self._site, self._notes
        if first[0] is site[0] and first[1] == site[1] and (known is None or not known.sites):
            return
        notes = self.notes()
        kept = notes.sites
        if not kept or kept[-1] != site:
            notes.sites = [*(known for known in kept if known != site), site][-MAX_SITES:]


_set_notes = slot_setter(Node, "_notes")


def shown_name(node: Node) -> str | None:
    """Return the name of a node for messages: every name that lines gave it, the newest first.

    A leaf has only its last name, because it is one object that can be renamed.
    """
    notes = node._notes
    if notes is None or notes.name is None or node._unique:
        return node.name
    names = [name for name in reversed(notes.names) if name != notes.name]
    return ", ".join([notes.name, *names[: MAX_SHOWN_NAMES - 1]])


def called_name(node: Node, plain: str) -> str:
    """Return the name of a node in messages: its own, that of its composite, or ``plain``."""
    own = shown_name(node)
    if own:
        return own
    return plain if node._notes is None else node._notes.called or plain


def made_at(node: Node) -> str:
    """Return ``file:line`` of each line that built a node, the newest first, for messages."""
    remarks: dict[tuple[str, int], Site] = {}
    for site in sites_of(node):
        remarks.setdefault(resolve(site), site)
    newest = dict.fromkeys(map(resolve, reversed(sites_of(node))))
    return ", ".join(describe(remarks[line]) for line in newest)


def sites_of(node: Node) -> list[Site]:
    """Return the sites that built a node, the first one first, then the newest ones."""
    return [node._site, *([] if node._notes is None else node._notes.sites)]


def carry_lines(old: Node, new: Node) -> None:
    """Add the lines of ``old`` to ``new``, which is the same op on other arguments."""
    if new is not old:
        for site in sites_of(old):
            new.note_site(site)


def carry_notes(old: Node, new: Node) -> None:
    """Give ``new``, which replaces ``old``, its names, as older ones, and its tags.

    Lines are carried only if ``new`` was built for ``old``, not if it is an equal op built
    elsewhere.
    """
    if new is old or not new.args:
        return
    notes = old._notes
    if notes is None:
        return
    if notes.names:
        kept = new.notes()
        kept.names = [*(name for name in notes.names if name not in kept.names), *kept.names]
        kept.name = notes.name if kept.name is None else kept.name
    if notes.tags:
        new.add_tags(notes.tags)
    if notes.called and new.notes().called is None:
        new.notes().called = notes.called
    if new._site == old._site:
        carry_lines(old, new)
