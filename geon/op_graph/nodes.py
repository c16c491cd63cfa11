"""``Node``: a named value with arguments that knows the user's line it was made at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError
from .core.source_info import Site, describe, resolve
from .names import NameableValue, checked_name

SITES_KEPT = 8
NAMES_SHOWN = 4


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
    """What people said about an op: no part of its identity, and shared by all who built it.

    ``name`` is the last one given; ``names`` are all, the last one last; ``sites`` the lines that
    made it beside the first, the newest last; ``coordinates`` those of labelled data it is made of;
    ``called`` the function of several ops that made it last, such as ``mean``.
    """

    name: str | None = None
    names: list[str] = field(default_factory=list)
    tags: frozenset[str] = frozenset()
    sites: list[Site] = field(default_factory=list)
    coordinates: Any = None
    called: str | None = None

    def copy(self) -> Notes:
        """The notes as they are now."""
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

    _unique = False  # whether no other line can make the same node

    args: tuple[Node, ...]
    _notes: Notes | None

    @property
    def line_info(self) -> str:
        """``file:line`` for messages: the newest place that built it, and the first one.

        Equal ops are one, so the first place may be another one than the reader's.
        """
        sites = sites_of(self)
        own = [site for site in sites if not site[2]] or sites
        newest, first = describe(own[-1]), describe(own[0])
        if newest == first or not self.args:
            return newest
        return f"{newest}, first made at {first}"

    def notes(self) -> Notes:
        """The notes of this node, made when first asked for."""
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
        """``file:line`` of each place that built it, the first one first.

        It is bounded: the first place and the newest others are kept.
        """
        return list(dict.fromkeys(map(describe, sites_of(self))))

    def note_site(self, site: Site) -> None:
        """Remember another place that built the same node."""
        first, known = self._site, self._notes
        if first[0] is site[0] and first[1] == site[1] and (known is None or not known.sites):
            return
        notes = self.notes()
        kept = notes.sites
        if not kept or kept[-1] != site:
            notes.sites = [*(known for known in kept if known != site), site][-SITES_KEPT:]


_set_notes = slot_setter(Node, "_notes")


def shown_name(node: Node) -> str | None:
    """What a reader knows a node by: every name that lines gave an op, the newest first.

    A leaf has the last name it was given alone: it is one thing, which can be renamed.
    """
    notes = node._notes
    if notes is None or notes.name is None or node._unique:
        return node.name
    names = [name for name in reversed(notes.names) if name != notes.name]
    return ", ".join([notes.name, *names[: NAMES_SHOWN - 1]])


def called_name(node: Node, plain: str) -> str:
    """The name of a node in messages: its own, that of the function that made it, or ``plain``."""
    own = shown_name(node)
    if own:
        return own
    return plain if node._notes is None else node._notes.called or plain


def made_at(node: Node) -> str:
    """``file:line`` of each place that built a node, the newest first, for messages."""
    remarks: dict[tuple[str, int], Site] = {}
    for site in sites_of(node):
        remarks.setdefault(resolve(site), site)
    newest = dict.fromkeys(map(resolve, reversed(sites_of(node))))
    return ", ".join(describe(remarks[line]) for line in newest)


def sites_of(node: Node) -> list[Site]:
    """The places that built a node, the first one first, then the newest ones."""
    return [node._site, *([] if node._notes is None else node._notes.sites)]


def carry_lines(old: Node, new: Node) -> None:
    """Note the lines of ``old`` in ``new``, which is the same thing made of other arguments."""
    if new is not old:
        for site in sites_of(old):
            new.note_site(site)


def carry_notes(old: Node, new: Node) -> None:
    """Let ``new`` stand for ``old``: it has its names, which are older than its own, and tags.

    Lines are those of what was made in old's place alone, not of something else that old equals.
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
