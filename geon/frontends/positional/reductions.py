"""Reductions over positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .movement import with_axis
from .values import Value, array, as_array


def reduce(
    f: Callable[..., Any], value: Value, positions: Sequence[int], keep: bool = True
) -> Value:
    """Return ``f(tensor, axes)`` over these positions, which stay with length 1 if ``keep``."""
    given = as_array(value)
    axes = [given.dims[k] for k in positions]
    result = f(given.tensor, [axis for axis in axes if axis is not None])
    dims = [
        None if k in positions else dim
        for k, dim in enumerate(given.dims)
        if keep or k not in positions
    ]
    return array(result, dims)


def along(f: Callable[..., Any], value: Value, positions: Sequence[int]) -> Value:
    """Return ``f(tensor, axes)`` that keeps all axes, such as a softmax over positions."""
    given = as_array(value)
    axes = [axis for axis in [given.dims[k] for k in positions] if axis is not None]
    return array(f(given.tensor, axes), given.dims)


def along_axis(f: Callable[..., Any], value: Value, position: int) -> Value:
    """Return ``f(tensor, axis)`` that keeps all axes, also where the length is 1."""
    given = with_axis(as_array(value), position)
    return array(f(given.tensor, given.dims[position]), given.dims)
