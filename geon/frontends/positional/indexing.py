"""Gather and scatter, along a position or at tuples of indices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import geon

from ...errors import AxisError, IndexRangeError
from .movement import Part, slices, with_axis
from .picking import gather_at, scatter_at
from .values import (
    Dim,
    HostArray,
    PositionalArray,
    Value,
    array,
    as_array,
    fresh,
    host,
    position,
    renamed,
)


def gather(value: Value, index: Value, axis: int) -> Value:
    """Return the elements at ``index`` along a position, which the index's positions replace.

    Negative indices count from the end.
    """
    axis = position(axis, len(value.shape))
    length = value.shape[axis]
    if isinstance(index, HostArray) and isinstance(length, int) and index.array.size:
        least, most = int(index.array.min()), int(index.array.max())
        if least < -length or most >= length:
            raise IndexRangeError(
                f"index {least if least < -length else most} is out of range along dimension "
                f"{axis} of {value}"
            )
    if isinstance(value, HostArray) and isinstance(index, HostArray):
        found = np.take(value.array, index.array.astype(np.int64), axis)
        return host(found, value.dtype if value.dtype != object else None)
    given = with_axis(as_array(value), axis)
    dim = given.dims[axis]
    assert dim is not None
    before, after = given.dims[:axis], given.dims[axis + 1 :]
    if isinstance(index, HostArray) and index.array.ndim == 0:
        return array(given.tensor[{dim.name: int(index.array)}], [*before, *after])
    at = apart(as_array(index), given, dim.name)
    return array(geon.gather(given.tensor, at.tensor, dim.name), [*before, *at.dims, *after])


def apart(index: PositionalArray, value: PositionalArray, base: str) -> PositionalArray:
    """Return an index whose axes have names that ``value`` does not have."""
    taken = list(value.tensor.axes.names)
    names: list[str | None] = []
    for dim in index.dims:
        name = (
            None if dim is None else fresh(base if dim.name.startswith("d_") else dim.name, taken)
        )
        names.append(name)
        taken += [] if name is None else [name]
    return renamed(index, names)


def select(value: Value, axis: int, index: int) -> Value:
    """Return the elements at one index along a position, without the position."""
    at = position(axis, len(value.shape))
    if isinstance(value, HostArray):
        found = np.take(value.array, index, at)
        return host(found, value.dtype if value.dtype != object else None)
    part = as_array(slices(value, {at: Part(index, index + 1 or None)}))
    dims: list[Dim] = [dim for k, dim in enumerate(part.dims) if k != at]
    return PositionalArray(part.tensor, tuple(dims))


def matched(
    value: PositionalArray, like: PositionalArray, shared: Iterable[int]
) -> PositionalArray:
    """Return ``value`` with the names of ``like`` at the shared positions, and new ones elsewhere.

    ``shared`` are positions of both.
    """
    taken = list(like.tensor.axes.names)
    names: list[str | None] = []
    common = set(shared)
    for k, dim in enumerate(value.dims):
        other = like.dims[k] if k in common else None
        if dim is None or other is not None:
            names.append(None if dim is None or other is None else other.name)
        else:
            names.append(fresh(dim.name, taken))
        taken += [] if names[-1] is None else [names[-1]]
    return renamed(value, names)


def _part(value: Value, index: Value, axis: int) -> PositionalArray:
    """Return the first elements of ``value`` at each position but ``axis``, as many as indices."""
    if len(index.shape) != len(value.shape):
        raise AxisError(f"{value} is indexed by {index}: both need the same rank")
    lengths = enumerate(zip(value.shape, index.shape, strict=True))
    parts = {k: Part(0, n) for k, (own, n) in lengths if k != axis and own != n}
    return with_axis(as_array(slices(value, parts) if parts else value), axis)


def _at(index: Value, value: PositionalArray, axis: int) -> PositionalArray:
    rank = len(value.dims)
    return matched(as_array(index), value, [k for k in range(rank) if k != axis])


def gather_elements(value: Value, index: Value, axis: int) -> Value:
    """Return, for each index, the element there along a position, at its own other positions."""
    axis = position(axis, len(value.shape))
    given = _part(value, index, axis)
    dim = given.dims[axis]
    assert dim is not None
    at = _at(index, given, axis)
    return array(geon.gather(given.tensor, at.tensor, dim.name), at.dims)


def scatter_elements(
    value: Value, index: Value, updates: Value, axis: int, mode: str = "set"
) -> Value:
    """Return ``value`` with updates at the places that ``gather_elements`` reads.

    ``mode`` is as for ``geon.scatter``.
    """
    axis = position(axis, len(value.shape))
    whole = with_axis(as_array(value), axis)
    part = _part(whole, index, axis)
    dim = part.dims[axis]
    assert dim is not None
    at = _at(index, part, axis)
    new = matched(as_array(updates), at, range(len(at.dims)))
    changed = geon.scatter(part.tensor, at.tensor, new.tensor, dim.name, mode=mode)
    corner: dict[geon.Axis, int | slice] = {
        dim: 0 if own is None else slice(0, own.expression)
        for dim, own in zip(whole.dims, part.dims, strict=True)
        if dim is not None and (own is None or own.expression != dim.expression)
    }
    return array(geon.update(whole.tensor, changed, corner) if corner else changed, whole.dims)


def gather_tuples(value: Value, index: Value, batch_dims: int = 0) -> Value:
    """Return the elements of ``value`` at tuples of indices, which are the last position.

    They select along the positions after the first ``batch_dims``, which both share.
    """
    return gather_at(value, _tuples(index, batch_dims), {k: k for k in range(batch_dims)})


def scatter_tuples(value: Value, index: Value, updates: Value, mode: str = "set") -> Value:
    """Return ``value`` with updates at the places that ``gather_tuples`` reads."""
    return scatter_at(value, _tuples(index, 0), updates, mode)


def _tuples(index: Value, first: int) -> dict[int, Value]:
    """Return the index along each position from ``first`` on."""
    length = index.shape[-1]
    if not isinstance(length, int):
        raise AxisError(f"tuples of indices {index} need a known length; it is {length}")
    return {first + k: select(index, len(index.shape) - 1, k) for k in range(length)}
