"""Concatenate, slice, split, pad, tile and flip along positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.lengths import Length
from .elementwise import common_names
from .folding import is_at_least
from .reshaping import reshape
from .values import (
    Dim,
    HostArray,
    PositionalArray,
    Size,
    Value,
    array,
    as_array,
    fresh,
    host,
    position,
    positions,
    renamed,
)

LARGE = 2**31 - 1  # bounds of slices from here on stand for the end of an axis


def concat(values: Sequence[Value], axis: int) -> Value:
    """Return values joined along a position; other lengths must agree."""
    ranks = {len(value.shape) for value in values}
    if len(ranks) != 1 or 0 in ranks:
        raise AxisError(f"concat of {', '.join(map(str, values))}: ranks must be equal, and not 0")
    axis = position(axis, *ranks)
    if all(isinstance(value, HostArray) for value in values):
        parts = [value.array for value in values if isinstance(value, HostArray)]
        dtype = np.dtype(object) if any(p.dtype == object for p in parts) else parts[0].dtype
        whole = np.concatenate([part.astype(dtype) for part in parts], axis)
        return host(whole, values[0].dtype if values[0].dtype != object else None)
    named = [value for value in values if isinstance(value, PositionalArray)]
    like = named[0].dims if named else ()
    arrays = [with_axis(as_array(value, like), axis) for value in values]
    for value in arrays[1:]:
        for number, pair in enumerate(zip(arrays[0].dims, value.dims, strict=True)):
            if number != axis and (pair[0] is None) != (pair[1] is None):
                raise AxisError(
                    f"concat along dimension {axis} of {', '.join(map(str, values))}: dimension "
                    f"{number} differs; a length of 1 does not stretch"
                )
    # The joined axis has one name and different lengths, so it is left out of the comparison.
    names = common_names([_hide(value, axis) for value in arrays])
    own = arrays[0].dims[axis]
    assert own is not None  # with_axis gave it one
    names[axis] = joined = fresh(own.name, [name for name in names if name is not None])
    tensors = [
        renamed(value, [n if d else None for d, n in zip(value.dims, names, strict=True)]).tensor
        for value in arrays
    ]
    return array(geon.concat(tensors, joined), names)


def _hide(value: PositionalArray, axis: int) -> PositionalArray:
    """Return the array as if it had length 1 at a position, to compare the others."""
    return PositionalArray(value.tensor, (*value.dims[:axis], None, *value.dims[axis + 1 :]))


def with_axis(value: PositionalArray, axis: int, base: str | None = None) -> PositionalArray:
    """Return an array that has an axis at this position, also if its length is 1."""
    at = position(axis, len(value.dims))
    if value.dims[at] is not None:
        return value
    new = geon.Axis(fresh(base or f"d{at}", value.tensor.axes.names), 1)
    dims: list[Dim] = list(value.dims)
    dims[at] = new
    return PositionalArray(geon.expand(value.tensor, new), tuple(dims))


@dataclass(frozen=True)
class Part:
    """The slice of a position: bounds may be negative or length expressions."""

    start: Size | None = None
    stop: Size | None = None
    step: int = 1


def slices(value: Value, parts: dict[int, Part]) -> Value:
    """Return the slice of a value along some positions, with bounds clamped as Python's.

    Bounds of an open length are not clamped: data must be long enough, which is checked.
    """
    along = zip(positions(parts, len(value.shape)), parts.values(), strict=True)
    if isinstance(value, HostArray):
        at = [slice(None)] * len(value.shape)
        for k, part in along:
            at[k] = slice(_integer(part.start), _integer(part.stop), part.step)
        return host(value.array[tuple(at)], value.dtype if value.dtype != object else None)
    given = as_array(value)
    picked: dict[Any, slice] = {}
    for k, part in along:
        given = with_axis(given, k)
        dim = given.dims[k]
        assert dim is not None
        picked[dim.name] = _bounds(dim.expression, part)
    return array(given.tensor[picked], given.dims) if picked else value


def _integer(bound: Size | None) -> int | None:
    if isinstance(bound, Length):
        raise ArgumentError(f"a known array is sliced up to {bound}, which is known in a call only")
    return bound


def _bounds(length: Size, part: Part) -> slice:
    if part.step == 0:
        raise ArgumentError("a slice has the step 0; give another one")
    start, stop, step = part.start, part.stop, part.step
    if isinstance(length, int) and not isinstance(start, Length) and not isinstance(stop, Length):
        first, last, step = slice(start, stop, step).indices(length)
        if len(range(first, last, step)) == 0:
            return slice(0, 0)
        return slice(first, None if last < 0 else last, step)
    way = 1 if step > 0 else -1
    beyond = isinstance(start, int) and start * way >= LARGE
    if beyond or (isinstance(stop, int) and stop * way <= -LARGE):
        return slice(0, 0)
    if isinstance(start, int) and isinstance(length, Length):
        start = _open_bound(start, length, step < 0)
    if isinstance(stop, int) and isinstance(length, Length):
        stop = _open_bound(stop, length, step < 0)
    if step < 0:
        start = None if start == length - 1 or start == length else start
    else:
        stop = None if stop == length else _clamped(stop, length)
    return slice(start, stop, step)


def _clamped(stop: Size | None, length: Size) -> Size | None:
    """Return None for a bound that is at least the length, for all lengths."""
    return None if stop is not None and is_at_least(stop - length, 0) else stop


def _open_bound(bound: int, length: Length, last: bool) -> Size | None:
    if bound >= LARGE:
        return None
    if bound <= -LARGE:
        return 0 if not last else None
    return bound if bound >= 0 else length + bound


def split(value: Value, axis: int, lengths: Sequence[Size]) -> list[Value]:
    """Return consecutive slices of these lengths along a position."""
    axis = position(axis, len(value.shape))
    parts: list[Value] = []
    start: Size = 0
    for length in lengths:
        stop = start + length
        parts.append(slices(value, {axis: Part(start, stop)}))
        start = stop
    if not _may_be(start, value.shape[axis]):
        raise AxisError(f"{value} is split along {axis} into {start} elements: {list(lengths)}")
    return parts


def _may_be(left: Size, right: Size) -> bool:
    return left == right or not isinstance(left - right, int)


def flip(value: Value, axes: Sequence[int]) -> Value:
    """Return a value in reverse order along some positions."""
    return slices(value, {k: Part(step=-1) for k in positions(axes, len(value.shape))})


def tile(value: Value, repeats: Sequence[Size]) -> Value:
    """Return a value repeated as a whole along each position."""
    given = as_array(value)
    shape: list[Size] = []
    doubled: list[Size] = []
    dims: list[Dim] = []
    tensor = given.tensor
    for k, (dim, count) in enumerate(zip(given.dims, repeats, strict=True)):
        length: Size = 1 if dim is None else dim.expression
        shape.append(count * length)
        if count != 1:
            axis = geon.Axis(fresh(f"repeat{k}", tensor.axes.names), count)
            tensor = geon.expand(tensor, axis)
            dims.append(axis)
            doubled.append(count)
        dims.append(dim)
        doubled.append(length)
    return reshape(array(tensor, dims), shape)


def pad(value: Value, widths: Sequence[tuple[Size, Size]], mode: str, fill: Any) -> Value:
    """Return a value with a border; negative widths cut. ``mode`` is as for ``geon.pad``."""
    given = as_array(value)
    cuts = {
        k: Part(-before if _negative(before) else None, after if _negative(after) else None)
        for k, (before, after) in enumerate(widths)
        if _negative(before) or _negative(after)
    }
    if cuts:
        given = as_array(slices(given, cuts))
    borders: dict[Any, Any] = {}
    for k, (before, after) in enumerate(widths):
        wide = (0 if _negative(before) else before, 0 if _negative(after) else after)
        if wide != (0, 0):
            given = with_axis(given, k)
            borders[given.dims[k].name] = wide  # type: ignore[union-attr]  # with_axis gave it one
    if not borders:
        return given
    return array(geon.pad(given.tensor, borders, mode, fill), given.dims)


def _negative(width: Size) -> bool:
    return isinstance(width, int) and width < 0
