"""Reductions over few elements without a loop: what is done with one element after the other.

Such are those over the positions inside windows, and over the windows that show an element. As
scalar code they are elements like any other: what neighbours share is one node, guards are decided
where a nest is cut, and the loop over elements that adjoin is the innermost one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ....op_graph.axes.affine import Affine
from ....op_graph.axes.axes import Axis
from ....op_graph.axes.index_map import Index, identity
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.elementwise import multiply
from ....op_graph.values.dtypes import FLOAT32, HALVES, name_of
from ..ir.nest import Fused
from ..ir.scalar_code import Number, Scalar
from .inlining import Elements, Operands
from .nest_outputs import reducer_of, states_of

MOST = 64  # elements that one of these goes over
CHAIN = 32  # of them that are taken one after another, so that sums are as exact as others


def is_straight(fused: Fused, operands: Operands) -> bool:
    """Whether the reductions of a nest need no loop: few elements each, which windows show.

    What is stored has an element for each row of the nest, and no more.
    """
    if not fused.reductions or not fused.rows:
        return False
    if any(set(op.axes.names) != fused.rows for op in operands.results):
        return False
    return all(is_short(op) and shows_windows(op, operands) for op in fused.reductions)


def is_short(op: Op) -> bool:
    """Whether a reduction is known to be over few elements."""
    count = product(axis.expression for axis in reduced_axes(op))
    return isinstance(count, int) and 1 <= count <= MOST


def reduced_axes(op: Op) -> list[Axis]:
    """The axes a reduction goes over, in the order of its positions."""
    axes = {axis.name: axis for arg in op.args for axis in arg.axes}
    return [axis for axis in axes.values() if axis.name not in op.axes]


def shows_windows(op: Op, operands: Operands) -> bool:
    """Whether what is reduced is cheap, and shows one axis of some value along two of its own."""
    found = False
    waiting, seen = list(op.args), set(op.args)
    while waiting:
        each = waiting.pop()
        if operands.stored(each):
            continue
        row = each.primitive
        if row.cost in ("expensive", "kernel") or row.acts:
            return False
        found = found or walks_one_axis_by_two(each)
        new = [arg for arg in each.args if arg not in seen]
        seen.update(new)
        waiting += new
    return found


def walks_one_axis_by_two(op: Op) -> bool:
    """Whether an op shows an axis of its argument along two of its axes together."""
    row = op.primitive
    if row.index_map is None or row.kind != "movement":
        return False
    for piece in row.index_map(op, identity(op.axes.names)):
        walked = [*piece.index.values(), *(guard.index for guard in piece.guards)]
        for index in walked:
            if sum(isinstance(atom, str) for atom in index.terms) > 1:
                return True
    return False


def reduced(elements: Elements, op: Op, index: Index) -> Scalar:
    """What a reduction finds at ``index``: stretches of elements in order, then what these gave.

    An element that changes nothing is left out, as the value of what no window shows is.
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
        if taken % CHAIN:
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
    """Whether a value is this constant, and not the zero of the other sign."""
    if not isinstance(value, Number) or value.value != number:
        return False
    return bool(number != 0 or math.copysign(1, value.value) == math.copysign(1, number))


def _places(op: Op) -> Iterator[dict[str, Affine]]:
    """The indices of each element that a reduction goes over, row-major."""
    axes = reduced_axes(op)
    extents = [axis.expression for axis in axes]
    known = [range(extent) for extent in extents if isinstance(extent, int)]
    for each in itertools.product(*known):
        yield {axis.name: Affine((), at) for axis, at in zip(axes, each, strict=True)}


def _element(elements: Elements, op: Op, index: Index) -> Scalar:
    """One element: that of the only argument, or the product of those of two."""
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
