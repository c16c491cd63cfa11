"""Lowerings for targets that print loops: those of all, less what their text computes by itself."""

from __future__ import annotations

from typing import Any

from ....op_graph.axes.lengths import Length
from ....op_graph.building.constants import scalar_value
from ....op_graph.op_graph import NO_AXES, ComputationOp, Op, Tensor, intern
from ....op_graph.rewriting.driver import Rules
from ....op_graph.rows.concatenation import PAD
from ....op_graph.rows.elementwise import divide, multiply
from ....op_graph.rows.movement import broadcast, flatten
from ....op_graph.rows.reductions import MAX, MIN, SUM
from . import lowering_rules

lower = Rules("lowering for loops")
last = Rules("last, for loops")


@lower.on("update")
def update_of_a_constant(op: Op) -> Op | None:
    """One constant with a part replaced is that part with a border, which needs no memory."""
    fill = _everywhere(op.args[0])
    widths: list[tuple[int | Length, int | Length] | None] = []
    if fill is None:
        return None
    for axis, item in zip(op.axes, op.attrs[0], strict=True):
        if item is None:
            widths.append(None)
        elif item[0] == "range" and item[3] == 1:
            widths.append((item[1], axis.expression - item[2]))
        elif item[0] == "at":
            widths.append((item[1], axis.expression - 1 - item[1]))
        else:
            return None
    part: Any = op.args[1]
    whole = [
        axis if item is None else axis.with_length(item[2] - item[1] if item[0] == "range" else 1)
        for axis, item in zip(op.axes, op.attrs[0], strict=True)
    ]
    placed = broadcast(part, whole)
    return intern(ComputationOp, PAD, (placed, fill), (tuple(widths),), op.axes, op.dtype)


@lower.on("argmax", "argmin")
def position_over_neighbours(op: Op) -> Op | None:
    """The position over several axes that adjoin in memory is one over all of them flattened, which
    libraries have a way of their own for, as over one. In another order they would need a copy.
    """
    x: Any = op.args[0]
    names = op.attrs[0]
    if not 1 < len(names) < len(x.axes) or names != x.axes.names[-len(names) :]:
        return None
    if x.primitive.name == "reorder":
        return None
    kept, group = x.axes.without(names), x.axes.only(names)
    whole = lowering_rules.joined(group, kept)
    attrs = ((whole.name,),)
    flat = flatten(x, group, whole)
    return intern(ComputationOp, op.primitive, (flat,), attrs, op.axes, op.dtype, guards=op.guards)


@last.on("checked")
def extremes_of_positions(op: Op) -> Op | None:
    """The smallest and the largest position are what is looked at: reductions, as all others are.

    So the pass that computes positions finds them, on all threads. Last, since the rules of views
    look for what is checked.
    """
    x = op.args[0]
    if len(op.args) > 1 or not len(x.axes):
        return None
    low, high = (
        intern(ComputationOp, row, (x,), (x.axes.names,), NO_AXES, x.dtype) for row in (MIN, MAX)
    )
    return intern(ComputationOp, op.primitive, (x, low, high), op.attrs, op.axes, op.dtype)


@last.on("divide")
def softmax(op: Op) -> Op | None:
    """A softmax divides each row once: exp(x - max(x)) times 1 / sum.

    The sum is at least exp(0) and at most the number of elements, so the reciprocal neither
    overflows nor loses digits; a product costs a third of a division. Last, since a logarithm of
    the quotient has a form of its own that is exact however far out.
    """
    powers, total = op.args
    if powers.primitive.name != "exp" or total.primitive is not SUM or total.args[0] is not powers:
        return None
    shifted = powers.args[0]
    if shifted.primitive.name != "subtract":
        return None
    x, largest = shifted.args
    if largest.primitive.name == "stop_gradient":
        largest = largest.args[0]
    if largest.primitive is not MAX or largest.args[0] is not x or largest.attrs != total.attrs:
        return None
    return multiply.apply(powers, divide.apply(1, total))


def _everywhere(op: Op) -> Tensor | None:
    """The scalar constant that ``op`` is at each of its elements; None where it is more."""
    while op.primitive.name in ("broadcast", "reorder"):
        op = op.args[0]
    if op.primitive.name == "cast":
        inner = _everywhere(op.args[0])
        return None if inner is None else lowering_rules.cast(inner, op.dtype)
    return op if isinstance(op, Tensor) and scalar_value(op) is not None else None


# What the tables of the C family have as a function of its own needs no formula.
RULES = (
    lowering_rules.RULES.without(
        lowering_rules.erf, lowering_rules._through_formula, lowering_rules.position_over_several
    )
    | lower.done()
)
LAST = last.done()
