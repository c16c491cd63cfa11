"""Functions of buffers of random words, which loops fill ahead of what reads them."""

from __future__ import annotations

from functools import cache

from ...loops.values_ahead import MAX_BUFFERED_WORDS
from ..names.c_files import FileFunction, file_function


@cache
def words_function() -> FileFunction:
    """Return the C function that generates words for ``geon_words_at``."""
    return file_function(
        "random_words", "geon_random_words", {"RUN": MAX_BUFFERED_WORDS}, {}, calls=("geon_philox",)
    )
