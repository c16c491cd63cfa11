"""Optional C extensions for fast calls; without them, calls take the general path.

They are built when geon is installed, if a C compiler and Python's headers are available.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from .environment import debugging


@functools.cache
def built(name: str) -> Any | None:
    """Return an extension module; None if it was not built, or for another Python or NumPy.

    With the word ``long-calls`` in ``GEON_DEBUG``, there is none either.
    """
    if debugging("long-calls"):
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError):  # RuntimeError: it was built for another NumPy
        return None
