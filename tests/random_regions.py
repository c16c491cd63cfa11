"""Steps of random graphs that are loops and branches, which move elements."""

import geon
from geon.op_graph.values.dtypes import kind


def delayed(b):
    """Each place along an axis has what the place before it had, by a loop; and the last one."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    axis = b.choice(x.axes)
    rest = [each for each in x.axes if each is not axis]
    turned = b.some(rest, most=1)

    def step(carry, each):
        return geon.flip(each, turned), carry

    first = geon.broadcast(geon.cast(0, x.op.dtype), rest)
    reverse = b.choice([False, True])
    last, seen = geon.scan(step, first, x.op, over=axis, reverse=reverse)
    b.moved(seen, x)
    b.moved(last, x)


def branch(b):
    """One of two, by a number of the graph or a fixed one."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    number = b.pick(lambda v: v.exact and not len(v.axes) and kind(v.op.dtype) == "i")
    index = b.choice([0, 1, 7]) if number is None else number.op
    turned = b.some(x.axes, least=1, most=1)
    b.moved(geon.case_of(index, [lambda: x.op, lambda: geon.flip(x.op, turned)], lambda: x.op), x)


def turned(b):
    """A value turned a number of times that the graph or a fixed one says, by a loop."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    number = b.pick(lambda v: v.exact and not len(v.axes) and kind(v.op.dtype) == "i")
    steps = geon.constant(b.choice([0, 1, 3])) if number is None else geon.mod(number.op, 5)
    axes = b.some(x.axes, least=1, most=1)
    limit = b.choice([None, 2, 40])
    last, _ = geon.while_loop(
        lambda c: c[1] > 0,
        lambda c: (geon.flip(c[0], axes), c[1] - 1),
        (x.op, geon.cast(steps, "int64")),
        limit,
    )
    b.moved(last, x)
