"""Shapes as values, constants, and tensors made from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

from ....errors import AxisError
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import DType
from ...positional.elementwise import elementwise, expand
from ...positional.folding import MAX_FOLDED_ELEMENTS
from ...positional.functions import arange
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reshaping import reshape, squeeze, unsqueeze
from ...positional.values import (
    HostArray,
    Size,
    Value,
    as_array,
    host,
    known,
    position,
)
from ..table import row


def lengths_value(lengths: Sequence[Size]) -> HostArray:
    """Return a vector of lengths, which may be expressions."""
    vector = np.empty(len(lengths), object)
    vector[:] = lengths
    return host(vector, "int64")


def shape_of(x: Value, /, *, start: int = 0, end: int | None = None) -> Value:
    """Return the lengths of the positions from ``start`` to ``end``."""
    return lengths_value(list(x.shape)[slice(start, end)])


def size_of(x: Value, /) -> Value:
    """Return the number of elements."""
    whole = lengths_value([product(x.shape)])
    return HostArray(whole.array.reshape(()), whole.dtype)


def reshape_to(x: Value, shape: Sequence[Size], /, *, allowzero: int = 0) -> Value:
    """Return ``x`` in a shape; 0 keeps a length unless ``allowzero``, -1 is what is left."""
    own, kept = x.shape, []
    for number, length in enumerate(shape):
        if isinstance(length, int) and length == 0 and not allowzero:
            if number >= len(own):
                raise AxisError(f"the shape {list(shape)} keeps dimension {number}; {x} has none")
            length = own[number]
        kept.append(length)
    return reshape(x, kept)


def flatten(x: Value, /, *, axis: int = 1) -> Value:
    """Return a matrix: the positions before ``axis`` are its rows."""
    rank = len(x.shape)
    first = axis if axis == rank else position(axis, rank)
    lengths = as_array(x).shape
    return reshape(x, [product(lengths[:first]), product(lengths[first:])])


def constant(
    *,
    value: HostArray | None = None,
    sparse_value: HostArray | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Value:
    """Return a constant from the one attribute that is there."""
    choices: list[tuple[Any, Any]] = [
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_int, "int64"),
        (value_ints, "int64"),
        (value_string, object),
        (value_strings, object),
    ]
    for given, dtype in choices:
        if given is not None:
            return host(np.array(given, dtype))
    found = value if value is not None else sparse_value
    if found is None:
        raise AxisError("a constant needs one attribute with its value")
    return found


def constant_of_shape(shape: Sequence[Size], /, *, value: HostArray | None = None) -> Value:
    """Return a tensor of a shape with one value everywhere, 0.0 by default."""
    fill = host(np.zeros((), "float32")) if value is None else value
    scalar = fill.array.reshape(())
    count = product(shape)
    if isinstance(count, int) and count <= MAX_FOLDED_ELEMENTS:
        return host(np.full([int(n) for n in shape], scalar))
    return expand(HostArray(scalar, fill.dtype), shape)


def range_of(start: Value, limit: Value, delta: Value, /) -> Value:
    """Return the numbers from ``start`` on in steps of ``delta`` up to, without, ``limit``."""
    bounds = (start, limit, delta)
    first, last, step = [known(v, "a bound of a range").reshape(()).item() for v in bounds]
    return arange(first, last, step, start.dtype, folded=True)


def eye_like(x: Value, /, *, dtype: DType | None = None, k: int = 0) -> Value:
    """Return 1 on the diagonal number ``k``, else 0, in the shape of ``x``."""
    rows, columns = [numbers(n, 2, at) for at, n in enumerate(x.shape)]
    return cast(elementwise(lambda a, b: geon.equal(b - a, k), rows, columns), dtype or x.dtype)


ROWS = [
    row("Shape", shape_of),
    row("Size", size_of),
    row("Reshape", reshape_to, attributes={"shape": 1}),
    row("Flatten", flatten),
    row("Squeeze", squeeze, attributes={"axes": 1}),
    row("Unsqueeze", unsqueeze, attributes={"axes": 1}),
    row("Expand", expand),
    row("Constant", constant),
    row("ConstantOfShape", constant_of_shape),
    row("Range", range_of),
    row("EyeLike", eye_like),
]
