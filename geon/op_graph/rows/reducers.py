"""Reducers: reductions as scalar code (state, identity, step, combine, finish) for all targets.

A reducer has a state of one or more scalars. ``step`` takes one element, ``combine`` joins the
states of two parts, and ``finish`` computes the results from a state. Each of these is written
against a builder of scalar code, ``CodeBuilder``: NumPy computes at once, targets generate text.
The order of elements and parts is free; a reducer that needs the indices of elements gets them with
the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ...lazy_dataclasses import dataclass
from ..values.dtypes import BOOL, INT64, DType, accumulator, kind
from .elementwise import (
    add,
    equal,
    greater_equal,
    isnan,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    where,
)
from .logic import bitwise_and, bitwise_or, logical_and, logical_not, logical_or

Scalar = Any  # a value of the builder, with an attribute ``dtype``
State = tuple[Scalar, ...]


class CodeBuilder(Protocol):
    """A builder of scalar code."""

    def apply(self, row: Any, *operands: Scalar) -> Scalar:
        """Apply an elementwise primitive to operands, which must have the dtypes that it takes."""

    def cast(self, x: Scalar, dtype: DType) -> Scalar:
        """Return ``x`` in another dtype, as the primitive ``cast`` does."""

    def number(self, value: Any, dtype: DType) -> Scalar:
        """Return a constant."""


@dataclass(frozen=True)
class Reducer:
    """A reduction as data.

    ``states(element, result)`` returns the dtypes of the state for the dtypes of elements and
    result. ``identity(dtypes)`` returns the initial state; combining with it changes nothing.
    ``step(code, state, element, position)`` adds one element. ``combine(code, state, other)`` joins
    two states. ``finish(code, state)`` returns the results, the value of the primitive first; their
    dtypes may differ from the primitive's.

    ``position`` is the row-major index of the element over the reduced axes as int64, or None
    unless the reducer has ``positions``. ``place`` is the number of the scalar of the state that is
    such an index or 0: for short reductions, loops keep that scalar, and positions, in int32.
    ``empty`` is true if a reduction of no elements has a value. ``folds`` is the elementwise
    primitive that is both step and combine, or None.

    If ``first`` is given, ``first(code, element, position)`` returns the state of one element.
    ``further``, with the arguments of ``step``, is a cheaper step for an element whose index is
    above those of all elements before; it may also follow the initial state.
    """

    states: Callable[[DType, DType], tuple[DType, ...]]
    identity: Callable[[tuple[DType, ...]], tuple[Any, ...]]
    step: Callable[[CodeBuilder, State, Scalar, Scalar], State]
    combine: Callable[[CodeBuilder, State, State], State]
    finish: Callable[[CodeBuilder, State], State]
    positions: bool = False
    place: int | None = None
    empty: bool = True
    folds: Any = None
    first: Callable[[CodeBuilder, Scalar, Scalar], State] | None = None
    further: Callable[[CodeBuilder, State, Scalar, Scalar], State] | None = None


def lowest(dtype: DType) -> Any:
    """Return the smallest number of a dtype."""
    if kind(dtype) == "f":
        return -np.inf
    return False if dtype is BOOL else np.iinfo(dtype).min


def highest(dtype: DType) -> Any:
    """Return the largest number of a dtype."""
    if kind(dtype) == "f":
        return np.inf
    return True if dtype is BOOL else np.iinfo(dtype).max


def in_order(reducer: Reducer) -> Reducer:
    """Return the reducer for elements that come in ascending order of their indices."""
    return reducer if reducer.further is None else replace(reducer, step=reducer.further)


def _result(element: DType, result: DType) -> tuple[DType, ...]:
    """Return the dtype of the running result: that of the result, float32 for halves."""
    return (accumulator(result) if kind(result) == "f" else result,)


def _itself(code: CodeBuilder, state: State) -> State:
    return state


def folding(
    row: Any,
    identity: Callable[[DType], Any],
    empty: bool = True,
    *,
    element_first: bool = False,
) -> Reducer:
    """Return the reducer of an associative and commutative elementwise primitive.

    With ``element_first``, the element is operand 0, in which vectors look for NaN: a state there
    would make each step wait for that of the step before.
    """

    def step(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
        operands = (state[0], code.cast(element, state[0].dtype))
        return (code.apply(row, *(reversed(operands) if element_first else operands)),)

    def combine(code: CodeBuilder, state: State, other: State) -> State:
        return (code.apply(row, state[0], other[0]),)

    def start(dtypes: tuple[DType, ...]) -> tuple[Any, ...]:
        return (identity(dtypes[0]),)

    return Reducer(_result, start, step, combine, _itself, empty=empty, folds=row)


SUM = folding(add, lambda dtype: 0)
PROD = folding(multiply, lambda dtype: 1)
MAX = folding(maximum, lowest, empty=False, element_first=True)
MIN = folding(minimum, highest, empty=False, element_first=True)


def _takes(code: CodeBuilder, element: Scalar, value: Scalar, before: Any) -> Scalar:
    """Return whether a later element replaces the value so far; NaN precedes all other values."""
    takes = code.apply(logical_not, code.apply(before, element, value))
    if kind(value.dtype) != "f":
        return takes
    return code.apply(logical_and, takes, code.apply(equal, value, value))


def _first_max(code: CodeBuilder, element: Scalar, position: Scalar) -> State:
    return (element,)


def _further_max(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
    takes = _takes(code, element, state[0], less_equal)
    return (code.apply(where, takes, element, state[0]),)


# The largest element, selected by the same comparisons as its index.
FIRST_MAX = replace(MAX, first=_first_max, further=_further_max)
ANY = folding(logical_or, lambda dtype: False)
ALL = folding(logical_and, lambda dtype: True)
ANY_BITS = folding(bitwise_or, lambda dtype: 0)
ALL_BITS = folding(bitwise_and, lambda dtype: int(~np.zeros((), dtype)))


# The index of an extreme --------------------------------------------------------------------------


def _extreme(first: Any, no_later: Any, identity: Callable[[DType], Any]) -> Reducer:
    """Return the reducer for the index of the element that ``first`` orders before all others.

    NaN precedes all numbers. Among tied elements the lowest index wins, so the order of elements is
    free. ``no_later`` is the primitive that is true of two elements if the second comes no later
    than the first. The initial state has index 0: if its value is the result, all elements have
    that value.
    """

    def chosen(code: CodeBuilder, state: State, other: State) -> State:
        (value, at), (element, position) = state, other
        better = first(code, element, value)
        same = code.apply(equal, element, value)
        if kind(value.dtype) == "f":
            nan, known = code.apply(isnan, element), code.apply(isnan, value)
            better = code.apply(logical_and, better, code.apply(logical_not, known))
            better = code.apply(
                logical_or,
                better,
                code.apply(logical_and, nan, code.apply(logical_not, known)),
            )
            same = code.apply(logical_or, same, code.apply(logical_and, nan, known))
        before = code.apply(logical_and, same, code.apply(less, position, at))
        takes = code.apply(logical_or, better, before)
        return (
            code.apply(where, takes, element, value),
            code.apply(where, takes, position, at),
        )

    def step(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
        return chosen(code, state, (element, position))

    def further(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
        takes = _takes(code, element, state[0], no_later)
        return (
            code.apply(where, takes, element, state[0]),
            code.apply(where, takes, position, state[1]),
        )

    return Reducer(
        lambda element, result: (element, INT64),
        lambda dtypes: (identity(dtypes[0]), 0),
        step,
        chosen,
        lambda code, state: (state[1],),
        positions=True,
        place=1,
        empty=False,
        first=lambda code, element, position: (element, position),
        further=further,
    )


ARGMAX = _extreme(lambda code, x, y: code.apply(less, y, x), less_equal, lowest)
ARGMIN = _extreme(lambda code, x, y: code.apply(less, x, y), greater_equal, highest)


def _nan_step(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
    return (code.apply(logical_or, state[0], code.apply(isnan, element)),)


# True if any element is NaN.
ANY_NAN = Reducer(
    lambda element, result: (BOOL,),
    lambda dtypes: (False,),
    _nan_step,
    ANY.combine,
    _itself,
)
