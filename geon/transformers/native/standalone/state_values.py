"""The values of a written function's state: a C initialiser, or the bytes of a file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from ...printing.scalars.c_expressions import literal
from .interface import STATE_ALIGNMENT, StateMember

MAX_ARRAY_BYTES = 1 << 16  # bytes of a state up to which it is an array of C by default
LINE = 96  # characters


def state_bytes(state: Sequence[StateMember]) -> int:
    """Return the size of the state's structure."""
    return sum(_padded(each.count * each.value.itemsize) for each in state)


def _padded(size: int) -> int:
    return -(-size // STATE_ALIGNMENT) * STATE_ALIGNMENT


def binary(state: Sequence[StateMember]) -> bytes:
    """Return the bytes of the state's structure."""
    found = []
    for each in state:
        raw = np.ascontiguousarray(each.value).tobytes()
        found.append(raw.ljust(_padded(each.count * each.value.itemsize), b"\0"))
    return b"".join(found)


def initialiser(state: Sequence[StateMember], name: str) -> str:
    """Return the definition of the state with its values, which C reads exactly."""
    lines = [f"const struct {name}_state {name}_initial_state = {{\n"]
    for each in state:
        values = [literal(value, each.dtype) for value in each.value.reshape(-1)] or ["0"]
        text = textwrap.fill(", ".join(values), LINE, break_long_words=False)
        lines.append(f"    .{each.name} = {{\n{textwrap.indent(text, ' ' * 8)}}},\n")
    return "".join([*lines, "};\n"])
