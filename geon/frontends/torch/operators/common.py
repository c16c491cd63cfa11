"""Conversions of arguments that rows of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...positional import values
from ...positional.elementwise import expand
from ...positional.programs import cast, value_of
from ...positional.values import Value

Builder = Callable[..., Any]
Rows = dict[str, Builder]


def category(dtype: np.dtype[Any]) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return {"b": 0, "i": 1, "u": 1, "c": 3}.get(dtype.kind, 2)


def promoted(operands: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype that PyTorch computes in for tensors, scalar tensors and numbers.

    Within the highest category tensors with dimensions decide, then those without, then numbers.
    """
    groups: list[list[np.dtype[Any]]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, Value):
            groups[0 if operand.shape else 1].append(operand.dtype)
        else:  # a length is an integer
            kind = {bool: "bool", float: "float32", complex: "complex64"}.get(
                type(operand), "int64"
            )
            groups[2].append(np.dtype(kind))
    found = np.dtype(bool)
    for group in filter(None, groups):
        top = max(map(category, group))
        if top > category(found) or group is groups[0]:
            found = np.result_type(*[d for d in group if category(d) == top])
    return found


def filled(number: Any, shape: Sequence[Any], dtype: Any) -> Value:
    """Return a number in a shape."""
    return expand(value_of(number, dtype), shape)


def positions(dims: Any, rank: int) -> list[int]:
    """Return positions from 0 for one dimension, for a list of them, or for all (None or []).

    PyTorch takes 0 and -1 for a scalar, too.
    """
    return values.positions(None if dims == [] or not rank else dims, rank)


def wide(x: Value) -> Value:
    """Return halves as float32, in which PyTorch accumulates."""
    return cast(x, "float32") if category(x.dtype) == 2 and x.dtype.itemsize < 4 else x


def pairs(value: Any, count: int) -> list[int]:
    """Return one number for each of ``count`` dimensions; a single number stands for all."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(n) for n in (listed * count if len(listed) == 1 else listed)]
