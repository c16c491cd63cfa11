"""Values of variables, and their specifications: tensors, selected rows and tensor arrays.

This module alone turns shapes, with -1 for an open length, into named axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.lengths import may_equal
from ...op_graph.op_graph import Tensor
from ...op_graph.values.dtypes import ALL_DTYPES
from ..positional.elementwise import chain
from ..positional.movement import concat
from ..positional.picking import scatter_at
from ..positional.regions import ordered
from ..positional.values import (
    PositionalArray,
    Size,
    Value,
    array,
    as_array,
    full_tensor,
    input_array,
    new_axis,
)

Shape = tuple[Size, ...]


@dataclass(frozen=True, eq=False, slots=True)
class SelectedRows:
    """Rows of a table of ``height`` rows: the gradient of an embedding.

    ``rows`` are the indices and ``values`` the rows at them; an index may occur several times, and
    its rows are summed.
    """

    rows: Value
    values: Value
    height: Size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows."""
        return self.values.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the table."""
        return (self.height, *self.values.shape[1:])

    def dense(self) -> PositionalArray:
        """Return the whole table, with zeros in the other rows."""
        return self.added_to(constant(0, self.shape, self.dtype))

    def added_to(self, table: Value) -> PositionalArray:
        """Return ``table`` with the rows added; a target updates the selected rows in place."""
        return scatter_at(table, {0: self.rows}, self.values, "add")


@dataclass(frozen=True, eq=False, slots=True)
class TensorArray:
    """An array of ``capacity`` tensors of one shape, stacked, and the number of those written."""

    values: Value
    length: Value

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the tensors."""
        return self.values.dtype

    @property
    def shape(self) -> Shape:
        """The capacity, then the shape of a tensor."""
        return self.values.shape


ProgramValue = PositionalArray | SelectedRows | TensorArray

# The fields of each kind of value that hold tensors, in order, after the class.
KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "tensor": (PositionalArray, ()),
    "selected_rows": (SelectedRows, ("values", "rows")),
    "tensor_array": (TensorArray, ("values", "length")),
}


@dataclass(frozen=True)
class Spec:
    """The kind, shape and dtype of a value. Open lengths of a shape are length expressions.

    ``rows`` is the number of the rows of a value of kind ``selected_rows``.
    """

    shape: Shape
    dtype: str
    kind: str = "tensor"
    rows: Size | None = None

    def fits(self, other: Spec) -> bool:
        """Return True if values may be of both; open lengths are compared when data come."""
        return (self.dtype, self.kind, len(self.shape)) == (
            other.dtype, other.kind, len(other.shape)
        ) and all(map(may_equal, self.shape, other.shape))  # fmt: skip

    @property
    def plain_shape(self) -> tuple[int, ...]:
        """The shape with -1 for an open length."""
        return tuple([n if isinstance(n, int) else -1 for n in self.shape])

    def __str__(self) -> str:
        kind = "" if self.kind == "tensor" else f"{self.kind} "
        return f"{kind}({', '.join(map(str, self.plain_shape))}) {self.dtype}"


def declared(name: str, shape: Sequence[Any], dtype: Any, what: str) -> Spec:
    """Return the specification of a variable; -1 at position k opens the length ``name_k``.

    A text in a shape names an open length, which variables may share.
    """
    lengths: list[Size] = []
    for k, n in enumerate(shape):
        is_open = isinstance(n, str) or n == -1
        if not is_open and not (isinstance(n, (int, np.integer)) and n >= 0):
            raise AxisError(
                f"{what}: dimension {k} of {name!r} is {n!r}; give a length of at least 0, -1 for "
                "an open length, or the name of one"
            )
        open_name = n if isinstance(n, str) else f"{name}_{k}"
        lengths.append(geon.Axis(open_name).expression if is_open else int(n))
    found = str(np.dtype(dtype)) if str(dtype) != "bfloat16" else "bfloat16"
    if found not in ALL_DTYPES:
        raise ArgumentError(f"{what}: {name!r} has the dtype {found}, which geon has not")
    return Spec(tuple(lengths), found)


def spec_of(value: ProgramValue) -> Spec:
    """Return the specification of a value."""
    found = Spec(tuple(value.shape), str(value.dtype))
    if isinstance(value, SelectedRows):
        return replace(found, kind="selected_rows", rows=value.values.shape[0])
    return replace(found, kind="tensor_array") if isinstance(value, TensorArray) else found


