"""Conversions, orders of dimensions, and functions of the user."""

from __future__ import annotations

from typing import Any

from ....errors import ArgumentError
from ...positional.networks.common import positions
from ...positional.programs import cast
from ...positional.reshaping import transpose as reordered
from ...positional.values import Value


def transpose(x: Value, *, axes: Any = (0, 1)) -> Value:
    """Return ``x`` with two dimensions exchanged."""
    first, second = positions(x, axes)
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    return reordered(x, order)


def format_transform(x: Value, *, to: str = "NCHW", format: str | None = None) -> Value:
    """Return ``x`` with its dimensions in the order of another layout."""
    given = format or "NHWC"
    wanted = {"NHWC", "NCHW", "CHWN"}
    if to not in wanted or len(x.shape) not in (3, 4):
        raise ArgumentError(
            f"{x} from {given} to {to!r}: give 3 or 4 dimensions, and one of {sorted(wanted)}"
        )
    letters = [letter for letter in given if len(x.shape) == 4 or letter != "N"]
    return reordered(x, [letters.index(letter) for letter in to if letter in letters])


def converted(x: Value, *, dtype: Any = None) -> Value:
    """Return ``x`` in another dtype, that of the output by default."""
    if dtype is None:
        raise ArgumentError("the wanted dtype is unknown; give dtype=, or an output")
    return cast(x, dtype)


def custom(*xs: Value, function: Any = None, outputs: int = 1) -> Any:
    """Return what a function of the user returns for the inputs: a value, or ``outputs`` values."""
    if not callable(function):
        raise ArgumentError(f"function={function!r} cannot be called; give a function of values")
    return function(*xs)
