"""The intern table: one live op for each primitive, attributes and arguments.

A key names the arguments by ``id``, never by themselves: a dict compares keys whose hashes are
equal, and ``==`` of two tensors builds an op. An id is enough, because an op that is alive keeps
its arguments alive; an entry whose op has died counts for nothing, whoever has those ids now.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .op_graph import Op  # noqa: F401  # named in a string below


class Entry(weakref.ref["Op"]):
    """A weak reference in the table that knows its key."""

    __slots__ = ("key",)

    key: tuple[Any, ...]


table: dict[tuple[Any, ...], Entry] = {}
# Reentrant: collection can strike while this thread inserts.
lock = threading.RLock()


def forget(entry: Entry) -> None:
    """Remove the entry of an op that died, unless another took its place."""
    with lock:
        if table.get(entry.key) is entry:
            del table[entry.key]
