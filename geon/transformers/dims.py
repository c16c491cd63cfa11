"""Lengths as calls see them: integers, or ``Dim`` for what depends on open names; and size limits.

This file imports the standard library and geon's errors alone: its text is part of the modules that
``Transformer.write`` makes.
"""

from __future__ import annotations

import os

from ..errors import SizeError

MAX_BYTES = 2**63 - 1


class Dim:
    """A length that depends on open names: ``of`` computes it, ``text`` shows it."""

    def __init__(self, text, names, of):
        self.text, self.names, self.of = text, tuple(names), of

    def __repr__(self):
        return self.text


def known(dim, lengths):
    """Whether ``lengths`` has every open name of ``dim``."""
    return isinstance(dim, int) or all(name in lengths for name in dim.names)


def resolve(dim, lengths):
    """The integer that ``dim`` is under ``lengths``."""
    return dim if isinstance(dim, int) else dim.of(lengths)


def open_sizes(dims, shape):
    """(open name, size) for each dimension of ``shape`` whose length is one open name."""
    for dim, size in zip(dims, shape, strict=True):
        if not isinstance(dim, int) and dim.text in dim.names:
            yield dim.text, size


def check_size(size, what):
    """Raise ``SizeError`` for a size beyond 63 bits or beyond this machine's memory."""
    if size > MAX_BYTES:
        raise SizeError(
            f"{what} needs {size:,} bytes, more than a 64-bit size can say; nothing was allocated. "
            "Use smaller lengths"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise SizeError(
            f"{what} needs {size:,} bytes and this machine has {memory:,}; nothing was allocated. "
            "Use smaller lengths or a smaller batch"
        )
