"""The one place where geon reads the environment."""

from __future__ import annotations

import os

DEFAULT_TRANSFORMER = "GEON_TRANSFORMER"
DEBUG = "GEON_DEBUG"


def default_transformer() -> str:
    """The transformer that ``make_transformer()`` makes: ``GEON_TRANSFORMER``, else NumPy's."""
    return os.environ.get(DEFAULT_TRANSFORMER, "numpy")


def debugging(what: str) -> bool:
    """Whether ``GEON_DEBUG`` (words separated by commas) has this word.

    ``verify`` checks every plan before it is used.
    """
    return what in os.environ.get(DEBUG, "").split(",")
