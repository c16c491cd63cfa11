"""The ``memory=`` option of a computation: parsing of byte counts, check for open lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from string import ascii_letters
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.nodes import made_at
from ...op_graph.op_graph import Op
from .open_lengths import open_names

UNITS = {
    "B": 1,
    **{f"{letter}B": 1000 ** (k + 1) for k, letter in enumerate("kMGT")},
    **{f"{letter}iB": 1024 ** (k + 1) for k, letter in enumerate("KMGT")},
}


def bytes_given(memory: Any) -> int:
    """Return the bytes given as a number, or as text such as "512MB" or "1.5 GiB".

    Raises ``ArgumentError`` for anything else.
    """
    if isinstance(memory, (int, np.integer)) and not isinstance(memory, bool) and memory >= 0:
        return int(memory)
    text = memory.strip() if isinstance(memory, str) and memory.isascii() else ""
    number = text.rstrip(ascii_letters)
    unit, (whole, point, part) = text[len(number) :], number.strip().partition(".")
    if unit in UNITS and whole.isdecimal() and (part.isdecimal() if point else True):
        return int(float(number) * UNITS[unit])
    raise ArgumentError(
        f"memory={memory!r} is no number of bytes; give an integer, or a text with one of the "
        f"units {', '.join(UNITS)}, such as '512MB'"
    )


def refuse_open(ops: Iterable[Op], lengths: Collection[str]) -> None:
    """Raise ``ArgumentError`` for an op with an unknown open length, on which its bytes depend."""
    known = {*lengths, *default_lengths()}
    for op in ops:
        for name in open_names([op]):
            if name not in known:
                raise ArgumentError(
                    f"memory= is a number of bytes, and {name} is open: {op} (made at "
                    f"{made_at(op)}) takes as many as data say; give lengths={{{name}: ...}} or "
                    f"specialize={{{name}: ...}}, the largest that calls have, or a default for "
                    f"the axis, such as {name}.length = 128"
                )
