"""Matrix products with batch dimensions."""

from __future__ import annotations

import geon

from ...errors import AxisError
from ...op_graph.axes.lengths import may_equal
from .elementwise import common_names
from .values import Dim, PositionalArray, Value, array, as_array, fresh, renamed


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
    inner = right.dims[-1 if len(right.dims) == 1 else -2]
    lengths = [1 if dim is None else dim.expression for dim in (depth, inner)]
    if not may_equal(*lengths):
        raise AxisError(
            f"a product of matrices of {x} and {y}: the summed lengths are {lengths[0]} and "
            f"{lengths[1]}"
        )
    rows: tuple[Dim, ...] = left.dims[-2:-1]
    columns: tuple[Dim, ...] = right.dims[-1:] if len(right.dims) > 1 else ()
    names = _batch_names(left.dims[:-2], right.dims[:-2])
    return _contracted(names, (left, right), rows, columns, (depth, inner))


def _batch_names(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> list[str | None]:
    """Return the names of the batch positions, aligned from the right."""
    rank = max(len(left), len(right))
    nothing = geon.constant(0)
    wide = [PositionalArray(nothing, (None,) * (rank - len(dims)) + dims) for dims in (left, right)]
    return common_names(wide)


def _contracted(
    names: list[str | None],
    given: tuple[PositionalArray, PositionalArray],
    rows: tuple[Dim, ...],
    columns: tuple[Dim, ...],
    summed: tuple[Dim, Dim],
) -> Value:
    """Give each axis of both operands a name of its role, and contract."""
    taken = [n for n in names if n is not None]

    def name(dim: Dim) -> str | None:
        if dim is None:
            return None
        taken.append(fresh(dim.name, taken))
        return taken[-1]

    row = [name(dim) for dim in rows]
    column = [name(dim) for dim in columns]
    depth = name(summed[0] if summed[0] is not None else summed[1])
    left, right = given
    tensors = []
    for value, tail in ((left, [*row, depth]), (right, [depth, *column])):
        count = len(value.dims) - len(tail)
        pattern = [*(names[len(names) - count :] if count > 0 else []), *tail]
        own = [None if d is None else n for d, n in zip(value.dims, pattern, strict=True)]
        tensors.append(renamed(value, own).tensor)
    dims = [*names, *row, *column]
    result = geon.contract(tensors, [n for n in dims if n is not None])
    dtype = left.dtype
    return array(geon.cast(result, dtype) if result.dtype != dtype else result, dims)
