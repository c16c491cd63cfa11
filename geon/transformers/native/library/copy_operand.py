"""C function that copies an operand before a kernel updates a part of it."""

from __future__ import annotations

from functools import cache

from ..names.c_files import FileFunction, file_function

BYTES_PER_TASK = 1 << 20  # bytes that one task copies: about 30 microseconds


@cache
def fill_function() -> FileFunction:
    """Return ``void(threads, out, x, size)``, a parallel copy of ``size`` bytes."""
    return file_function("move/copy", "geon_fill", {}, {"GRAIN": BYTES_PER_TASK})
