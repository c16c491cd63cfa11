"""Functions that rows of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...positional import folding
from ...positional.elementwise import elementwise
from ...positional.reshaping import unsqueeze
from ...positional.values import HostArray, Value, known_list, position


def unary(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of an elementwise operator of one tensor without attributes."""

    def build(x: Value, /, *, consumed_inputs: Sequence[int] = ()) -> Value:
        del consumed_inputs  # of operator sets before 6: a hint for memory
        return elementwise(f, x)

    return build


def cast(x: Value, dtype: Any) -> Value:
    """Return ``x`` in a dtype, unchanged if it has it."""
    if x.dtype == dtype:
        return x
    folded = folding.cast(x, dtype) if isinstance(x, HostArray) else None
    if folded is not None:
        return folded
    return elementwise(lambda t: geon.cast(t, dtype), x)


def positions(axes: Any, rank: int, what: str = "axes") -> list[int]:
    """Return positions from 0 of a list, or of a known vector, of axes that may be negative."""
    listed = axes if isinstance(axes, (list, tuple)) else known_list(axes, what)
    return [position(int(axis), rank) for axis in listed]


def channels(value: Value, rank: int) -> Value:
    """Return a vector over channels so that it aligns with position 1 of ``rank`` positions."""
    return unsqueeze(value, range(1, rank - 1)) if rank > 2 else value
