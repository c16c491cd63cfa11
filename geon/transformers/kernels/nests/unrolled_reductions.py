"""Unrolled reductions: reductions over few elements as straight-line scalar code.

They are those over positions inside windows, and over the windows that contain an element. As
scalar code they are elements like any other: neighbours share common subexpressions, index set
splitting decides guards, and the contiguous loop is innermost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.axes.axes import Axis
from ....op_graph.axes.index_map import Index, identity
from ....op_graph.axes.lengths import product
from ....op_graph.core.traversal import reachable
from ....op_graph.op_graph import Op
from ....op_graph.rows.elementwise import multiply
from ....op_graph.values.dtypes import FLOAT32, HALVES, name_of
from ...sizes.limits import LONG_LOOP_TURNS
from ..ir.nest import Fused
from ..ir.scalar_code import Number, Scalar
from .inlining import Elements, OperandInliner
from .nest_outputs import reducer_of, states_of

MAX_UNROLLED_ELEMENTS = LONG_LOOP_TURNS  # maximum elements of an unrolled reduction
# Maximum terms that are added one after another in the sum's own dtype, on every target. The error
# of 32 equal float32 terms is at most 5e-7; blocks of so many cost nothing from memory.
MAX_SERIAL_TERMS = 32


def is_straight(fused: Fused, operands: OperandInliner) -> bool:
    """Return True if all reductions of a nest are short and over windows, so they need no loop.

    Each stored value must have exactly one element per row of the nest.
    """
    if not fused.reductions or not fused.rows:
        return False
    if any(set(op.axes.names) != fused.rows for op in operands.results):
        return False
    return all(is_short(op) and shows_windows(op, operands) for op in fused.reductions)


def is_short(op: Op) -> bool:
    """Return True if a reduction is known to be over 1 to ``MAX_UNROLLED_ELEMENTS`` elements."""
    count = product(axis.expression for axis in reduced_axes(op))
    return isinstance(count, int) and 1 <= count <= MAX_UNROLLED_ELEMENTS


def reduced_axes(op: Op) -> list[Axis]:
    """Return the axes that a reduction iterates over, in the order of its positions."""
    axes = {axis.name: axis for arg in op.args for axis in arg.axes}
    return [axis for axis in axes.values() if axis.name not in op.axes]


def shows_windows(op: Op, operands: OperandInliner) -> bool:
    """Return True if the reduced value is cheap and two axes index one axis of an operand."""
    below = reachable(op.args, lambda each: () if operands.stored(each) else each.args)
    computed = [each for each in below if not operands.stored(each)]
    rows = [each.primitive for each in computed]
    if any(row.cost in ("expensive", "kernel") or row.has_side_effect for row in rows):
        return False
    return any(map(walks_one_axis_by_two, computed))


def walks_one_axis_by_two(op: Op) -> bool:
    """Return True if an op indexes one axis of its argument by two of its axes together."""
    row = op.primitive
    if row.index_map is None or row.kind != "movement":
        return False
    for piece in row.index_map(op, identity(op.axes.names)):
        walked = [*piece.index.values(), *(guard.index for guard in piece.guards)]
        for index in walked:
            if sum(isinstance(atom, str) for atom in index.terms) > 1:
                return True
    return False


def unroll_reduction(elements: Elements, op: Op, index: Index) -> Scalar:
    """Return the result of a reduction at ``index``: chains of ``MAX_SERIAL_TERMS`` elements, then
    combined.

    Elements equal to the identity are skipped, such as padding outside of windows.
    """
    reducer, code, states = reducer_of(op), elements.code, states_of(op)
    start = reducer.identity(states)
    found: list[Any] = []
    taken = 0
    for number, place in enumerate(_places(op)):
        element = _element(elements, op, {**index, **place})
        if reducer.folds is not None and _is_number(element, start[0]):
            continue
        at = code.number(number, states[reducer.place]) if reducer.place is not None else None
        if taken % MAX_SERIAL_TERMS:
            found[-1] = (reducer.further or reducer.step)(code, found[-1], element, at)
        elif reducer.first is not None:
            found.append(reducer.first(code, element, at))
        else:
            state = tuple(map(code.number, start, states))
            found.append(reducer.step(code, state, element, at))
        taken += 1
    if not found:
        found = [tuple(map(code.number, start, states))]
    state = found[0]
    for other in found[1:]:
        state = reducer.combine(code, state, other)
    made: Scalar = code.cast(reducer.finish(code, state)[0], op.dtype)
    return made


def _is_number(value: Scalar, number: Any) -> bool:
    """Return True if a value is this constant, with the same sign of zero."""
    if not isinstance(value, Number) or value.value != number:
        return False
    return bool(number != 0 or math.copysign(1, value.value) == math.copysign(1, number))


def _places(op: Op) -> Iterator[dict[str, AffineIndex]]:
    """Yield the indices of each element that a reduction covers, row-major."""
    axes = reduced_axes(op)
    extents = [axis.expression for axis in axes]
    known = [range(extent) for extent in extents if isinstance(extent, int)]
    for each in itertools.product(*known):
        yield {axis.name: AffineIndex((), at) for axis, at in zip(axes, each, strict=True)}


def _element(elements: Elements, op: Op, index: Index) -> Scalar:
    """Return one element: that of the only argument, or the product of two."""
    code = elements.code
    values = []
    for arg in op.args:
        value = elements.value(arg, {n: index[n] for n in arg.axes.names})
        half = name_of(value.dtype) in HALVES
        values.append(code.cast(value, FLOAT32) if half else value)
    if len(values) == 1:
        return values[0]
    dtype = states_of(op)[0]
    made: Scalar = code.apply(multiply, *[code.cast(value, dtype) for value in values])
    return made
