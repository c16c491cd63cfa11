"""The one place where geon reads the environment."""

from __future__ import annotations

import os

DEFAULT_TRANSFORMER = "GEON_TRANSFORMER"
DEBUG = "GEON_DEBUG"
# Read by native code: threads, the folder and size of the cache of objects, the compiler.
THREADS = "GEON_THREADS"
CACHE = "GEON_CACHE"
CACHE_BYTES = "GEON_CACHE_BYTES"
USER_CACHES = "XDG_CACHE_HOME"
COMPILER = "CC"
PROGRAMS = "PATH"


def setting(name: str) -> str:
    """The text of one of the variables above; empty where it is not set."""
    return os.environ.get(name, "")


def environment_of_child(**changes: str) -> dict[str, str]:
    """The variables that a program started by geon gets."""
    return {**os.environ, **changes}


def default_transformer() -> str | None:
    """The transformer that ``GEON_TRANSFORMER`` asks for; None where it asks for none."""
    return os.environ.get(DEFAULT_TRANSFORMER) or None


def debugging(what: str) -> bool:
    """Whether ``GEON_DEBUG`` (words separated by commas) has this word.

    ``verify`` checks every plan before it is used; with ``long-calls`` native calls do without the
    extension that enters compiled code; with ``launches`` each kernel of a GPU is waited for, so
    that an error names the one that failed.
    """
    return what in os.environ.get(DEBUG, "").split(",")
