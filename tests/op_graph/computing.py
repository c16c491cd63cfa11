"""Values of graphs by the naive interpreter, for tests that compile nothing."""

from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import Op
from geon.op_graph.transforms.functionalize import functional


def compute(results, feeds=None, lengths=None):
    """The value of one op, or of each of several run together, for arrays by leaf."""
    listed = [results] if isinstance(results, Op) else list(results)
    pure = functional(listed)
    values = interpret(pure.roots, feeds or {}, lengths or {})
    found = [None if op is None else values[op] for op in pure.outputs]
    return found[0] if isinstance(results, Op) else found


def state_after(results, feeds, lengths=None):
    """The new value of each variable that running the results changes."""
    pure = functional([results] if isinstance(results, Op) else results)
    values = interpret(pure.roots, feeds, lengths or {})
    return {leaf: values[op] for leaf, op in pure.updates.items()}


def shape(axes):
    """The shape of axes whose lengths are integers."""
    return tuple(axis.length for axis in axes)
