"""Reducers whose state is several scalars: mean and variance, and log-sum-exp, each in one pass."""

from __future__ import annotations

import numpy as np

from geon.op_graph.rows.elementwise import (
    add,
    divide,
    equal,
    exp,
    log,
    maximum,
    multiply,
    subtract,
    where,
)
from geon.op_graph.rows.reducers import CodeBuilder, Reducer, Scalar, State
from geon.op_graph.values.dtypes import FLOAT64, INT64, accumulator


def _moments_step(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
    count, mean, spread = state
    x = code.cast(element, mean.dtype)
    count = code.apply(add, count, code.number(1, INT64))
    away = code.apply(subtract, x, mean)
    mean = code.apply(add, mean, code.apply(divide, away, code.cast(count, mean.dtype)))
    square = code.apply(multiply, away, code.apply(subtract, x, mean))
    return count, mean, code.apply(add, spread, square)


def _moments_combine(code: CodeBuilder, state: State, other: State) -> State:
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


def _moments_finish(code: CodeBuilder, state: State) -> State:
    count, mean, spread = state
    variance = code.apply(divide, spread, code.cast(count, spread.dtype))
    none = code.apply(equal, count, code.number(0, INT64))
    return code.apply(where, none, variance, mean), variance  # 0 / 0 where there is no element


# The mean and the variance in one pass. The state is the count, the mean, and the sum of squared
# differences from it, in float64, so that the error does not grow with the count. Neither result is
# finite if an element is infinite.
MOMENTS = Reducer(
    lambda element, result: (INT64, FLOAT64, FLOAT64),
    lambda dtypes: (0, 0, 0),
    _moments_step,
    _moments_combine,
    _moments_finish,
)


def _exponential(code: CodeBuilder, x: Scalar, largest: Scalar) -> Scalar:
    """Return exp(x - largest), which is 1 if both are infinite."""
    same = code.apply(equal, x, largest)
    away = code.apply(subtract, x, largest)
    return code.apply(exp, code.apply(where, same, code.number(0, x.dtype), away))


def _exponentials_combine(code: CodeBuilder, state: State, other: State) -> State:
    (x, total), (y, other_total) = state, other
    largest = code.apply(maximum, x, y)
    shares = [code.cast(_exponential(code, each, largest), total.dtype) for each in (x, y)]
    return largest, code.apply(
        add,
        code.apply(multiply, total, shares[0]),
        code.apply(multiply, other_total, shares[1]),
    )


def _exponentials_step(code: CodeBuilder, state: State, element: Scalar, position: Scalar) -> State:
    x = code.cast(element, state[0].dtype)
    return _exponentials_combine(code, state, (x, code.number(1, state[1].dtype)))


def _exponentials_finish(code: CodeBuilder, state: State) -> State:
    return (code.apply(add, code.cast(state[0], state[1].dtype), code.apply(log, state[1])),)


# log(sum(exp(x))) in one pass: the largest so far, and the sum of exp(x - largest) in float64.
LOG_SUM_EXP = Reducer(
    lambda element, result: (accumulator(result), FLOAT64),
    lambda dtypes: (-np.inf, 0),
    _exponentials_step,
    _exponentials_combine,
    _exponentials_finish,
)
