"""NumPy evaluation of reducers, an element at a time: the meaning of every reduction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.primitive import PRIMITIVES
from ..rows.reducers import Reducer, State
from ..values.dtypes import DType

Array = np.ndarray[Any, Any]


class NumPyCode:
    """Builds scalar code by computing it, for arrays of states side by side."""

    def apply(self, row: Any, *operands: Array) -> Array:
        """The row's reference."""
        return np.asarray(row.reference(*operands))

    def cast(self, x: Array, dtype: DType) -> Array:
        """The reference of ``cast``."""
        reference: Any = PRIMITIVES["cast"].reference
        return x if x.dtype == dtype else np.asarray(reference(SimpleNamespace(dtype=dtype), x))

    def number(self, value: Any, dtype: DType) -> Array:
        """The number as an array without axes."""
        return np.asarray(value, dtype)


CODE = NumPyCode()


def start(reducer: Reducer, element: DType, result: DType, shape: tuple[int, ...]) -> State:
    """States that have seen nothing."""
    dtypes = reducer.states(element, result)
    values = reducer.identity(dtypes)
    return tuple(np.full(shape, v, dtype) for v, dtype in zip(values, dtypes, strict=True))


def stepped(reducer: Reducer, state: State, x: Array, numbers: Iterable[int]) -> State:
    """States that took the elements of these numbers along the last axis of ``x``."""
    for number in numbers:
        position = np.asarray(number, np.int64) if reducer.positions else None
        state = reducer.step(CODE, state, x[..., number], position)
    return state


def reduced(op: Any, x: Array) -> Array:
    """The value of a reduction, whose lengths are integers, from its row's reducer."""
    axes = op.args[0].axes
    gone = [axes.index(name) for name in op.attrs[0]]
    kept = [k for k in range(x.ndim) if k not in gone]
    moved = x.transpose([*kept, *gone])
    shape, count = moved.shape[: len(kept)], math.prod(moved.shape[len(kept) :])
    flat = moved.reshape(*shape, count)
    reducer: Reducer = op.primitive.reducer
    state = start(reducer, x.dtype, op.dtype, shape)
    return np.asarray(reducer.finish(CODE, stepped(reducer, state, flat, range(count)))[0])
