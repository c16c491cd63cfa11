"""Parser of the index in ``x[...]`` to a normal form."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from ...errors import IndexRangeError
from ..axes.axes import Axis
from ..axes.lengths import Length, floor_divide
from ..core.source_info import describe, user_site
from ..nodes import shown_name
from ..op_graph import NO_AXES, Guard, Op, Tensor
from ..values.dtypes import kind
from .resolve_axes import by_own_axis

# The index along one axis: None (whole), ("range", start, stop, step), ("at", index), or
# ("dyn", k): the run-time value of argument k of the op.
Item = Any


def count(start: int | Length, stop: int | Length, step: int) -> int | Length:
    """Return the number of elements of a range."""
    return stop - start if step == 1 else floor_divide(stop - start + (step - 1), step)


def parse(
    x: Tensor, at: Any, first: int
) -> tuple[tuple[Item, ...], list[str], tuple[Op, ...], tuple[Guard, ...]]:
    """Parse an index; return items, names of axes to flip, run-time indices, and guards."""
    items: list[Item] = []
    flipped: list[str] = []
    positions: list[Op] = []
    guards: list[Guard] = []
    for axis, part in zip(x.axes, _parts(x, at), strict=True):
        if isinstance(part, slice):
            item, backwards = _range(x, axis, part, guards)
            if backwards:
                flipped.append(axis.name)
        elif isinstance(part, Tensor):
            _check_position(x, axis, part)
            item = ("dyn", first + len(positions))
            positions.append(part)
        else:
            item = ("at", _position(x, axis, part, guards))
        items.append(item)
    return tuple(items), flipped, tuple(positions), tuple(guards)


def _parts(x: Tensor, at: Any) -> list[Any]:
    if isinstance(at, dict):
        parts: list[Any] = [slice(None)] * len(x.axes)
        for name, part in by_own_axis(x, at, "indexing").items():
            parts[x.axes.index(name)] = part
        return parts
    given = list(at) if isinstance(at, tuple) else [at]
    dots = [k for k, part in enumerate(given) if part is Ellipsis]
    missing = len(x.axes) - (len(given) - len(dots))
    if len(dots) > 1 or missing < 0:
        raise IndexRangeError(
            f"{len(given)} positions for {x} (made at {x.line_info}), which has {len(x.axes)} "
            "axes: give at most one for each, and one ... at most"
        )
    where = dots[0] if dots else len(given)
    return [*given[:where], *[slice(None)] * missing, *given[where + len(dots) :]]


def _check_position(x: Tensor, axis: Axis, part: Tensor) -> None:
    if part.axes is not NO_AXES or kind(part.dtype) != "i":
        names = shown_name(x) or "x", shown_name(part) or "index", axis.name
        raise IndexRangeError(
            f"a position along {axis} of {x} must be an integer or a scalar integer tensor, not "
            f"{part} {part.dtype.name} (made at {part.line_info}); "
            f"geon.gather({', '.join(names)}) takes many at once, and geon.where masks"
        )


def _position(x: Tensor, axis: Axis, part: Any, guards: list[Guard]) -> int | Length:
    start = part if isinstance(part, Length) else _integer(part)
    if start is None:
        raise IndexRangeError(
            f"{reprlib.repr(part)} is no position along {axis} of {x} (made at {x.line_info}): "
            f"integers, slices, ... and scalar integer tensors are; {_cure(axis, part)}"
        )
    length = axis.expression
    if isinstance(start, int) and start < 0:
        start = length + start

    def what() -> str:
        cure = f"give one from {-length} to {length - 1}" if length != 0 else "it has no elements"
        return (
            f"position {part} (at {describe(user_site())}) is outside axis {axis} of {x} (made at "
            f"{x.line_info}); {cure}"
        )

    _require(0, start, what, guards)
    _require(start + 1, length, what, guards)
    return start


def _cure(axis: Axis, part: Any) -> str:
    """Return the advice for a value that is no index."""
    if part is None:
        return "geon.expand(x, axis) gives it one more axis"
    if isinstance(part, (str, Axis)):
        name = part if isinstance(part, str) else part.name
        return f"x[{{{name!r}: position}}] takes an axis by name"
    return f'geon.gather(x, positions, "{axis.name}") takes many at once, a tensor of them'


def _integer(value: Any) -> int | None:
    """Return ``value`` as an integer; None if it is no integer (bools are none)."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def _range(x: Tensor, axis: Axis, part: slice, guards: list[Guard]) -> tuple[Item, bool]:
    length = axis.expression
    step = 1 if part.step is None else _integer(part.step)
    if not step:
        raise IndexRangeError(
            f"a slice of {x} (made at {x.line_info}) along {axis} has the step {part.step!r}; "
            "give an integer other than 0"
        )

    def what() -> str:
        return (
            f"slice {_shown(part)} (at {describe(user_site())}) does not lie inside axis {axis} of "
            f"{x} (made at {x.line_info}); geon never clamps a slice: give bounds that fit"
        )

    if step > 0:
        start = _bound(part.start, 0, length)
        stop = _bound(part.stop, length, length)
        _require(start, stop, what, guards)
    else:
        # x[a:b:-s] has the elements a, a - s, ... above b: a forward range, then flipped.
        last = _bound(part.start, length - 1, length)
        below = part.stop if part.stop is None else _bound(part.stop, -1, length)
        below = -1 if below is None else below
        _require(below, last, what, guards)
        elements = last - below if step == -1 else floor_divide(last - below + (-step - 1), -step)
        start, stop = last + (elements - 1) * step, last + 1
    _require(0, start, what, guards)
    _require(stop, length, what, guards)
    if start == 0 and stop == length and abs(step) == 1:
        return None, step < 0
    return ("range", start, stop, abs(step)), step < 0


def _shown(part: slice) -> str:
    ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
    return ":".join(ends + ([] if part.step is None else [str(part.step)]))


def _bound(value: Any, default: int | Length, length: int | Length) -> int | Length:
    if value is None:
        return default
    if isinstance(value, Length):
        return value
    number = _integer(value)
    if number is None:
        raise IndexRangeError(f"{value!r} is no bound of a slice: integers and lengths are")
    return length + number if number < 0 else number


def _require(
    low: int | Length, high: int | Length, what: Callable[[], str], guards: list[Guard]
) -> None:
    """Check low <= high: raise if the difference is known and negative; add a guard if unknown."""
    difference = high - low
    if isinstance(difference, int):
        if difference < 0:
            raise IndexRangeError(what())
    elif not _never_negative(difference):
        guards.append(Guard("<=", low, high, what()))


def _never_negative(length: Length) -> bool:
    # Open lengths are never negative, so a sum without a minus sign is not either.
    return all(c > 0 and all(isinstance(a, str) for a, _ in m) for m, c in length.terms)
