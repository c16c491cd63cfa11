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
_making: dict[str, threading.Lock] = {}
_lock = threading.RLock()


def structure_key(text: str, *options: object) -> str:
    """The hash of a canonical text and the options that change what is made of it."""
    whole = "\n".join([text, *map(repr, options)])
    return hashlib.sha256(whole.encode()).hexdigest()


def program(key: str, make: Callable[[], Any]) -> Any:
    """The program compiled under ``key``, made when it is not there; the least used go first.

    Threads that ask for one that is being made wait for it.
    """
    found = _kept(key)
    if found is None:
        with _lock:
            making = _making.setdefault(key, threading.Lock())
        with making:
            found = _kept(key)
            if found is None:
                try:
                    found = make()
                    with _lock:
                        _programs[key] = found
                finally:
                    with _lock:
                        _making.pop(key, None)
    return found


def _kept(key: str) -> Any:
    global _programs
    with _lock:
        if _programs is None:
            import cachetools

            _programs = cachetools.LRUCache(PROGRAMS_KEPT)
        return _programs.get(key)


def cached_programs() -> int:
    """How many programs are kept."""
    return 0 if _programs is None else len(_programs)
