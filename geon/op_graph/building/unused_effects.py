"""Warnings about effects that no computation runs.

An assignment is an op that changes nothing until it is computed, so it is easily forgotten. The
same holds for effects that an object of a frontend collects. Both are watched by weak references.
If one is garbage-collected, or left when the program ends, before a computation, a variable or a
dump used it, a warning names its line.
"""

from __future__ import annotations

import atexit
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ..core.source_info import Site, describe, resolve, user_site
from ..op_graph import Leaf, Op


class Watched(weakref.ref[Any]):
    """A weak reference to an op or an object, with the warning for it.

    ``message`` returns the warning for a line of the user's program, or "" for none. ``key`` is the
    id of the object, ``site`` the line where it was made. ``taken`` is true once it is used.
    """

    __slots__ = ("key", "message", "site", "taken")

    key: int
    message: Callable[[str], str]
    site: Site
    taken: bool


_watched: dict[int, Watched] = {}
_said: dict[
    str | tuple[str, type[Warning], int], int
] = {}  # registry of `warnings`: a line in a loop warns once


def watch(op: Op, target: Leaf) -> None:
    """Warn if ``op``, an assignment to ``target``, is garbage-collected before ``take``."""

    def message(place: str) -> str:
        return (
            f"the assignment to {target} (made at {target.line_info}) at {place} is gone, and no "
            "computation ran it: geon.assign makes an op, which changes the variable when it is "
            "computed; give it to transformer.computation"
        )

    _watch(op, message, user_site(2))


def watch_owner(owner: object, message: Callable[[str], str]) -> None:
    """Warn if ``owner`` is garbage-collected, with the text of ``message`` for its user's line.

    ``message`` must not refer to ``owner``: the reference would keep it alive.
    """
    _watch(owner, message, user_site(2))


def take(ops: Iterable[Op]) -> None:
    """Mark these ops as used."""
    for op in ops:
        entry = _watched.get(id(op))
        if entry is not None:
            entry.taken = True


def _watch(watched: object, message: Callable[[str], str], site: Site) -> None:
    if id(watched) in _watched:
        return
    entry = Watched(watched, _gone)
    entry.key, entry.site, entry.message, entry.taken = id(watched), site, message, False
    _watched[entry.key] = entry


def _gone(entry: Watched) -> None:
    if _watched.get(entry.key) is entry:
        del _watched[entry.key]
    if not sys.is_finalizing():
        _warn(entry)


@atexit.register
def _ended() -> None:
    """Warn about unused effects at exit, before modules are torn down."""
    for entry in list(_watched.values()):
        _warn(entry)
    _watched.clear()


def _warn(entry: Watched) -> None:
    text = "" if entry.taken else entry.message(describe(entry.site))
    if text:
        filename, line = resolve(entry.site)
        warnings.warn_explicit(text, RuntimeWarning, filename, line, registry=_said)
