"""Taking and replacing parts: ``x[...]`` and ``update``, by position or by axis name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from ..errors import AxisError, DTypeError, IndexRangeError
from .attributes import is_items
from .axes import Axes, Axis, axes_may_equal
from .build import own_axis
from .constants import as_tensor
from .dtypes import is_number, kind
from .elementwise import cast
from .lengths import Length, floor_divide
from .movement import FLIP, broadcast, flip
from .op_graph import NO_AXES, Guard, Op, Tensor, annotate, make
from .registry import Inferred, Primitive, need
from .sites import describe, user_site
from .weak import put_into

Array = np.ndarray[Any, Any]

# How an axis is taken: None (whole), ("range", start, stop, step), ("at", position), or
# ("dyn", k): at the position that argument k of the op has at run time.
Item = Any


def index_of(op: Op, positions: tuple[Any, ...]) -> tuple[Any, ...]:
    """The NumPy index of a bound slice or update op; ``positions`` are the run-time ones."""
    first = 1 if op.primitive.name == "slice" else 2
    index: list[Any] = []
    for axis, item in zip(op.args[0].axes, op.attrs[0], strict=True):
        if item is None:
            index.append(slice(None))
        elif item[0] == "range":
            index.append(slice(item[1], item[2], item[3]))
        elif item[0] == "at":
            index.append(item[1])
        else:
            at, length = int(positions[item[1] - first]), axis.expression
            if not -length <= at < length:  # type: ignore[operator]  # bound lengths are integers
                raise IndexRangeError(
                    f"position {at} is outside axis {axis} of {op.args[0]} in the op made at "
                    f"{op.file_info}"
                )
            index.append(at)
    return tuple(index)


def _slice_reference(op: Op, x: Array, *positions: Array) -> Array:
    return np.asarray(x[index_of(op, positions)])


def _update_reference(op: Op, x: Array, value: Array, *positions: Array) -> Array:
    out = x.copy()
    out[index_of(op, positions)] = value
    return out


def _slice_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    if i > 0:
        return None
    x = op.args[0]
    zeros = broadcast(as_tensor(0), x.axes)
    return _update(cast(zeros, g.dtype), g, op.attrs[0], op.args[1:], op.guards, shift=1)


def _update_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    value = op.args[1]
    if i == 0:
        zeros = cast(broadcast(as_tensor(0), value.axes), g.dtype)
        return _update(g, zeros, op.attrs[0], op.args[2:], op.guards)
    if i == 1:
        return _slice(g, op.attrs[0], op.args[2:], op.guards, shift=-1)
    return None


@lru_cache(maxsize=4096)
def part_axes(axes: Axes, items: tuple[Item, ...]) -> Axes:
    """The axes of the part of a tensor over ``axes`` that ``items`` take."""
    need(len(items) == len(axes), "{} positions for {}", len(items), axes)
    kept: list[Axis] = []
    for axis, item in zip(axes, items, strict=True):
        if item is None:
            kept.append(axis)
        elif item[0] == "range":
            start, stop, step = item[1:]
            _inside(start, stop, axis)
            kept.append(axis.with_length(_count(start, stop, step)))
        elif item[0] == "at":
            _inside(item[1], item[1] + 1, axis)
    return Axes(kept)


def _inside(start: int | Length, stop: int | Length, axis: Axis) -> None:
    for difference in (start, axis.expression - stop):
        inside = isinstance(difference, Length) or difference >= 0
        need(inside, "{} to {}, which is not inside axis {}", start, stop, axis)


def _count(start: int | Length, stop: int | Length, step: int) -> int | Length:
    return stop - start if step == 1 else floor_divide(stop - start + (step - 1), step)


def _check_positions(items: tuple[Item, ...], args: tuple[Any, ...], first: int) -> None:
    asked = [item[1] for item in items if item is not None and item[0] == "dyn"]
    need(asked == [*range(first, len(args))], "positions {} of {} arguments", asked, len(args))
    for position in args[first:]:
        integer = position.axes is NO_AXES and kind(position.dtype) == "i"
        need(integer, "a position {} that is no integer", position)


def _slice_infer(args: tuple[Any, ...], attrs: tuple[Any, ...]) -> Inferred:
    axes = part_axes(args[0].axes, attrs[0])
    _check_positions(attrs[0], args, 1)
    return axes, args[0].dtype, ()


def _update_infer(args: tuple[Any, ...], attrs: tuple[Any, ...]) -> Inferred:
    need(len(args) >= 2, "update without a value")
    x, value = args[:2]
    part = part_axes(x.axes, attrs[0])
    _check_positions(attrs[0], args, 2)
    fits = value.axes is part or (
        value.axes.names == part.names and axes_may_equal(part, value.axes)
    )
    need(fits, "update of {} with {}", part, value.axes)
    need(value.dtype is x.dtype, "update of {} with {}", x.dtype, value.dtype)
    return x.axes, x.dtype, ()


SLICE = Primitive(
    "slice",
    "movement",
    "A part of x along each axis: a range with a step, or one position.",
    reference=_slice_reference,
    transpose=_slice_transpose,
    attributes=("items",),
    fits=(is_items,),
    infer=_slice_infer,
    carriers=(0,),
)
UPDATE = Primitive(
    "update",
    "movement",
    "x with a part replaced by another value.",
    reference=_update_reference,
    transpose=_update_transpose,
    attributes=("items",),
    fits=(is_items,),
    infer=_update_infer,
    carriers=(0, 1),
)


def _shifted(items: tuple[Item, ...], shift: int) -> tuple[Item, ...]:
    return tuple(
        ("dyn", item[1] + shift) if item is not None and item[0] == "dyn" else item
        for item in items
    )


def _slice(
    x: Tensor,
    items: tuple[Item, ...],
    positions: tuple[Op, ...],
    guards: tuple[Guard, ...],
    shift: int = 0,
) -> Tensor:
    made: Tensor = make(SLICE, (x, *positions), (_shifted(items, shift),), guards=guards)
    return made


def _update(
    x: Tensor,
    value: Tensor,
    items: tuple[Item, ...],
    positions: tuple[Op, ...],
    guards: tuple[Guard, ...],
    shift: int = 0,
) -> Tensor:
    made: Tensor = make(UPDATE, (x, value, *positions), (_shifted(items, shift),), guards=guards)
    return made


def take(x: Any, at: Any) -> Tensor:
    """``x[at]``: integers, slices with steps, ``...``, ``{axis: ...}`` and scalar integer tensors.

    Positions count from the end when negative. A range keeps its axis under the same name with the
    new length; a position drops it. A range must lie inside its axis: outside it raises
    ``IndexRangeError``, at once where the length is known, else before the call (nothing is
    clamped).
    """
    items, flipped, positions, guards = parse(x, at, first=1)
    if all(item is None for item in items):
        made = x
    else:
        made = _slice(x, items, positions, guards)
    return flip(made, [made.axes[name] for name in flipped]) if flipped else made


def forwards(part: Tensor) -> tuple[Tensor, list[Axis]]:
    """Slices of flips as slices alone, and the axes along which ``part`` has them reversed."""
    looks: list[Op] = []
    while part.primitive in (SLICE, FLIP):
        looks.append(part)
        part = part.args[0]  # type: ignore[assignment]  # what is sliced is a tensor
    flipped: set[str] = set()
    for look in reversed(looks):
        if look.primitive is FLIP:
            flipped ^= set(look.attrs[0])
            continue
        items, positions = list(look.attrs[0]), list(look.args[1:])
        for at, axis in enumerate(look.args[0].axes):
            item = items[at]
            if axis.name not in flipped or item is None:
                continue
            if item[0] == "dyn":
                positions[item[1] - 1] = -1 - cast(positions[item[1] - 1], "int64")
            else:
                items[at] = _mirrored(item, axis.expression)
        part = _slice(part, tuple(items), tuple(positions), look.guards)
        flipped &= set(look.axes.names)
    return part, [axis for axis in part.axes if axis.name in flipped]


def _mirrored(item: Item, length: int | Length) -> Item:
    """The same elements counted from the other end, in ascending order again."""
    if item[0] == "at":
        return ("at", length - 1 - item[1])
    _, start, stop, step = item
    count = _count(start, stop, step)
    return ("range", length - 1 - (start + (count - 1) * step), length - start, step)


def update(
    x: Any, value: Any, at: Any, *, name: str | None = None, tags: Any = (), follows: Any = ()
) -> Tensor:
    """``x`` with ``x[at]`` replaced by ``value``, which is broadcast over that part's axes.

    ``at`` is what indexing takes. Has the axes of ``x``.
    """
    x = as_tensor(x)
    items, flipped, positions, guards = parse(x, at, first=2)
    x, value = put_into("update", x, value if is_number(value) else as_tensor(value, near=x))
    if value.dtype is not x.dtype:
        raise DTypeError(
            f"update: {value} (made at {value.file_info}) is {value.dtype.name} and {x} (made at "
            f"{x.file_info}) is {x.dtype.name}; geon.cast the value"
        )
    value = broadcast(value, part_axes(x.axes, items))
    if flipped:
        value = flip(value, [value.axes[name] for name in flipped])
    made = _update(x, value, items, positions, guards)
    return annotate(made, name, tags, follows)


def parse(
    x: Tensor, at: Any, first: int
) -> tuple[tuple[Item, ...], list[str], tuple[Op, ...], tuple[Guard, ...]]:
    """An index in normal form: items, names of axes to flip, run-time positions, guards."""
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
        for axis, part in at.items():
            if axis not in x.axes:
                raise AxisError(
                    f"{x} (made at {x.file_info}) has no axis {axis!r} to index; it has "
                    f"{', '.join(x.axes.names) or 'none'}"
                )
            if isinstance(axis, Axis):
                own_axis(x, axis, "indexing")
            parts[x.axes.index(axis)] = part
        return parts
    given = list(at) if isinstance(at, tuple) else [at]
    dots = [k for k, part in enumerate(given) if part is Ellipsis]
    missing = len(x.axes) - (len(given) - len(dots))
    if len(dots) > 1 or missing < 0:
        raise IndexRangeError(
            f"{len(given)} positions for {x} (made at {x.file_info}), which has {len(x.axes)} "
            "axes: give at most one for each, and one ... at most"
        )
    where = dots[0] if dots else len(given)
    return [*given[:where], *[slice(None)] * missing, *given[where + len(dots) :]]


def _check_position(x: Tensor, axis: Axis, part: Tensor) -> None:
    if part.axes is not NO_AXES or kind(part.dtype) != "i":
        raise IndexRangeError(
            f"a position along {axis} of {x} must be an integer or a scalar integer tensor, not "
            f"{part} {part.dtype.name} (made at {part.file_info}); geon.gather takes many at once"
            " and geon.where masks"
        )


def _position(x: Tensor, axis: Axis, part: Any, guards: list[Guard]) -> int | Length:
    start = part if isinstance(part, Length) else _integer(part)
    if start is None:
        raise IndexRangeError(
            f"{part!r} is no position along {axis} of {x} (made at {x.file_info}): integers, "
            "slices, ... and scalar integer tensors are; geon.gather takes arrays of them"
        )
    length = axis.expression
    if isinstance(start, int) and start < 0:
        start = length + start

    def what() -> str:
        return (
            f"position {part} (at {describe(user_site())}) is outside axis {axis} of {x} (made at "
            f"{x.file_info}); give one from {-length} to {length - 1}"
        )

    _require(0, start, what, guards)
    _require(start + 1, length, what, guards)
    return start


def _integer(value: Any) -> int | None:
    """The integer that ``value`` is; None where it is none (True and False are none)."""
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
            f"a slice of {x} (made at {x.file_info}) along {axis} has the step {part.step!r}; "
            "give an integer other than 0"
        )

    def what() -> str:
        return (
            f"slice {_shown(part)} (at {describe(user_site())}) does not lie inside axis {axis} of "
            f"{x} (made at {x.file_info}); geon never clamps a slice: give bounds that fit"
        )

    if step > 0:
        start = _bound(part.start, 0, length)
        stop = _bound(part.stop, length, length)
        _require(start, stop, what, guards)
    else:
        # x[a:b:-s] takes a, a - s, ... above b: the same elements forwards, then flipped.
        last = _bound(part.start, length - 1, length)
        below = part.stop if part.stop is None else _bound(part.stop, -1, length)
        below = -1 if below is None else below
        _require(below, last, what, guards)
        count = last - below if step == -1 else floor_divide(last - below + (-step - 1), -step)
        start, stop = last + (count - 1) * step, last + 1
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
    """Require low <= high: now where the difference is known, else by a guard."""
    difference = high - low
    if isinstance(difference, int):
        if difference < 0:
            raise IndexRangeError(what())
    elif not _never_negative(difference):
        guards.append(Guard("<=", low, high, what()))


def _never_negative(length: Length) -> bool:
    # Open lengths are never negative, so a sum without a minus sign is not either.
    return all(c > 0 and all(isinstance(a, str) for a, _ in m) for m, c in length.terms)
