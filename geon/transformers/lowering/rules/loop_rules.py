"""Lowering rules for targets that print loops: the general ones, less those they do not need."""

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
from . import lowering_rules, matrix_rules

lower = Rules("lowering for loops")
last = Rules("last, for loops")


@lower.on("update")
def update_of_a_constant(op: Op) -> Op | None:
    """Rewrite an update of a broadcast constant as padding of the part, which needs no memory."""
    fill = _everywhere(op.args[0])
    widths: list[tuple[int | Length, int | Length] | None] = []
    if fill is None:
        return None
    for axis, item in zip(op.axes, op.attrs.items, strict=True):
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
        for axis, item in zip(op.axes, op.attrs.items, strict=True)
    ]
    placed = broadcast(part, whole)
    return intern(ComputationOp, PAD, (placed, fill), (tuple(widths),), op.axes, op.dtype)


@lower.on("argmax", "argmin")
def position_over_neighbours(op: Op) -> Op | None:
    """Rewrite an argmax over several adjacent axes as one over these axes flattened.

    Libraries have a special algorithm for one axis. With another order of axes a copy would be
    needed.
    """
    x: Any = op.args[0]
    names = op.attrs.reduced
    if not 1 < len(names) < len(x.axes) or names != x.axes.names[-len(names) :]:
        return None
    if x.primitive.name == "reorder":
        return None
    kept, group = x.axes.without(names), x.axes.only(names)
    whole = lowering_rules.flattened_axis(group, kept)
    attrs = ((whole.name,),)
    flat = flatten(x, group, whole)
    return intern(ComputationOp, op.primitive, (flat,), attrs, op.axes, op.dtype, guards=op.guards)


@last.on("checked")
def extremes_of_positions(op: Op) -> Op | None:
    """Rewrite a position check as a check of the smallest and the largest position.

    These are reductions, which fuse with the pass that computes the positions, on all threads. The
    rule runs last, because rules of views match unchecked positions.
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
    """Rewrite the division of a softmax as exp(x - max(x)) times 1 / sum, one division per row.

    The sum is at least exp(0) and at most the number of elements, so the reciprocal neither
    overflows nor loses digits; a product costs a third of a division. The rule runs last, since the
    logarithm of the quotient has a form of its own that is exact everywhere.
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
    """Return the scalar constant that ``op`` broadcasts, or None."""
    while op.primitive.name in ("broadcast", "reorder"):
        op = op.args[0]
    if op.primitive.name == "cast":
        inner = _everywhere(op.args[0])
        return None if inner is None else lowering_rules.cast(inner, op.dtype)
    return op if isinstance(op, Tensor) and scalar_value(op) is not None else None


# The C tables have functions for these primitives, so they need no formula.
RULES = (
    lowering_rules.RULES.without(
        lowering_rules.erf, lowering_rules._through_formula, lowering_rules.position_over_several
    )
    | lower.done()
    | matrix_rules.LOOPED
)
LAST = last.done() | matrix_rules.LAST
