"""Reductions over positions.

Positions here, and in all modules of this package, are counted from the end if they are negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .movement import with_axis
from .values import Positions, Value, array, as_array, positions


def reduce(f: Callable[..., Any], value: Value, axes: Positions, keep: bool = True) -> Value:
    """Return ``f(tensor, axes)`` over these positions, which stay with length 1 if ``keep``."""
    given = as_array(value)
    at = positions(axes, len(given.dims))
    result = f(given.tensor, [axis for axis in [given.dims[k] for k in at] if axis is not None])
    dims = [None if k in at else dim for k, dim in enumerate(given.dims) if keep or k not in at]
    return array(result, dims)


def along(f: Callable[..., Any], value: Value, axes: Positions) -> Value:
    """Return ``f(tensor, axes)`` that keeps all axes, such as a softmax over positions."""
    given = as_array(value)
    dims = [given.dims[k] for k in positions(axes, len(given.dims))]
    return array(f(given.tensor, [axis for axis in dims if axis is not None]), given.dims)


def along_axis(f: Callable[..., Any], value: Value, axis: int) -> Value:
    """Return ``f(tensor, axis)`` that keeps all axes, also where the length is 1."""
    given = with_axis(as_array(value), axis)
    return array(f(given.tensor, given.dims[axis]), given.dims)
