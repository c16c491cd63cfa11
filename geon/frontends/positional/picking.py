"""Gather and scatter at index arrays along several positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import geon

from ...errors import AxisError
from ...op_graph.axes.lengths import may_equal, product
from .elementwise import elementwise
from .movement import with_axis
from .programs import cast
from .values import (
    Dim,
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


def gather_at(
    value: Value, indices: Mapping[int, Value], batch: Mapping[int, int] | None = None
) -> PositionalArray:
    """Return the elements at index arrays along some positions of ``value``.

    ``indices`` maps positions to integer arrays of one rank, which are broadcast together.
    ``batch`` maps further positions of ``value`` to those of the indices with the same index. The
    result has the positions of the indices, then the other positions of ``value``, in their order.
    Negative indices count from the end.
    """
    merged = _MergedAxes(as_array(value), indices, batch or {})
    found = geon.gather(merged.tensor, merged.index, merged.axis)
    return array(found, merged.picked)


def scatter_at(
    value: Value,
    indices: Mapping[int, Value],
    updates: Value,
    mode: str,
    batch: Mapping[int, int] | None = None,
    drop: Value | None = None,
) -> PositionalArray:
    """Return ``value`` with ``updates`` set at, or combined with, the elements of ``gather_at``.

    ``updates`` are broadcast to the shape of ``gather_at``; ``mode`` is as for ``geon.scatter``.
    Updates where ``drop``, over the positions of the indices, is true are left out.
    """
    merged = _MergedAxes(as_array(value), indices, batch or {}, drop)
    shape = [1 if dim is None else dim.expression for dim in merged.picked]
    given = as_array(updates)
    if len(given.dims) > len(shape):
        raise AxisError(f"updates {updates} have more positions than the elements: {shape}")
    wide = PositionalArray(given.tensor, (None,) * (len(shape) - len(given.dims)) + given.dims)
    for dim, length in zip(wide.dims, shape, strict=True):
        if dim is not None and not may_equal(dim.expression, length):
            raise AxisError(f"updates {updates} do not fit the elements that they change: {shape}")
    names = [None if dim is None else dim.name for dim in merged.picked]
    own = [None if d is None else n for d, n in zip(wide.dims, names, strict=True)]
    tensor = cast(renamed(wide, own), value.dtype).tensor  # type: ignore[union-attr]  # an array
    whole = geon.scatter(merged.tensor, merged.index, tensor, merged.axis, mode=mode)
    return merged.unmerged(whole)


class _MergedAxes:
    """A value whose indexed axes are one, and the index along it.

    With ``drop`` the axis has one element more, which takes what is left out.
    """

    def __init__(
        self,
        value: PositionalArray,
        indices: Mapping[int, Value],
        batch: Mapping[int, int],
        drop: Value | None = None,
    ) -> None:
        at = positions(indices, len(value.dims))
        indices = dict(zip(at, indices.values(), strict=True))
        along = sorted(at)
        for k in along:
            value = with_axis(value, k)
        self._value = value
        self._axes = [axis for axis in [value.dims[k] for k in along] if axis is not None]
        lengths: list[Size] = [axis.expression for axis in self._axes]
        self._size = product(lengths)
        names = value.tensor.axes.names
        self.tensor, self.axis = value.tensor, self._axes[0].name
        if len(along) > 1:
            self.axis = fresh("elements", names)
            self.tensor = geon.flatten(value.tensor, self._axes, geon.Axis(self.axis, self._size))
        index = flat_index([indices[k] for k in along], lengths)
        self._is_wider = drop is not None
        if drop is not None:
            self.tensor = geon.pad(self.tensor, {self.axis: (0, 1)})
            index = elementwise(geon.where, drop, host(self._size, "int64"), index)
        places = as_array(index)
        taken = [*names, self.axis]
        renames: list[str | None] = []
        shared = {k: value.dims[own] for own, k in batch.items()}
        for number, dim in enumerate(places.dims):
            same = shared.get(number)
            name = None
            if dim is not None:
                name = fresh(dim.name, taken) if same is None else same.name
                taken.append(name)
            renames.append(name)
        places = renamed(places, renames)
        self.index = places.tensor
        first: list[Dim] = [shared.get(k) or dim for k, dim in enumerate(places.dims)]
        rest = [d for k, d in enumerate(value.dims) if k not in indices and k not in batch]
        self.picked: list[Dim] = [*first, *rest]

    def unmerged(self, tensor: geon.Tensor) -> PositionalArray:
        """Return a tensor of the merged form with the positions of the value."""
        if self._is_wider:
            tensor = tensor[{self.axis: slice(0, self._size)}]
        if len(self._axes) > 1:
            tensor = geon.unflatten(tensor, self.axis, self._axes)
        return array(tensor, self._value.dims)


def flat_index(indices: Sequence[Value], lengths: Sequence[Size]) -> Value:
    """Return the index, in row-major order, into axes of these lengths; -1 is the last of one."""
    if len(indices) == 1:
        return cast(indices[0], "int64")
    total: Value = host(0, "int64")
    for index, length in zip(indices, lengths, strict=True):
        count = host(length, "int64")
        whole = cast(index, "int64")
        below = elementwise(geon.less, whole, host(0, "int64"))
        inside = elementwise(geon.where, below, elementwise(geon.add, whole, count), whole)
        total = elementwise(geon.add, elementwise(geon.multiply, total, count), inside)
    return total


def numbers(length: Size, rank: int = 1, axis: int = 0, dtype: str = "int64") -> Value:
    """Return 0, 1, ... along one of ``rank`` positions, of which the others have length 1."""
    if isinstance(length, int) and length == 1:
        return PositionalArray(geon.constant(0, dtype=dtype), (None,) * rank)
    at = position(axis, rank)
    line = geon.Axis("number", length)
    line = line.named(line.open_name or f"number_{at}")
    dims: list[Dim] = [None] * rank
    dims[at] = line
    return PositionalArray(geon.iota(line, dtype), tuple(dims))
