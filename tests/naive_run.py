"""What running results means, straight from the description of effects: one op at a time, in order.

It uses the naive interpreter for values and nothing of how geon turns effects into values.
"""

import numpy as np

from geon.op_graph.evaluation.interpreter import BoundOp, interpret
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.rows.slicing import index_of


def naive_run(results, leaves, lengths):
    """The value of each result (None for an effect), and of each assigned leaf afterwards."""
    run = _Run(lengths)
    values, writes = [], []
    for result in results:
        value, own = run.step(result, leaves)
        values.append(value if isinstance(result, Tensor) else None)
        writes += own
    return values, landed(leaves, writes)


def landed(leaves, writes):
    """The leaves that are written, after the writes in order."""
    after = {}
    for leaf, indices, value in writes:
        whole = after.setdefault(leaf, np.array(leaves[leaf]))
        part = whole
        for index in indices:
            part = part[(*index, ...)]
        part[...] = value
    return after


class _Run:
    def __init__(self, lengths):
        self.lengths = lengths

    def value(self, op, leaves):
        return interpret([op], leaves, self.lengths)[op]

    def step(self, op, leaves):
        """The value of an op where leaves have these values, and what it writes."""
        name = op.primitive.name
        if name == "assign":
            target, value = op.args
            return None, [(*self.place(target, leaves), self.value(value, leaves))]
        if name == "doall":
            return None, [write for inner in op.args for write in self.step(inner, leaves)[1]]
        if name == "with_effect":
            x, *others = op.args
            value, writes = self.step(x, leaves)
            return value, writes + [write for e in others for write in self.step(e, leaves)[1]]
        if name == "sequential":
            value, writes, now = None, [], dict(leaves)
            for inner in op.args:
                value, own = self.step(inner, now)
                now.update(landed(now, own))
                writes += own
            return value, writes
        return self.value(op, leaves), []

    def place(self, target, leaves):
        """The leaf below a slice of slices, and the index of each, outermost first."""
        indices = []
        while not isinstance(target, Leaf):
            inner = target.args[0]
            below = BoundOp(inner, self.lengths, ())
            positions = tuple(self.value(p, leaves) for p in target.args[1:])
            indices.append(index_of(BoundOp(target, self.lengths, (below,)), positions))
            target = inner
        return target, indices[::-1]
