"""Flush subnormal numbers to zero in the calling thread, on processors that support it."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator

from ..machine.threads import load_pool


def is_possible() -> bool:
    """Return True if the processor has the control word that ``geon_run`` sets."""
    return platform.machine() in ("x86_64", "AMD64")


def missing() -> str:
    """Return the error message for a processor that does not support it."""
    return (
        f"flush_subnormals=True sets a control word of x86-64, and this processor is "
        f"{platform.machine() or 'unknown'}; leave it out"
    )


@contextlib.contextmanager
def flush_subnormals() -> Iterator[None]:
    """Flush subnormal numbers in this thread, and so in kernels that it runs, in the block."""
    library = load_pool().library
    before = library.geon_flush_subnormals()
    try:
        yield
    finally:
        library.geon_set_arithmetic(before)
