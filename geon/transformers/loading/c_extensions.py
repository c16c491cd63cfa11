"""Extensions in C by which calls go a shorter way; without them all calls go the long one.

They are built when geon is installed, where there are a C compiler and Python's headers.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from .environment import debugging


@functools.cache
def built(name: str) -> Any | None:
    """The extension of this name; None where it was not built, or does not fit Python or NumPy.

    With the word ``long-calls`` in ``GEON_DEBUG`` there is none either.
    """
    if debugging("long-calls"):
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError):  # the latter says that it was built for another NumPy
        return None
