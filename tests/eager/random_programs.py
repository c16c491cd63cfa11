"""Random eager programs, each step done in two ways: with arrays and by the naive interpreter.

The other way keeps a symbolic expression for each array, over placeholders for data and for
versions of variables, and evaluates it anew, op by op, whenever a value is compared.
"""

import random

import numpy as np

import geon
from geon import eager
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.rows.leaves import input_leaf
from geon.op_graph.transforms.functionalize import functional

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)
UNARY = (
    geon.tanh,
    geon.sigmoid,
    geon.sin,
    geon.negative,
    geon.square,
    lambda x: geon.exp(-geon.square(x)),
)
BINARY = (geon.add, geon.subtract, geon.multiply, geon.maximum)


class Both:
    """An array and the expression that it should equal."""

    def __init__(self, array, expression):
        self.array, self.expression = array, expression


class Program:
    """A random program; ``run`` does its steps and compares what they read."""

    def __init__(self, seed, transformer, steps=25):
        self.random, self.data = random.Random(seed), np.random.default_rng(seed)
        self.transformer, self.steps = transformer, steps
        self.known = {}  # values of the placeholders of expressions
        self.values = []
        self.variables = []
        self.versions = []
        self.compared = 0

    def leaf(self, value, axes):
        """Return a placeholder of this value."""
        fixed = geon.Axes(*[a.with_length(n) for a, n in zip(axes, value.shape, strict=True)])
        made = input_leaf(fixed, value.dtype)
        self.known[made] = value
        return made

    def expected(self, expression):
        """Return the value of an expression, computed op by op."""
        (pure,) = functional([expression]).outputs
        return interpret([pure], self.known, {})[pure]

    def drawn(self, *shape):
        return self.data.normal(size=shape).astype(np.float32)

    def run(self):
        for axes in ((C, H), (H,), (C,)):
            first = self.drawn(*[a.length for a in axes])
            self.variables.append(geon.Variable(axes, initial_value=first))
            self.versions.append(self.leaf(first, axes))
        with eager.use(self.transformer):
            self.add_data()
            for _ in range(self.steps):
                self.random.choice(STEPS)(self)
            for both in self.values:
                self.compare(both)
            for variable, version in zip(self.variables, self.versions, strict=True):
                self.compare(Both(eager.array(variable), version))

    def pick(self):
        return self.random.choice(self.values)

    def put(self, array, expression):
        if len(self.values) > 6:
            del self.values[self.random.randrange(len(self.values))]
        self.values.append(Both(array, expression))

    def compare(self, both):
        want = self.expected(both.expression)
        got = np.asarray(both.array)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
        self.compared += 1

    # Steps --------------------------------------------------------------------------------------

    def add_data(self):
        value = self.drawn(self.random.choice((2, 3, 5)), 3)
        self.put(eager.array(value, [N, C]), self.leaf(value, [N, C]))

    def unary(self):
        both, f = self.pick(), self.random.choice(UNARY)
        self.put(f(both.array), f(both.expression))

    def scaled(self):
        both, number = self.pick(), self.random.choice((0.5, -0.25, self.random.random()))
        self.put(both.array * number, both.expression * number)

    def binary(self):
        left, f = self.pick(), self.random.choice(BINARY)
        names = left.expression.axes
        fitting = [
            v for v in self.values if v.expression.axes is names or not len(v.expression.axes)
        ]
        right = self.random.choice(fitting)
        self.put(f(left.array, right.array), f(left.expression, right.expression))

    def with_variable(self):
        both, k = self.pick(), self.random.randrange(3)
        variable, version = self.variables[k], self.versions[k]
        if any(axis in both.expression.axes for axis in version.axes):
            if k == 0 and "C" in both.expression.axes.names:
                self.put(
                    geon.dot(both.array, variable) * 0.5, geon.dot(both.expression, version) * 0.5
                )
            else:
                self.put(variable + both.array, version + both.expression)

    def reduced(self):
        both = self.pick()
        if len(both.expression.axes):
            axis = self.random.choice(list(both.expression.axes.names))
            f = self.random.choice((geon.sum, geon.mean, geon.max))
            self.put(f(both.array, axis), f(both.expression, axis))

    def read(self):
        self.compare(self.pick())

    def drop(self):
        if len(self.values) > 2:
            del self.values[self.random.randrange(len(self.values))]

    def assign(self):
        k = self.random.randrange(3)
        variable, version = self.variables[k], self.versions[k]
        fitting = [v for v in self.values if v.expression.axes is version.axes]
        factor = self.random.choice((0.5, 0.9))
        if fitting and self.random.random() < 0.7:
            both = self.random.choice(fitting)
            geon.assign(variable, both.array * factor)
            made = both.expression * factor
        else:
            eager.run(geon.assign(variable, variable * factor))
            made = version * factor
        self.versions[k] = self.leaf(np.asarray(self.expected(made)), version.axes)

    def gradient(self):
        both = self.pick()
        if not len(both.expression.placeholders()):
            return
        k = self.random.randrange(3)
        y, want = geon.mean(geon.square(both.array)), geon.mean(geon.square(both.expression))
        found = want.placeholders()
        old = [
            leaf
            for leaf in found
            if leaf.axes is self.versions[k].axes and leaf is not self.versions[k]
        ]
        if self.random.random() < 0.6 and not old:
            made = eager.grad(y, self.variables[k], unreached="zero")
            self.put(made, geon.deriv(want, self.versions[k], unreached="zero"))
        else:
            other = self.pick()
            self.put(
                eager.grad(y, other.array, unreached="zero"),
                geon.deriv(want, other.expression, unreached="zero"),
            )

    def detach(self):
        both = self.pick()
        value = np.asarray(self.expected(both.expression))
        self.put(both.array.detach(), self.leaf(value, both.expression.axes))


STEPS = (
    [Program.add_data, Program.drop, Program.detach]
    + 2 * [Program.scaled, Program.reduced, Program.read, Program.assign, Program.gradient]
    + 3 * [Program.unary, Program.binary, Program.with_variable]
)
