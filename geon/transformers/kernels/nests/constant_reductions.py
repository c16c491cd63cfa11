"""Closed forms of reductions whose elements are all equal, without a loop."""

from __future__ import annotations

from typing import Any

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import product
from ....op_graph.rows.elementwise import greater, multiply, where
from ....op_graph.rows.reducers import State
from ....op_graph.values.dtypes import INT64
from ..ir.loop_variables import variables_of
from ..ir.nest import Pass, Reduction
from ..ir.scalar_code import IndexNumber, LengthNumber, Scalar, ScalarBuilder

KEPT = frozenset({"maximum", "minimum", "logical_or", "logical_and"})  # idempotent: f(x, x) == x


def states_of_same(code: ScalarBuilder, step: Pass) -> list[State] | None:
    """Return the final state of each reduction of a pass whose elements do not vary with its loops.

    Return None if the pass stores or keeps, or needs a loop.
    """
    names = {loop.name for loop in step.loops}
    if step.stores or step.keeps or not step.reductions:
        return None
    if not names.isdisjoint(variables_of(*step.reduced)):
        return None
    count = product(loop.extent for loop in step.loops)
    found = [_state(code, each, count) for each in step.reductions]
    return None if None in found else [state for state in found if state is not None]


def _state(code: ScalarBuilder, reduction: Reduction, count: Size) -> State | None:
    """Return the state after ``count`` equal elements; None if the reducer has no closed form."""
    states, reducer = reduction.states, reduction.reducer
    start = tuple(map(code.number, reducer.identity(states), states))
    if count == 0:
        return start
    value = _value(code, reduction)
    if reduction.folds == "add":
        found: State = (code.apply(multiply, value, _size(code, count, value)),)
    elif reduction.folds in KEPT:
        found = (value,)
    elif reducer.first is not None and isinstance(reduction.position, IndexNumber):
        at = AffineIndex((), reduction.position.index.constant)
        found = reducer.first(code, value, code(IndexNumber, at, reduction.position.dtype))
    else:
        return None
    if isinstance(count, int):
        return found
    some = code.apply(greater, code(LengthNumber, count, INT64), code.number(0, INT64))
    pairs = zip(found, start, strict=True)
    return tuple([code.apply(where, some, one, none) for one, none in pairs])


def _value(code: ScalarBuilder, reduction: Reduction) -> Scalar:
    """Return the element, or the product of two, in the dtype of the state."""
    values: list[Any] = [code.cast(each, reduction.states[0]) for each in reduction.elements]
    made: Scalar = values[0] if len(values) == 1 else code.apply(multiply, *values)
    return made


def _size(code: ScalarBuilder, count: Size, value: Scalar) -> Any:
    """Return ``count`` as a scalar of the dtype of ``value``."""
    if isinstance(count, int):
        return code.number(count, value.dtype)
    return code.cast(code(LengthNumber, count, INT64), value.dtype)
