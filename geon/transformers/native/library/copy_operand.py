"""The copy of an operand that a kernel then stores a part of, as C."""

from __future__ import annotations

from functools import cache

from ..names.c_files import FileFunction, file_function

GRAIN = 1 << 20  # bytes that one task copies: some 30 microseconds


@cache
def fill_function() -> FileFunction:
    """``void(threads, out, x, size)``: copies ``size`` bytes by all threads."""
    return file_function("fill", "geon_fill", {}, {"GRAIN": GRAIN})
