"""Types of the attributes of primitives, each with a predicate that a dump's values must fulfil.

A primitive's attributes are a named tuple of these types. The predicates test exact types, because
``1 == True``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from .dtypes import ALL_DTYPES


class Frozen:
    """A large read-only array that is equal only to itself."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def as_int(value: Any) -> Any:
    """Return a NumPy integer as a Python integer, and any other value unchanged."""
    return int(value) if isinstance(value, np.integer) else value


SCATTER_MODES = ("set", "add", "max", "min", "multiply")


def is_name(value: Any) -> bool:
    """Return True if ``value`` is the name of an axis."""
    return type(value) is str and value != ""


def is_text(value: Any) -> bool:
    """Return True if ``value`` is a string."""
    return type(value) is str


def is_names(value: Any) -> bool:
    """Return True if ``value`` is a tuple of distinct names."""
    return type(value) is tuple and all(map(is_name, value)) and len({*value}) == len(value)


def is_flag(value: Any) -> bool:
    """Return True if ``value`` is a bool."""
    return type(value) is bool


def is_count(value: Any) -> bool:
    """Return True if ``value`` is an integer of at least 0."""
    return type(value) is int and value >= 0


def is_step(value: Any) -> bool:
    """Return True if ``value`` is an integer of at least 1."""
    return type(value) is int and value >= 1


def is_parts(value: Any) -> bool:
    """Return True if ``value`` is a non-empty tuple of integers of at least 2."""
    return type(value) is tuple and value != () and all(type(n) is int and n > 1 for n in value)


def is_length(value: Any) -> bool:
    """Return True if ``value`` is a length: an integer or an expression."""
    return type(value) is int or isinstance(value, Length)


def is_dtype(value: Any) -> bool:
    """Return True if ``value`` is the name of a dtype."""
    return type(value) is str and value in ALL_DTYPES


def is_axis(value: Any) -> bool:
    """Return True if ``value`` is an ``Axis``."""
    return isinstance(value, Axis)


def is_axes(value: Any) -> bool:
    """Return True if ``value`` is an ``Axes``."""
    return isinstance(value, Axes)


def is_content(value: Any) -> bool:
    """Return True if ``value`` is the content of a constant: bytes or a frozen array."""
    return isinstance(value, (bytes, Frozen))


def is_layout(value: Any) -> bool:
    """Return True if ``value`` is the order of axes in memory, or None."""
    return value is None or is_names(value)


def is_mode(value: Any) -> bool:
    """Return True if ``value`` is a mode of scatter."""
    return type(value) is str and value in SCATTER_MODES


def is_widths(value: Any) -> bool:
    """Return True if ``value`` has for each axis None or two counts: elements before and after."""
    return type(value) is tuple and all(
        width is None or (type(width) is tuple and len(width) == 2 and all(map(is_count, width)))
        for width in value
    )


def is_batch(value: Any) -> bool:
    """Return True if ``value`` is None, or has the names and lengths of axes in pairs."""
    return (
        value is None
        or type(value) is tuple
        and all(
            type(pair) is tuple and len(pair) == 2 and is_name(pair[0]) and is_length(pair[1])
            for pair in value
        )
    )


def is_items(value: Any) -> bool:
    """Return True if ``value`` has an item of a slice for each axis.

    An item is None (the whole axis), ("range", start, stop, step), ("at", index) with a constant
    index, or ("dyn", number) for an index given by argument ``number``.
    """
    return type(value) is tuple and all(item is None or _is_item(item) for item in value)


def _is_item(item: Any) -> bool:
    if type(item) is not tuple or not item or type(item[0]) is not str:
        return False
    if item[0] == "range" and len(item) == 4:
        return is_length(item[1]) and is_length(item[2]) and is_count(item[3]) and item[3] > 0
    if len(item) != 2:
        return False
    return (item[0] == "at" and is_length(item[1])) or (item[0] == "dyn" and is_count(item[1]))


Name = Annotated[str, is_name]
Names = Annotated[tuple[str, ...], is_names]
Text = Annotated[str, is_text]
Flag = Annotated[bool, is_flag]
Count = Annotated[int, is_count]
Step = Annotated[int, is_step]
Parts = Annotated[tuple[int, ...], is_parts]
Size = Annotated[int | Length, is_length]
DTypeName = Annotated[str, is_dtype]
OneAxis = Annotated[Axis, is_axis]
SomeAxes = Annotated[Axes, is_axes]
Content = Annotated[bytes | Frozen, is_content]
Layout = Annotated[tuple[str, ...] | None, is_layout]
ScatterMode = Annotated[str, is_mode]
BatchSizes = Annotated[tuple[tuple[str, int | Length], ...] | None, is_batch]
Widths = Annotated[tuple[tuple[int, int] | None, ...], is_widths]
Items = Annotated[tuple[Any, ...], is_items]


class AlongAxis(NamedTuple):
    """The name of the axis along which a primitive works."""

    axis: Name


@cache
def predicates(attributes: type) -> tuple[Callable[[Any], bool], ...]:
    """Return the predicate of each attribute of a class of attributes, in order.

    An annotation has it as its first remark; a class without one stands for its instances.
    """
    hints = get_type_hints(attributes, include_extras=True).values()
    return tuple([_predicate(hint) for hint in hints])


def _predicate(hint: Any) -> Callable[[Any], bool]:
    if hasattr(hint, "__metadata__"):
        return hint.__metadata__[0]  # type: ignore[no-any-return]  # one of those above
    return lambda value: isinstance(value, hint)


def with_lengths(value: Any, of: Callable[[Length], int | Length]) -> Any:
    """Return ``value`` (an attribute, axes, a length) with ``of`` of each length expression."""
    if isinstance(value, Length):
        return of(value)
    if isinstance(value, Axis):
        return Axis(value.name, with_lengths(value.expression, of))
    if isinstance(value, Axes):
        return Axes(*(with_lengths(axis, of) for axis in value))
    if isinstance(value, tuple):
        return tuple([with_lengths(part, of) for part in value])
    return value
