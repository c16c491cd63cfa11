"""Environment variables; the only module that reads the environment."""

from __future__ import annotations

import os

DEFAULT_TRANSFORMER = "GEON_TRANSFORMER"
DEBUG = "GEON_DEBUG"
# Used by native code: threads, folder and size of the disk cache, compiler.
THREADS = "GEON_THREADS"
CACHE = "GEON_CACHE"
CACHE_BYTES = "GEON_CACHE_BYTES"
USER_CACHES = "XDG_CACHE_HOME"
COMPILER = "CC"
PROGRAMS = "PATH"


def setting(name: str) -> str:
    """Return the value of one of the variables above; empty if it is not set."""
    return os.environ.get(name, "")


def environment_of_child(**changes: str) -> dict[str, str]:
    """Return the environment for a child process of geon."""
    return {**os.environ, **changes}


def default_transformer() -> str | None:
    """Return the transformer's name in ``GEON_TRANSFORMER``, or None."""
    return os.environ.get(DEFAULT_TRANSFORMER) or None


def debugging(what: str) -> bool:
    """Return True if ``GEON_DEBUG`` (words separated by commas) contains this word.

    ``verify`` checks every plan before it is used; with ``long-calls``, native calls do not use the
    extension for fast calls; with ``launches``, each GPU kernel is waited for, so that an error
    names the one that failed.
    """
    return what in os.environ.get(DEBUG, "").split(",")
