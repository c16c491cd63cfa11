"""Slices and updates of slices: ``x[...]`` and ``update``, by index or by axis name."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import DTypeError, IndexRangeError
from ..axes.affine import AffineIndex, divide, variable
from ..axes.axes import Axes, Axis, axes_may_equal
from ..axes.index_map import GuardedElement, Index, Map, Position, view_map
from ..axes.index_map import InRange as Guarded
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.index_parsing import Item, count, parse
from ..building.weak import put_into
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import Site
from ..op_graph import NO_AXES, Guard, Op, Tensor, make
from ..values.attribute_types import Items
from ..values.dtypes import kind
from .elementwise import cast
from .movement import FLIP, broadcast, flip

if TYPE_CHECKING:
    from ..building.typing import At, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class SliceAttributes(NamedTuple):
    """The item of each axis of the first argument: the part of it that is read or replaced."""

    items: Items


def index_of(op: Op, positions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the NumPy index of a slice or update op with integer lengths.

    ``positions`` are the values of run-time indices. Raises ``IndexRangeError`` if one is out of
    range.
    """
    first = 1 if op.primitive.name == "slice" else 2
    index: list[Any] = []
    for axis, item in zip(op.args[0].axes, op.attrs.items, strict=True):
        if item is None:
            index.append(slice(None))
        elif item[0] == "range":
            index.append(slice(item[1], item[2], item[3]))
        elif item[0] == "at":
            index.append(item[1])
        else:
            at, length = int(positions[item[1] - first]), axis.expression
            if not -length <= at < length:
                raise IndexRangeError(
                    f"position {at} is outside axis {axis} of {op.args[0]} in the op made at "
                    f"{op.line_info}"
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
    return _update(cast(zeros, g.dtype), g, op.attrs.items, op.args[1:], op.guards, shift=1)


def _update_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    value = op.args[1]
    if i == 0:
        zeros = cast(broadcast(as_tensor(0), value.axes), g.dtype)
        return _update(g, zeros, op.attrs.items, op.args[2:], op.guards)
    if i == 1:
        return _slice(g, op.attrs.items, op.args[2:], op.guards, shift=-1)
    return None


@lru_cache(maxsize=4096)
def part_axes(axes: Axes, items: tuple[Item, ...]) -> Axes:
    """Return the axes of the part of a tensor over ``axes`` that ``items`` select."""
    require(len(items) == len(axes), "{} positions for {}", len(items), axes)
    kept: list[Axis] = []
    for axis, item in zip(axes, items, strict=True):
        if item is None:
            kept.append(axis)
        elif item[0] == "range":
            start, stop, step = item[1:]
            _require_inside(start, stop, axis)
            kept.append(axis.with_length(count(start, stop, step)))
        elif item[0] == "at":
            _require_inside(item[1], item[1] + 1, axis)
    return Axes(kept)


def _require_inside(start: int | Length, stop: int | Length, axis: Axis) -> None:
    for difference in (start, axis.expression - stop):
        inside = isinstance(difference, Length) or difference >= 0
        require(inside, "{} to {}, which is not inside axis {}", start, stop, axis)


def _check_positions(items: tuple[Item, ...], args: tuple[Any, ...], first: int) -> None:
    numbers = [item[1] for item in items if item is not None and item[0] == "dyn"]
    require(
        numbers == [*range(first, len(args))], "positions {} of {} arguments", numbers, len(args)
    )
    for position in args[first:]:
        integer = position.axes is NO_AXES and kind(position.dtype) == "i"
        require(integer, "a position {} that is no integer", position)


def _slice_infer(args: tuple[Any, ...], attrs: SliceAttributes) -> Inferred:
    axes = part_axes(args[0].axes, attrs.items)
    _check_positions(attrs.items, args, 1)
    return axes, args[0].dtype, ()


def _update_infer(args: tuple[Any, ...], attrs: SliceAttributes) -> Inferred:
    require(len(args) >= 2, "update without a value")
    x, value = args[:2]
    part = part_axes(x.axes, attrs.items)
    _check_positions(attrs.items, args, 2)
    matches = value.axes is part or (
        value.axes.names == part.names and axes_may_equal(part, value.axes)
    )
    require(matches, "update of {} with {}", part, value.axes)
    require(value.dtype is x.dtype, "update of {} with {}", x.dtype, value.dtype)
    return x.axes, x.dtype, ()


def _slice_map(op: Op, index: Index) -> Map:
    return view_map(part_index(op, index))


def part_index(op: Op, index: Index) -> dict[str, AffineIndex]:
    """Return the index in the first argument of an element of a slice or update."""
    indices: dict[str, AffineIndex] = {}
    for axis, item in zip(op.args[0].axes, op.attrs.items, strict=True):
        if item is None:
            indices[axis.name] = index[axis.name]
        elif item[0] == "range":
            indices[axis.name] = index[axis.name] * item[3] + item[1]
        else:
            indices[axis.name] = _position_of(item, axis)
    return indices


def _position_of(item: Item, axis: Axis) -> AffineIndex:
    """Return an index as an affine expression; a run-time one is an atom."""
    if item[0] == "at":
        return AffineIndex((), item[1])
    return variable(Position(item[1], (), axis.expression))


def _update_map(op: Op, index: Index) -> Map:
    guards: list[Guarded] = []
    indices: dict[str, AffineIndex] = {}
    for axis, item in zip(op.axes, op.attrs.items, strict=True):
        here = index[axis.name]
        if item is None:
            indices[axis.name] = here
        elif item[0] == "range":
            _, start, stop, step = item
            guards.append(Guarded(here, start, stop))
            indices[axis.name] = here - start
            if step != 1:
                indices[axis.name], rest = divide(here - start, step)
                guards.append(Guarded(rest, 0, 1))
        else:
            guards.append(Guarded(here - _position_of(item, axis), 0, 1))
    return GuardedElement(tuple(guards), 1, indices), GuardedElement((), 0, index)


def _batch_items(attrs: SliceAttributes, axes: Axes) -> SliceAttributes:
    return SliceAttributes((*attrs.items, *[None] * len(axes)))


SLICE = Primitive(
    "slice",
    "movement",
    "A part of x along each axis: a range with a step, or one position.",
    reference=_slice_reference,
    transpose=_slice_transpose,
    attributes=SliceAttributes,
    infer=_slice_infer,
    index_map=_slice_map,
    batch_attributes=_batch_items,
    view=True,
    dtype_operands=(0,),
    cost="once",
)
UPDATE = Primitive(
    "update",
    "movement",
    "x with a part replaced by another value.",
    reference=_update_reference,
    transpose=_update_transpose,
    attributes=SliceAttributes,
    infer=_update_infer,
    index_map=_update_map,
    batch_attributes=_batch_items,
    batched_together=(0, 1),
    dtype_operands=(0, 1),
    cost="kernel",
    in_place=(0,),
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
    site: Site | None = None,
) -> Tensor:
    attrs = (_shifted(items, shift),)
    return make(SLICE, (x, *positions), attrs, guards=guards, site=site)


def _update(
    x: Tensor,
    value: Tensor,
    items: tuple[Item, ...],
    positions: tuple[Op, ...],
    guards: tuple[Guard, ...],
    shift: int = 0,
    site: Site | None = None,
) -> Tensor:
    attrs = (_shifted(items, shift),)
    return make(UPDATE, (x, value, *positions), attrs, guards=guards, site=site)


def below_renames(op: Op) -> Op:
    """Return the op that ``op`` renames the axes of, or ``op`` itself."""
    while op.primitive.name == "rename":
        op = op.args[0]
    return op


def is_updated_part(part: Op, whole: Op) -> bool:
    """Return True if ``part`` is a slice of the elements that the update ``whole`` replaces."""
    if part.primitive is not SLICE or below_renames(part.args[0]) is not below_renames(
        whole.args[0]
    ):
        return False
    pairs = zip(part.args[1:], whole.args[2:], strict=False)
    return _shifted(part.attrs.items, 1) == whole.attrs.items and all(a is b for a, b in pairs)


@public
def take(x: Any, at: Any) -> Tensor:
    """Return ``x[at]``: integers, slices with steps, ``...``, ``{axis: ...}``, scalar tensors.

    Negative indices count from the end. A range keeps its axis under the same name with the new
    length; an index drops it. A range must be inside its axis, because nothing is clamped:
    otherwise it raises ``IndexRangeError``, at once if the length is known, else before the call.
    """
    items, flipped, positions, guards = parse(x, at, first=1)
    if all(item is None for item in items):
        result = x
    else:
        result = _slice(x, items, positions, guards)
    return flip(result, [result.axes[name] for name in flipped]) if flipped else result


def forwards(part: Tensor) -> tuple[Tensor, list[Axis]]:
    """Return slices of flips as slices only, and the axes along which ``part`` is reversed."""
    views: list[Op] = []
    while part.primitive in (SLICE, FLIP):
        views.append(part)
        part = part.args[0]  # type: ignore[assignment]  # what is sliced is a tensor
    flipped: set[str] = set()
    for view in reversed(views):
        if view.primitive is FLIP:
            flipped ^= set(view.attrs.flipped)
            continue
        items, positions = list(view.attrs.items), list(view.args[1:])
        for at, axis in enumerate(view.args[0].axes):
            item = items[at]
            if axis.name not in flipped or item is None:
                continue
            if item[0] == "dyn":
                positions[item[1] - 1] = -1 - cast(positions[item[1] - 1], "int64")
            else:
                items[at] = _mirrored(item, axis.expression)
        part = _slice(part, tuple(items), tuple(positions), view.guards)
        flipped &= set(view.axes.names)
    return part, [axis for axis in part.axes if axis.name in flipped]


def _mirrored(item: Item, length: int | Length) -> Item:
    """Return the item of the same elements counted from the other end, in ascending order."""
    if item[0] == "at":
        return ("at", length - 1 - item[1])
    _, start, stop, step = item
    elements = count(start, stop, step)
    return ("range", length - 1 - (start + (elements - 1) * step), length - start, step)


@public
def update(x: TensorLike, value: TensorLike, at: At, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with ``x[at]`` replaced by ``value``, which is broadcast over that part's axes.

    ``at`` is an index as in ``x[at]``. The result has the axes of ``x``.
    """
    x = as_tensor(x)
    items, flipped, positions, guards = parse(x, at, first=2)
    x, value = put_into("update", x, value)
    if value.dtype is not x.dtype:
        raise DTypeError(
            f"update: {value} (made at {value.line_info}) is {value.dtype.name} and {x} (made at "
            f"{x.line_info}) is {x.dtype.name}; geon.cast the value"
        )
    value = broadcast(value, part_axes(x.axes, items))
    if flipped:
        value = flip(value, [value.axes[name] for name in flipped])
    return _update(x, value, items, positions, guards)
