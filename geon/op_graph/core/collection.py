"""A pause of Python's garbage collection."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Disable garbage collection meanwhile, if it is enabled.

    For what allocates many objects that live on: a collection looks at all objects of the process
    and frees none of those. Also for what a finaliser must not interrupt.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
