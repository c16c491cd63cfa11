"""In-memory cache of compiled programs, shared by computations of equal structure.

The key is the canonical text of the pure graph, which has no names, no line numbers and no
addresses, so it is the same in every process.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

MAX_CACHED_PROGRAMS = 512

_programs: Any = None
_making: dict[str, threading.Lock] = {}
_lock = threading.RLock()


def structure_key(text: str, *options: object) -> str:
    """Return the hash of a canonical text and of the options that change its program."""
    whole = "\n".join([text, *map(repr, options)])
    return hashlib.sha256(whole.encode()).hexdigest()


def program(key: str, make: Callable[[], Any]) -> Any:
    """Return the program for ``key``, cached or compiled; evict the least recently used.

    Threads that request a program that is being compiled wait for it.
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

            _programs = cachetools.LRUCache(MAX_CACHED_PROGRAMS)
        return _programs.get(key)


def cached_programs() -> int:
    """Return the number of cached programs."""
    return 0 if _programs is None else len(_programs)
