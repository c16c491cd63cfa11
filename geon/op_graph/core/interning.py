"""Intern tables: one live op for each primitive, attributes and arguments.

Users' ops are in ``table``. What a computation makes of them is in tables of its own: so it adds no
line, name or user to an op of the user's, and no op that a user makes changes what it is.

A key names the arguments by ``id``, never by themselves: a dict compares keys whose hashes are
equal, and ``==`` of two tensors builds an op. An id is enough, because an op that is alive keeps
its arguments alive; an entry whose op has died counts for nothing, whoever has those ids now.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..op_graph import Op  # noqa: F401  # named in a string below


class Entry(weakref.ref["Op"]):
    """A weak reference in the table that knows its key."""

    __slots__ = ("key",)

    key: tuple[Any, ...]


table: dict[tuple[Any, ...], Entry] = {}
# Reentrant: collection can strike while this thread inserts.
lock = threading.RLock()


class OwnTable:
    """The ops that one computation made.

    Where it is ``open``, ops that users made are found in it too, as they are.
    """

    __slots__ = ("__weakref__", "entries", "open")
    lock = lock  # found when Python ends, and the module has no more names

    def __init__(self, open: bool = False) -> None:
        self.entries: dict[tuple[Any, ...], Entry] = {}
        self.open = open

    def found(self, key: tuple[Any, ...]) -> Op | None:
        """The live op under this key; None where there is none."""
        entry = self.entries.get(key)
        op = None if entry is None else entry()
        if op is None and self.open:
            entry = table.get(key)
            op = None if entry is None else entry()
        return op

    def forget(self, entry: Entry) -> None:
        """Remove the entry of an op that died, unless another took its place."""
        with self.lock:
            if self.entries.get(entry.key) is entry:
                del self.entries[entry.key]


def forget(
    entry: Entry, entries: dict[tuple[Any, ...], Entry] = table, lock: threading.RLock = lock
) -> None:
    """Remove the entry of an op that died, unless another took its place.

    Ops die until Python ends, when modules have no more names: the defaults are still there.
    """
    with lock:
        if entries.get(entry.key) is entry:
            del entries[entry.key]
