"""Reducers: reductions as scalar code (state, identity, step, combine, finish) for all targets.

A reducer has a state of one or more scalars. It takes elements one by one (``step``), joins the
states of two parts (``combine``), and says what a state means in the end (``finish``). Each of
these is written through a builder of scalar code, ``Code``: NumPy computes what it is asked for,
targets write text. The order of elements and parts is free: positions, where a reducer asks for
them, are given with the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..values.dtypes import BOOL, FLOAT64, INT64, DType, accumulator, kind
from .elementwise import (
    add,
    divide,
    equal,
    exp,
    greater_equal,
    isnan,
    less,
    less_equal,
    log,
    maximum,
    minimum,
    multiply,
    subtract,
    where,
)
from .logic import logical_and, logical_not, logical_or

Scalar = Any  # what the builder makes; each has a ``dtype``
State = tuple[Scalar, ...]


class Code(Protocol):
    """What builds scalar code."""

    def apply(self, row: Any, *operands: Scalar) -> Scalar:
        """An elementwise row of operands, which have the dtypes that it takes."""

    def cast(self, x: Scalar, dtype: DType) -> Scalar:
        """``x`` in another dtype, as the row ``cast``."""

    def number(self, value: Any, dtype: DType) -> Scalar:
        """A constant."""


@dataclass(frozen=True)
class Reducer:
    """A reduction as data.

    ``states(element, result)`` are the dtypes of its state for elements of one dtype and a result
    of another; ``identity(dtypes)`` the values of a state that has seen nothing, which combining
    with another does not change. ``step(code, state, element, position)`` takes one more element,
    ``combine(code, state, other)`` joins two states, and ``finish(code, state)`` gives the results,
    the value of a row first, in dtypes that need not be the row's. ``position`` is that of the
    element, row-major over the reduced axes as int64, and None where the reducer does not have
    ``positions``. ``place`` is the number of the part of the state that is one of these positions
    or 0: where they are few, loops hold that part, and positions, in int32. ``empty`` tells
    whether nothing has a value. ``folds`` is the elementwise row that both step and combine are,
    where one is.

    Where ``first`` is given, ``first(code, element, position)`` is the state of one element, and
    ``further``, which takes what ``step`` does, a shorter step for an element whose position is
    behind those of all before; a state that has seen nothing takes it, too.
    """

    states: Callable[[DType, DType], tuple[DType, ...]]
    identity: Callable[[tuple[DType, ...]], tuple[Any, ...]]
    step: Callable[[Code, State, Scalar, Scalar], State]
    combine: Callable[[Code, State, State], State]
    finish: Callable[[Code, State], State]
    positions: bool = False
    place: int | None = None
    empty: bool = True
    folds: Any = None  # the elementwise row that is both step and combine, where one is
    first: Callable[[Code, Scalar, Scalar], State] | None = None
    further: Callable[[Code, State, Scalar, Scalar], State] | None = None


def lowest(dtype: DType) -> Any:
    """The number of a dtype that no other is below."""
    if kind(dtype) == "f":
        return -np.inf
    return False if dtype is BOOL else np.iinfo(dtype).min


def highest(dtype: DType) -> Any:
    """The number of a dtype that no other is above."""
    if kind(dtype) == "f":
        return np.inf
    return True if dtype is BOOL else np.iinfo(dtype).max


def in_order(reducer: Reducer) -> Reducer:
    """A reducer where each element's position is behind those of all before in its state."""
    return reducer if reducer.further is None else replace(reducer, step=reducer.further)


def _result(element: DType, result: DType) -> tuple[DType, ...]:
    """Return the dtype that holds the result meanwhile: that of the result, float32 for halves."""
    return (accumulator(result) if kind(result) == "f" else result,)


def _itself(code: Code, state: State) -> State:
    return state


def folding(row: Any, identity: Callable[[DType], Any], empty: bool = True) -> Reducer:
    """The reducer of an elementwise row of two operands whose order is free."""

    def step(code: Code, state: State, element: Scalar, position: Scalar) -> State:
        return (code.apply(row, state[0], code.cast(element, state[0].dtype)),)

    def combine(code: Code, state: State, other: State) -> State:
        return (code.apply(row, state[0], other[0]),)

    def start(dtypes: tuple[DType, ...]) -> tuple[Any, ...]:
        return (identity(dtypes[0]),)

    return Reducer(_result, start, step, combine, _itself, empty=empty, folds=row)


SUM = folding(add, lambda dtype: 0)
PROD = folding(multiply, lambda dtype: 1)
MAX = folding(maximum, lowest, empty=False)
MIN = folding(minimum, highest, empty=False)


def _takes(code: Code, element: Scalar, value: Scalar, before: Any) -> Scalar:
    """Whether a later element comes before the value found so far; NaN is before all others."""
    takes = code.apply(logical_not, code.apply(before, element, value))
    if kind(value.dtype) != "f":
        return takes
    return code.apply(logical_and, takes, code.apply(equal, value, value))


def _first_max(code: Code, element: Scalar, position: Scalar) -> State:
    return (element,)


