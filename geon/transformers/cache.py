"""Compiled programs by structure: two computations of the same form share one.

The key is the canonical text of the pure graph, which has no names, no line numbers and no
addresses, so it is the same in every process.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

PROGRAMS_KEPT = 512

_programs: Any = None
_lock = threading.RLock()


def structure_key(text: str, *options: object) -> str:
    """The hash of a canonical text and the options that change what is made of it."""
    whole = "\n".join([text, *map(repr, options)])
    return hashlib.sha256(whole.encode()).hexdigest()


def program(key: str, make: Callable[[], Any]) -> Any:
    """The program compiled under ``key``, made when it is not there; the least used go first."""
    global _programs
    with _lock:
        if _programs is None:
            import cachetools

            _programs = cachetools.LRUCache(PROGRAMS_KEPT)
        found = _programs.get(key)
    if found is None:
        found = make()
        with _lock:
            found = _programs.setdefault(key, found)
    return found


def cached_programs() -> int:
    """How many programs are kept."""
    return 0 if _programs is None else len(_programs)
