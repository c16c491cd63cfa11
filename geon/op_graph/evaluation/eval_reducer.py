"""NumPy evaluation of reducers, one element at a time: the reference of every reduction."""

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
    """A code builder that computes at once, on arrays with one element for each reduction."""

    def apply(self, row: Any, *operands: Array) -> Array:
        """Return the primitive's reference of the operands."""
        return np.asarray(row.reference(*operands))

    def cast(self, x: Array, dtype: DType) -> Array:
        """Return ``x`` cast by the reference of ``cast``."""
        reference: Any = PRIMITIVES["cast"].reference
        return x if x.dtype == dtype else np.asarray(reference(SimpleNamespace(dtype=dtype), x))

    def number(self, value: Any, dtype: DType) -> Array:
        """Return the number as an array without axes."""
        return np.asarray(value, dtype)


CODE = NumPyCode()


def start(reducer: Reducer, element: DType, result: DType, shape: tuple[int, ...]) -> State:
    """Return initial states, which hold the identity."""
    dtypes = reducer.states(element, result)
    values = reducer.identity(dtypes)
    return tuple(np.full(shape, v, dtype) for v, dtype in zip(values, dtypes, strict=True))


def step_states(reducer: Reducer, state: State, x: Array, numbers: Iterable[int]) -> State:
    """Return the states after the elements of these indices along the last axis of ``x``."""
    for number in numbers:
        position = np.asarray(number, np.int64) if reducer.positions else None
        state = reducer.step(CODE, state, x[..., number], position)
    return state


def eval_reduction(op: Any, x: Array) -> Array:
    """Return the value of a reduction with integer lengths, from the reducer of its primitive."""
    axes = op.args[0].axes
    gone = [axes.index(name) for name in op.attrs.reduced]
    kept = [k for k in range(x.ndim) if k not in gone]
    arranged = x.transpose([*kept, *gone])
    shape, count = arranged.shape[: len(kept)], math.prod(arranged.shape[len(kept) :])
    flat = arranged.reshape(*shape, count)
    reducer: Reducer = op.primitive.reducer
    state = start(reducer, x.dtype, op.dtype, shape)
    return np.asarray(reducer.finish(CODE, step_states(reducer, state, flat, range(count)))[0])
