"""A step of random graphs: loops and branches in each other, and their first derivatives."""

import geon
from geon.op_graph.values.dtypes import kind

DEEPEST = 3  # loops and branches in each other
MOST = 2  # nests of a graph; each is as much work as many other steps
LENGTHS = (3, 2, 1, 0, 5)  # of loops that walk nothing


def nest(b):
    """What a nest gives, and the derivative of that in all it is made of."""
    x = b.pick(lambda v: v.smooth and v.op.dtype.name in ("float32", "float64"))
    if x is None or len(x.axes) > 2 or sum(map(is_nest, b.values)) >= MOST:
        return
    scope = [x.op]
    for _ in range(b.integer(1, 3)):
        other = b.pick(lambda v: v.smooth and v.op.dtype is x.op.dtype)
        scope += [other.op] if len(other.axes) <= 3 and fits(other.op, scope) else []
    leaves = [op for op in dict.fromkeys(scope) if len(op.axes) <= 3]
    made = Nest(b, b.integer(1, DEEPEST)).inner(geon.sin(x.op), scope)
    slopes = geon.deriv(geon.sum(geon.square(made)), leaves, unreached="zero")
    made = geon.sin(made, name="nest")
    b.measured([made, *(slope for slope in slopes if kind(slope.dtype) == "f")])


def is_nest(value):
    """Whether a value is what a nest gave, which its name tells."""
    return value.op.name is not None and value.op.name.startswith("nest")


def fits(op, scope):
    """Whether a value has no axis of another length than one in the scope."""
    return all(
        axis.expression == other.axes[axis.name].expression
        for other in scope
        for axis in op.axes
        if axis in other.axes
    )


def onto(op, like):
    """A value over the axes of another one: summed over its own, the same along those it lacks."""
    extra = [axis for axis in op.axes if axis not in like.axes]
    return geon.broadcast(geon.sum(op, extra) if extra else op, like.axes)


class Nest:
    """Grows values that stay small, over the axes of ``like``, of what is in ``scope``."""

    def __init__(self, b, depth):
        self.b, self.depth = b, depth

    def value(self, like, scope, count=None):
        """Some steps one after another; ``count`` is an integer that branches may follow."""
        kinds = [self.mixed, self.mixed, self.turned, self.summed, self.product, self.drawn]
        for _ in range(self.b.integer(1, 2)):
            like = self.b.choice(kinds)(like, scope)
        if self.depth > 0 and self.b.flag():
            like = self.inner(like, scope, count)
        return like

    def mixed(self, like, scope):
        return geon.sin(like * self.b.choice([0.5, -1.0]) + onto(self.b.choice(scope), like))

    def turned(self, like, scope):
        return geon.flip(like, self.b.some(like.axes, most=1))

    def summed(self, like, scope):
        return geon.tanh(onto(geon.sum(self.b.choice(scope)), like)) * like

    def product(self, like, scope):
        if not len(like.axes):
            return self.mixed(like, scope)
        axis = self.b.choice(like.axes)
        other = geon.cos(onto(self.b.choice(scope), like))
        matrix = geon.outer(geon.multiply, geon.sum(geon.rename(other, {axis: axis.prime}),
                            out_axes=[axis.prime]), geon.sum(other, out_axes=[axis]))  # fmt: skip
        found = geon.rename(geon.dot(matrix, like, over=axis), {axis.prime: axis})
        return geon.tanh(geon.reorder(found, like.axes))

    def drawn(self, like, scope):
        return like * self.b.choice(self.b.streams).uniform(like.axes, 0, 1, like.dtype)

    # Regions ------------------------------------------------------------------------------------

    def inner(self, like, scope, count=None):
        """A loop or a branch over the axes of ``like``."""
        self.depth -= 1
        kinds = [self.scan, self.scan, self.loop, self.branch]
        found = self.b.choice(kinds)(like, scope, count)
        self.depth += 1
        return found

    def scan(self, like, scope, count):
        b = self.b
        walked = [(op, axis) for op in scope for axis in op.axes if axis not in like.axes]
        xs, over = b.choice(walked) if walked else ((), b.new_axis(b.choice(LENGTHS)))
        whole = [xs] if walked and b.flag() else []  # read as a whole in each step too

        def step(carry, part):
            c, n = carry
            known = [*scope, c, *([part] if walked else []), *whole]
            new = self.value(c, known, n)
            return (new, n + 1), (geon.sum(new) if b.flag() else new)

        segments = b.choice([None, None, 2, (2, 2), "sqrt"])
        (last, _), seen = geon.scan(
            step, (like, 0), xs, over=over, reverse=b.flag(), segments=segments
        )
        return geon.sin(last + onto(seen, last)) if b.flag() else last

    def loop(self, like, scope, count):
        steps = self.b.choice([0, 1, 3]) if count is None or self.b.flag() else geon.mod(count, 3)
        last, _ = geon.while_loop(
            lambda c: c[1] < steps,
            lambda c: (self.value(c[0], [*scope, c[0]], c[1]), c[1] + 1),
            (like, 0),
            self.b.choice([None, 2, 40]),
        )
        return last

    def branch(self, like, scope, count):
        index = geon.constant(self.b.choice([0, 1, 7])) if count is None else geon.mod(count, 3)
        branches = [lambda: self.value(like, scope, count), lambda: geon.cos(like)]
        return geon.case_of(index, branches, lambda: like * 0.5)
