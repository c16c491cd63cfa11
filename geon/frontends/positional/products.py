"""Sums of products by labels of positions, and matrix products with batch dimensions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import geon

from ...errors import AxisError
from ...op_graph.axes.lengths import may_equal
from .programs import cast
from .reshaping import transpose
from .values import Dim, PositionalArray, Value, array, as_array, fresh, renamed

Labels = Sequence[Hashable]


def contract(values: Sequence[Value], labels: Sequence[Labels], wanted: Labels) -> Value:
    """Return the sums of products of values over the labels that are not ``wanted``.

    Each value has a label for each position, and ``wanted`` has those of the result. Positions with
    one label have one index; of a value with equal labels the diagonal is read. A length of 1
    stretches. The result has the dtype of the first value. Raises ``AxisError`` for one label of
    different lengths.
    """
    arrays = [as_array(value) for value in values]
    places: dict[Hashable, list[geon.Axis]] = {label: [] for label in wanted}
    for own, each in zip(labels, arrays, strict=True):
        for label, dim in zip(own, each.dims, strict=True):
            places.setdefault(label, []).extend([] if dim is None else [dim])
    names: dict[Hashable, str] = {}
    for label, dims in places.items():
        for dim in dims[1:]:
            if not may_equal(dims[0].expression, dim.expression):
                raise AxisError(
                    f"a product of {' and '.join(map(str, values))}: a dimension that they share "
                    f"is {dims[0].expression} in one operand and {dim.expression} in another; "
                    "lengths must be equal or 1"
                )
        if dims:
            names[label] = fresh(dims[0].name, names.values())
    tensors = [_by_labels(v, own, names) for v, own in zip(arrays, labels, strict=True)]
    result = geon.contract(tensors, [names[label] for label in wanted if label in names])
    return cast(array(result, [names.get(label) for label in wanted]), values[0].dtype)


def _by_labels(value: PositionalArray, labels: Labels, names: dict[Hashable, str]) -> geon.Tensor:
    """Return the tensor with the axes' names of labels; of equal labels, the diagonal."""
    own: list[str | None] = []
    for label, dim in zip(labels, value.dims, strict=True):
        taken = {*names.values(), *[n for n in own if n is not None]}
        name = None if dim is None else names[label]
        own.append(fresh(name, taken) if name in own and name is not None else name)
    tensor = renamed(value, own).tensor
    for label in dict.fromkeys(labels):
        same = [n for n, each in zip(own, labels, strict=True) if each == label and n is not None]
        tensor = geon.diagonal(tensor, same) if len(same) > 1 else tensor
    return tensor


def matmul(x: Value, y: Value) -> Value:
    """Return the product over the last position of ``x`` and the last but one of ``y``.

    Positions before the last two are broadcast. An operand of rank 1 is a row or a column, and its
    position is not in the result. Integers keep their dtype.
    """
    if not x.shape or not y.shape:
        raise AxisError(f"a product of matrices of {x} and {y}: a scalar is no matrix")
    left = as_array(x)
    depth = left.dims[-1]
    like: list[Dim] = [depth] if len(y.shape) == 1 else [*[None] * (len(y.shape) - 2), depth, None]
    right = as_array(y, like)
    lengths = [left.shape[-1], right.shape[-1 if len(right.dims) == 1 else -2]]
    if not may_equal(*lengths):
        raise AxisError(
            f"a product of matrices of {x} and {y}: the summed lengths are {lengths[0]} and "
            f"{lengths[1]}"
        )
    rank = max(len(left.dims), len(right.dims)) - 2
    batch = [list(range(rank - len(v.dims) + 2, rank)) for v in (left, right)]
    row, column = ["row"][: len(left.dims) - 1], ["column"][: len(right.dims) - 1]
    labels = [*batch[0], *row, "depth"], [*batch[1], "depth", *column]
    return contract([left, right], labels, [*range(max(rank, 0)), *row, *column])


def turned(x: Value) -> Value:
    """Return ``x`` with its last two positions exchanged; a vector is unchanged."""
    rank = len(x.shape)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if rank > 1 else x
