"""Functions that rows of several families share."""

from __future__ import annotations

from typing import Any

from ...positional import values
from ...positional.reshaping import unsqueeze
from ...positional.values import Value, known_list


def positions(axes: Any, rank: int, what: str = "axes") -> list[int]:
    """Return positions from 0 of a list, or of a known vector, of axes that may be negative."""
    listed = axes if isinstance(axes, (list, tuple)) else known_list(axes, what)
    return values.positions(listed, rank)


def channels(value: Value, rank: int) -> Value:
    """Return a vector over channels so that it aligns with position 1 of ``rank`` positions."""
    return unsqueeze(value, range(1, rank - 1)) if rank > 2 else value