def _further_max(code: Code, state: State, element: Scalar, position: Scalar) -> State:
    takes = _takes(code, element, state[0], less_equal)
    return (code.apply(where, takes, element, state[0]),)


# The largest element, chosen by the same comparisons as its position.
FIRST_MAX = replace(MAX, first=_first_max, further=_further_max)
ANY = folding(logical_or, lambda dtype: False)
ALL = folding(logical_and, lambda dtype: True)


# The position of an extreme -----------------------------------------------------------------------


def _extreme(first: Any, no_later: Any, identity: Callable[[DType], Any]) -> Reducer:
    """The position of the first element that ``first`` puts before all others; NaN is before all.

    Where elements tie, the lowest position wins, so the order of elements is free. ``no_later`` is
    the row that says of two elements that the second comes no later than the first. A state that
    has seen nothing has position 0: if its value is what is found, all elements have that one.
    """

    def chosen(code: Code, state: State, other: State) -> State:
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

    def step(code: Code, state: State, element: Scalar, position: Scalar) -> State:
        return chosen(code, state, (element, position))

    def further(code: Code, state: State, element: Scalar, position: Scalar) -> State:
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


# Several scalars at once --------------------------------------------------------------------------


def _moments_step(code: Code, state: State, element: Scalar, position: Scalar) -> State:
    count, mean, spread = state
    x = code.cast(element, mean.dtype)
    count = code.apply(add, count, code.number(1, INT64))
    away = code.apply(subtract, x, mean)
    mean = code.apply(add, mean, code.apply(divide, away, code.cast(count, mean.dtype)))
    square = code.apply(multiply, away, code.apply(subtract, x, mean))
    return count, mean, code.apply(add, spread, square)


def _moments_combine(code: Code, state: State, other: State) -> State:
    # Chan, Golub and LeVeque (1979): the mean moves by the other's share of the distance.
    (n, mean, spread), (m, other_mean, other_spread) = state, other
    dtype = mean.dtype
    total = code.apply(add, n, m)
    several = code.cast(code.apply(maximum, total, code.number(1, INT64)), dtype)
    share = code.apply(divide, code.cast(m, dtype), several)
    away = code.apply(subtract, other_mean, mean)
    square = code.apply(multiply, code.apply(multiply, away, away), code.cast(n, dtype))
    joined = code.apply(add, spread, other_spread)
    return (
        total,
        code.apply(add, mean, code.apply(multiply, away, share)),
        code.apply(add, joined, code.apply(multiply, square, share)),
    )


def _moments_finish(code: Code, state: State) -> State:
    count, mean, spread = state
    variance = code.apply(divide, spread, code.cast(count, spread.dtype))
    none = code.apply(equal, count, code.number(0, INT64))
    return code.apply(where, none, variance, mean), variance  # 0 / 0 where there is no element


# The mean and the variance in one pass: how many, their mean, the sum of squared distances from it.
# In float64, so that its error does not grow with their number. Neither is finite where an element
# is infinite.
MOMENTS = Reducer(
    lambda element, result: (INT64, FLOAT64, FLOAT64),
    lambda dtypes: (0, 0, 0),
    _moments_step,
    _moments_combine,
    _moments_finish,
)


def _exponential(code: Code, x: Scalar, largest: Scalar) -> Scalar:
    """exp(x - largest), which is 1 where both are infinite."""
    same = code.apply(equal, x, largest)
    away = code.apply(subtract, x, largest)
    return code.apply(exp, code.apply(where, same, code.number(0, x.dtype), away))


def _exponentials_combine(code: Code, state: State, other: State) -> State:
    (x, total), (y, other_total) = state, other
    largest = code.apply(maximum, x, y)
    shares = [code.cast(_exponential(code, each, largest), total.dtype) for each in (x, y)]
    return largest, code.apply(
        add,
        code.apply(multiply, total, shares[0]),
        code.apply(multiply, other_total, shares[1]),
    )


def _exponentials_step(code: Code, state: State, element: Scalar, position: Scalar) -> State:
    x = code.cast(element, state[0].dtype)
    return _exponentials_combine(code, state, (x, code.number(1, state[1].dtype)))


def _exponentials_finish(code: Code, state: State) -> State:
    return (code.apply(add, code.cast(state[0], state[1].dtype), code.apply(log, state[1])),)


# log(sum(exp(x))) in one pass: the largest so far, and the sum of exp(x - largest) in float64.
LOG_SUM_EXP = Reducer(
    lambda element, result: (*_result(element, result), FLOAT64),
    lambda dtypes: (-np.inf, 0),
    _exponentials_step,
    _exponentials_combine,
    _exponentials_finish,
)


def _nan_step(code: Code, state: State, element: Scalar, position: Scalar) -> State:
    return (code.apply(logical_or, state[0], code.apply(isnan, element)),)


# Whether any element is no number.
ANY_NAN = Reducer(
    lambda element, result: (BOOL,),
    lambda dtypes: (False,),
    _nan_step,
    ANY.combine,
    _itself,
)
