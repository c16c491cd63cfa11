"""Values of variables, and their specifications: tensors, selected rows and tensor arrays.

This module alone turns shapes, with -1 for an open length, into named axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.lengths import may_equal
from ...op_graph.op_graph import Tensor
from ...op_graph.values.dtypes import ALL_DTYPES, named_dtype
from ..positional.elementwise import chain, elementwise, expand
from ..positional.indexing import gather
from ..positional.movement import concat
from ..positional.picking import numbers, scatter_at
from ..positional.regions import ordered
from ..positional.reshaping import unsqueeze
from ..positional.values import (
    PositionalArray,
    Size,
    Value,
    array,
    as_array,
    axes_for,
    full_tensor,
    host,
    input_array,
)

Shape = tuple[Size, ...]


class _Composite:
    """A value of several tensors, of which ``values`` are the elements."""

    values: Value

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.values.dtype


@dataclass(frozen=True, eq=False)
class SelectedRows(_Composite):
    """Rows of a table of ``height`` rows: the gradient of an embedding.

    ``values`` are the rows at the indices ``rows``; those of an index that occurs several times
    are summed.
    """

    rows: Value
    values: Value
    height: Size

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

    def summed(self) -> tuple[Value, Value]:
        """Return for each of ``rows`` one of its occurrences, and values that are the sums there.

        The other values are 0.
        """
        count = numbers(self.values.shape[0])
        last = scatter_at(constant(0, (self.height,), "int64"), {0: self.rows}, count, "set")
        at = gather(last, self.rows, 0)
        sums = scatter_at(constant(0, self.values.shape, self.dtype), {0: at}, self.values, "add")
        return at, sums

    def totals(self) -> Value:
        """Return for each of ``rows`` the sum of the values of all its occurrences."""
        at, sums = self.summed()
        return gather(sums, at, 0)

    def mapped(self, f: Callable[..., Tensor], *tables: Value) -> SelectedRows:
        """Return ``f`` of the sums of rows, and of the same rows of tables, as selected rows."""
        at, sums = self.summed()
        is_one = elementwise(geon.equal, at, numbers(self.values.shape[0]))
        own = [gather(table, self.rows, 0) for table in tables]
        values = chosen(is_one, elementwise(f, sums, *own), 0)
        return replace(self, values=values)


@dataclass(frozen=True, eq=False)
class TensorArray(_Composite):
    """Tensors of one shape, stacked up to a capacity, and the number of those written."""

    values: Value
    length: Value

    @property
    def shape(self) -> Shape:
        """The capacity, then the shape of a tensor."""
        return self.values.shape


ProgramValue = PositionalArray | SelectedRows | TensorArray

# The class of each kind of value, and the fields that hold its tensors: the elements come first.
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
        same = (self.dtype, self.kind, len(self.shape)) == (
            other.dtype, other.kind, len(other.shape)
        )  # fmt: skip
        return same and all(map(may_equal, self.shape, other.shape))

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
        own = n if isinstance(n, str) else f"{name}_{k}"
        lengths.append(geon.Axis(own).expression if is_open else int(n))
    found = str(dtype) if str(dtype) in ALL_DTYPES else np.dtype(dtype).name
    if found not in ALL_DTYPES:
        raise ArgumentError(
            f"{what}: {name!r} has the dtype {found}, which geon has not; give another one"
        )
    return Spec(tuple(lengths), found)


def as_table(value: Any) -> Any:
    """Return selected rows as a whole table, and any other value as it is."""
    return value.dense() if isinstance(value, SelectedRows) else value


def spec_of(value: ProgramValue) -> Spec:
    """Return the specification of a value."""
    kind = next(name for name, (cls, _) in KINDS.items() if isinstance(value, cls))
    rows = value.values.shape[0] if isinstance(value, SelectedRows) else None
    return Spec(tuple(value.shape), str(value.dtype), kind, rows)


def parts(value: ProgramValue) -> list[PositionalArray]:
    """Return the tensors that a value consists of, with axes in the order of dimensions."""
    if isinstance(value, PositionalArray):
        return [ordered(value)]
    return [ordered(getattr(value, name)) for name in KINDS[spec_of(value).kind][1]]


def rebuilt(value: ProgramValue, tensors: Sequence[Tensor]) -> ProgramValue:
    """Return a value like ``value`` of other tensors, over the axes of its ``parts``."""
    arrays = [array(t, p.dims) for t, p in zip(tensors, parts(value), strict=True)]
    if isinstance(value, PositionalArray):
        return arrays[0]
    return replace(value, **dict(zip(KINDS[spec_of(value).kind][1], arrays, strict=True)))  # type: ignore[arg-type]


def placeholder_for(spec: Spec, name: str | None = None) -> ProgramValue:
    """Return a value of placeholders with a specification."""

    def leaf(shape: Shape, dtype: str) -> PositionalArray:
        return input_array(geon.placeholder(axes_for(shape), dtype, name=name))

    if spec.rows is not None:
        rows = leaf((spec.rows,), "int64")
        return SelectedRows(rows, leaf((spec.rows, *spec.shape[1:]), spec.dtype), spec.shape[0])
    whole = leaf(spec.shape, spec.dtype)
    return TensorArray(whole, leaf((), "int64")) if spec.kind == "tensor_array" else whole


def leaf_like(value: ProgramValue) -> ProgramValue:
    """Return placeholders over the axes of a value."""
    return rebuilt(value, [geon.placeholder(p.tensor.axes, p.dtype) for p in parts(value)])


def constant(number: float, shape: Shape, dtype: Any) -> PositionalArray:
    """Return a value of equal elements, also of an open shape."""
    return expand(host(np.asarray(number, named_dtype(str(dtype)))), shape)


def chosen(condition: Value, x: Value, other: Any) -> Value:
    """Return x where a condition on its first dimensions is true, else a value or a number."""
    mask = unsqueeze(condition, range(len(condition.shape), len(x.shape)))
    y = host(np.asarray(other, x.dtype)) if np.isscalar(other) else other
    return elementwise(geon.where, mask, x, y)


def zeros_like(value: ProgramValue) -> ProgramValue:
    """Return a value with zeros for its elements, and its own rows or length."""
    first, *rest = parts(value)
    zeros = geon.broadcast(geon.constant(0, dtype=first.dtype), first.tensor.axes)
    return rebuilt(value, [zeros, *[part.tensor for part in rest]])


def added(values: Sequence[ProgramValue]) -> ProgramValue:
    """Return the sum of values; that of selected rows alone stays selected."""
    rows = [value for value in values if isinstance(value, SelectedRows)]
    arrays = [value for value in values if isinstance(value, TensorArray)]
    if arrays:
        return replace(arrays[0], values=chain(geon.add, [each.values for each in arrays]))
    if len(rows) == len(values):
        every = concat([v.rows for v in rows], 0), concat([v.values for v in rows], 0)
        return SelectedRows(*every, rows[0].height)
    total = chain(geon.add, [v for v in values if isinstance(v, PositionalArray)])
    for each in rows:
        total = each.added_to(total)
    return as_array(total)


def as_value(result: Any) -> ProgramValue:
    """Return a result of an operator's function as a value.

    The dimensions of a geon tensor are its axes in their order.
    """
    if isinstance(result, (SelectedRows, TensorArray)):
        return result
    return array(result, result.axes) if isinstance(result, Tensor) else as_array(result)


def by_dimension(value: Value) -> Tensor:
    """Return a tensor with the axes d0, d1, ... for its dimensions, also for those of length 1."""
    full = full_tensor(value)
    names: dict[Any, Any] = {old: f"d{k}" for k, old in enumerate(full.axes.names)}
    changed = {old: new for old, new in names.items() if old != new}
    return full.rename(changed) if changed else full
