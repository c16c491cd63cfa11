"""Gather along a position."""

from __future__ import annotations

import numpy as np

import geon

from ...errors import IndexRangeError
from .movement import Part, slices, with_axis
from .values import Dim, HostArray, PositionalArray, Value, array, as_array, fresh, host, renamed


def gather(value: Value, index: Value, axis: int) -> Value:
    """Return the elements at ``index`` along a position, which the index's positions replace.

    Negative indices count from the end.
    """
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


def select(value: Value, position: int, index: int) -> Value:
    """Return the elements at one index along a position, without the position."""
    if isinstance(value, HostArray):
        found = np.take(value.array, index, position)
        return host(found, value.dtype if value.dtype != object else None)
    part = as_array(slices(value, {position: Part(index, index + 1 or None)}))
    dims: list[Dim] = [dim for k, dim in enumerate(part.dims) if k != position]
    return PositionalArray(part.tensor, tuple(dims))
