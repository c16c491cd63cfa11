"""Intern tables: one live op for each combination of primitive, attributes and arguments.

Ops of users are in ``table``. Ops that a computation builds from them are in tables of its own, so
that it adds no line, name or user to a user's op, and a user's new op does not change the
computation.

A key contains the ``id`` of each argument, not the argument: a dict compares keys of equal hash,
and ``==`` of two tensors builds an op. An id suffices, because a live op keeps its arguments alive.
An entry whose op has died is ignored, so reuse of its arguments' ids is harmless.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..op_graph import Op  # noqa: F401  # named in a string below


class InternedReference(weakref.ref["Op"]):
    """A weak reference to an op in a table that stores its key."""

    __slots__ = ("key",)

    key: tuple[Any, ...]


table: dict[tuple[Any, ...], InternedReference] = {}
# Reentrant: garbage collection can remove entries while this thread inserts one.
lock = threading.RLock()


class OwnTable:
    """The ops that one computation built.

    If it is ``open``, lookups fall back to the table of users' ops.
    """

    __slots__ = ("__weakref__", "entries", "open")
    lock = lock  # a class attribute, because module globals are gone at interpreter exit

    def __init__(self, open: bool = False) -> None:
        self.entries: dict[tuple[Any, ...], InternedReference] = {}
        self.open = open

    def look_up(self, key: tuple[Any, ...]) -> Op | None:
        """Return the live op under this key; None if there is none."""
        entry = self.entries.get(key)
        op = None if entry is None else entry()
        if op is None and self.open:
            entry = table.get(key)
            op = None if entry is None else entry()
        return op

    def forget(self, entry: InternedReference) -> None:
        """Remove the entry of an op that died, unless another op has replaced it."""
        with self.lock:
            if self.entries.get(entry.key) is entry:
                del self.entries[entry.key]


def forget(
    entry: InternedReference,
    entries: dict[tuple[Any, ...], InternedReference] = table,
    lock: threading.RLock = lock,
) -> None:
    """Remove the entry of an op that died, unless another op has replaced it.

    Ops die until the interpreter exits, when module globals are gone; the defaults still exist.
    """
    with lock:
        if entries.get(entry.key) is entry:
            del entries[entry.key]
