"""Assignments that no computation runs: their writer is told when they become garbage.

An assignment is an op that changes nothing by itself, which is easily forgotten. Those of users are
watched by weak references until a computation, a variable or a dump takes them.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterable

from .op_graph import Leaf, Op
from .sites import Site, describe, resolve, user_site


class Watched(weakref.ref[Op]):
    """A weak reference to an assignment, with what to say if nothing took it."""

    __slots__ = ("key", "site", "target", "taken")

    key: int
    site: Site
    target: Leaf
    taken: bool


_watched: dict[int, Watched] = {}
_said: dict[
    str | tuple[str, type[Warning], int], int
] = {}  # what `warnings` remembers: one warning for a line in a loop


def watch(op: Op, target: Leaf) -> None:
    """Warn when ``op``, an assignment to ``target``, becomes garbage before ``take`` knew it."""
    if id(op) in _watched:
        return
    entry = Watched(op, _gone)
    entry.key, entry.site, entry.target, entry.taken = id(op), user_site(2), target, False
    _watched[entry.key] = entry


def take(ops: Iterable[Op]) -> None:
    """Note that something will run these ops."""
    for op in ops:
        entry = _watched.get(id(op))
        if entry is not None:
            entry.taken = True


def _gone(entry: Watched) -> None:
    if _watched.get(entry.key) is entry:
        del _watched[entry.key]
    if entry.taken or sys.is_finalizing():
        return
    filename, line = resolve(entry.site)
    warnings.warn_explicit(
        f"the assignment to {entry.target} (made at {entry.target.file_info}) at "
        f"{describe(entry.site)} is gone, and no computation ran it: geon.assign makes an op, "
        "which changes the variable when it is computed; give it to transformer.computation",
        RuntimeWarning,
        filename,
        line,
        registry=_said,
    )