def parts(value: ProgramValue) -> list[PositionalArray]:
    """Return the tensors that a value consists of, with axes in the order of dimensions."""
    for cls, names in KINDS.values():
        if names and isinstance(value, cls):
            return [ordered(getattr(value, name)) for name in names]
    return [ordered(value)]  # type: ignore[arg-type]  # a tensor


def rebuilt(value: ProgramValue, tensors: Sequence[Tensor]) -> ProgramValue:
    """Return a value like ``value`` of other tensors, over the axes of its ``parts``."""
    arrays = [array(t, p.dims) for t, p in zip(tensors, parts(value), strict=True)]
    for cls, names in KINDS.values():
        if names and isinstance(value, cls):
            return replace(value, **dict(zip(names, arrays, strict=True)))  # type: ignore[arg-type]
    return arrays[0]


def placeholder_for(spec: Spec, name: str | None = None) -> ProgramValue:
    """Return a value of placeholders with a specification."""
    if spec.kind == "selected_rows":
        assert spec.rows is not None
        rows = _leaf((spec.rows,), "int64", name)
        values = _leaf((spec.rows, *spec.shape[1:]), spec.dtype, name)
        return SelectedRows(rows, values, spec.shape[0])
    whole = _leaf(spec.shape, spec.dtype, name)
    return TensorArray(whole, _leaf((), "int64", name)) if spec.kind == "tensor_array" else whole


def axes_for(shape: Shape) -> list[geon.Axis]:
    """Return an axis for each dimension, named by its open length or by its position."""
    axes: list[geon.Axis] = []
    for k, length in enumerate(shape):
        axes.append(new_axis(length, f"d{k}", [axis.name for axis in axes]))
    return axes


def _leaf(shape: Shape, dtype: str, name: str | None) -> PositionalArray:
    return input_array(geon.placeholder(axes_for(shape), dtype, name=name))


def constant(number: float, shape: Shape, dtype: Any) -> PositionalArray:
    """Return a value of equal elements, also of an open shape."""
    axes = axes_for(shape)
    return array(geon.broadcast(geon.constant(number, dtype=dtype), axes), axes)


def zeros_like(value: ProgramValue) -> ProgramValue:
    """Return a value with zeros for its elements, and its own rows or length."""
    first, *rest = parts(value)
    zeros = geon.broadcast(geon.constant(0, dtype=first.dtype), first.tensor.axes)
    return rebuilt(value, [zeros, *[part.tensor for part in rest]])


def leaf_like(value: ProgramValue) -> ProgramValue:
    """Return placeholders over the axes of a value."""
    return rebuilt(value, [geon.placeholder(p.tensor.axes, p.dtype) for p in parts(value)])


def added(values: Sequence[ProgramValue]) -> ProgramValue:
    """Return the sum of values; that of selected rows alone stays selected."""
    rows = [value for value in values if isinstance(value, SelectedRows)]
    if len(rows) == len(values) and rows:
        every = concat([v.rows for v in rows], 0), concat([v.values for v in rows], 0)
        return rows[0] if len(rows) == 1 else SelectedRows(*every, rows[0].height)
    arrays = [value for value in values if isinstance(value, TensorArray)]
    if arrays:
        return replace(arrays[0], values=chain(geon.add, [each.values for each in arrays]))
    total = chain(geon.add, [v for v in values if not isinstance(v, SelectedRows)])  # type: ignore[misc]  # tensors
    for each in rows:
        total = each.added_to(total)
    return as_array(total)


def as_value(result: Any) -> ProgramValue:
    """Return a result of an operator's function as a value; a geon tensor has dimensions in order.

    A selection or array stays as it is.
    """
    if isinstance(result, (SelectedRows, TensorArray)):
        return result
    return array(result, result.axes) if isinstance(result, Tensor) else as_array(result)


def by_dimension(value: Value) -> Tensor:
    """Return a tensor with the axes d0, d1, ... for its dimensions, also for those of length 1."""
    whole = full_tensor(value)
    names: dict[Any, Any] = {old: f"d{k}" for k, old in enumerate(whole.axes.names)}
    changed = {old: new for old, new in names.items() if old != new}
    return whole.rename(changed) if changed else whole
