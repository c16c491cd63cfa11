"""A pause of Python's garbage collection."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.RLock()  # a finaliser may come here, too
_pauses = 0  # blocks of all threads in which collection is disabled
_enables = False  # whether the last of them enables it again


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Disable garbage collection until no thread is in such a block, if it was enabled.

    For what allocates many objects that live on: a collection looks at all objects of the process
    and frees none of those. Also for what a finaliser must not interrupt.
    """
    global _pauses, _enables
    with _lock:
        if _pauses == 0:
            _enables = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _enables:
                gc.enable()
