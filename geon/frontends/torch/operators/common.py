"""Conversions of arguments that rows of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import elementwise
from ...positional.programs import cast
from ...positional.values import HostArray, PositionalArray, Size, Value, Weight, host, position

VALUES = (PositionalArray, HostArray, Weight)
KINDS = "biuf"  # of dtypes, in the order in which PyTorch promotes categories


def category(dtype: np.dtype[Any]) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats."""
    return {"b": 0, "i": 1, "u": 1}.get(dtype.kind, 2)


def promoted(operands: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype that PyTorch computes in for tensors, scalar tensors and numbers.

    Within the highest category tensors with dimensions decide, then those without, then numbers.
    """
    groups: list[list[np.dtype[Any]]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, VALUES):
            groups[0 if operand.shape else 1].append(operand.dtype)
        else:
            kind = "bool" if isinstance(operand, bool) else "float32"
            is_whole = not isinstance(operand, (bool, float))
            groups[2].append(np.dtype("int64" if is_whole else kind))
    found: np.dtype[Any] | None = None
    for group in groups:
        if not group:
            continue
        top = max(map(category, group))
        if found is None or top > category(found):
            found = np.result_type(*[d for d in group if category(d) == top])
    assert found is not None
    return found


def value_of(operand: Any, dtype: Any) -> Value:
    """Return a tensor, a number or a length as a value of a dtype."""
    given = operand if isinstance(operand, VALUES) else host(operand)
    return cast(given, dtype)


def positions(dims: Any, rank: int) -> list[int]:
    """Return positions from 0 for one dimension, for a list of them, or for all (None or [])."""
    if dims is None or dims == []:
        return list(range(rank))
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    return [position(int(dim), rank) for dim in listed] if rank else []


def wide(value: Value) -> Value:
    """Return halves as float32, in which PyTorch accumulates."""
    return (
        cast(value, "float32") if category(value.dtype) == 2 and value.dtype.itemsize < 4 else value
    )


def unary(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a function of one tensor, computed in the dtype of its result."""

    def build(x: Value, *, result: Any) -> Value:
        dtype = x.dtype if result.dtype.kind == "b" else result.dtype
        return elementwise(f, cast(x, dtype))

    return build


def pairs(value: Any, count: int) -> list[int]:
    """Return one number for each of ``count`` dimensions; a single number stands for all."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(n) for n in (listed * count if len(listed) == 1 else listed)]


def sizes(shape: Sequence[Any]) -> list[Size]:
    """Return lengths as integers or length expressions."""
    return [int(n) if isinstance(n, (int, np.integer)) else n for n in shape]


def filled(number: Any, shape: Sequence[Size], dtype: Any) -> Value:
    """Return a number in a shape."""
    from ...positional.elementwise import expand

    return expand(value_of(number, dtype), list(shape))


def scalar_tensor(value: Value) -> geon.Tensor:
    """Return a value without dimensions as a tensor."""
    from ...positional.values import as_array

    return as_array(value).tensor
