"""Softmax and its logarithm along one axis, recognised in the ops that compute them.

What they were made of is written before, and removed again with all nodes that nothing reads.
"""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOAT32, FLOAT64
from .exporter import Exporter, OnnxValue


def softmax_of(e: Exporter, op: Op) -> tuple[Op, str] | None:
    """Return the argument and the axis of a softmax, or of its logarithm, that ends with ``op``.

    The forms are ``exp(s) / sum(exp(s))`` and ``s - log(sum(exp(s)))`` with ``s = x - max(x)``.
    None is returned if an op inside has further readers, which would compute it again.
    """
    first, last = op.args
    total = last
    if op.primitive.name == "subtract":
        if not _is(e, last, "log"):
            return None
        total = last.args[0]
    if not _is(e, total, "sum"):
        return None
    powers = total.args[0]
    if powers.primitive.name != "exp" or len(total.attrs.reduced) != 1:
        return None
    shifted = powers.args[0]
    inner = powers if op.primitive.name == "divide" else shifted
    if first is not inner or shifted.primitive.name != "subtract":
        return None
    once = shifted if inner is powers else powers
    if e.uses[inner] != 2 or e.uses[once] != 1:
        return None
    x, largest = shifted.args
    while largest.primitive.name == "stop_gradient":
        largest = largest.args[0]
    if not _is(e, largest, "max") or largest.args[0] is not x or x.dtype not in (FLOAT32, FLOAT64):
        return None
    same = largest.attrs.reduced == total.attrs.reduced
    return (x, total.attrs.reduced[0]) if same else None


def _is(e: Exporter, op: Op, name: str) -> bool:
    """Return True for an op of this primitive with one reader."""
    return op.primitive.name == name and e.uses[op] == 1


def softmax(e: Exporter, x: Op, axis: str, operator: str) -> OnnxValue:
    """Write a Softmax or LogSoftmax."""
    value = e.complete(x, (axis,))
    made = e.expr(value.name, x.dtype).run(operator, axis=value.order.index(axis))
    return OnnxValue(made.name, value.order)
