"""The same graph with every float dtype raised to float64."""

import numpy as np

import geon
from geon.op_graph.building.constants import constant_value
from geon.op_graph.op_graph import ComputationOp, Leaf, intern, post_order
from geon.op_graph.values.dtypes import kind

WIDE = np.dtype(np.float64)


def raised(ops):
    """The ops in float64, and the new leaf of each placeholder and variable of theirs."""
    made, leaves = {}, {}
    for op in post_order(ops):
        made[op] = _raised(op, [made[arg] for arg in op.args], leaves)
    return [made[op] for op in ops], leaves


def _raised(op, args, leaves):
    is_float = kind(op.dtype) == "f"
    dtype = WIDE if is_float else op.dtype
    if isinstance(op, Leaf):
        if not is_float:
            leaves[op] = op
        elif op.info.stored:
            leaves[op] = geon.Variable(op.axes, dtype, initial_value=_zeros(op))
        else:
            leaves[op] = geon.placeholder(op.axes, dtype)
        return leaves[op]
    if op.primitive.name == "constant" and is_float:
        return geon.constant(np.asarray(constant_value(op)).astype(WIDE), op.axes)
    if not is_float and all(new is old for new, old in zip(args, op.args, strict=True)):
        return op
    attrs = op.attrs
    if is_float and op.primitive.name in ("cast", "iota"):
        attrs = attrs._replace(dtype=WIDE.name)
    return intern(ComputationOp, op.primitive, tuple(args), attrs, op.axes, dtype, weak=op.weak,
                  guards=op.guards)  # fmt: skip


def _zeros(op):
    return np.zeros([axis.length for axis in op.axes]) if len(op.axes) else 0.0
