"""Random updates of weights and filters: every order of their axes, at lengths near all limits.

What a product stores may adjoin along its rows, along its columns, along one of several loops of
either, or along none; blocks begin anywhere in these.
"""

import math
import random

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
LENGTHS = [1, 2, 3, 5, 8, 9, 15, 16, 17, 24, 32, 33, 48, 49, 64, 65, 100, 130, 200]
EXAMPLES = [1, 7, 64, 300, 900]
TILED = ([3, 5, 9, 10], [8, 16, 32, 48], [120, 200, 400])  # two loops of rows, and many columns
MOST = 1 << 17  # elements of the weights
WORK = 1e8  # products of elements


class Weights:
    """A product of examples with some axes on either side, and some that both have."""

    def __init__(self, rng):
        sides = [rng.choice([1, 2, 2]), rng.choice([1, 1, 2]), rng.choice([0, 0, 1])]
        tiled = sides == [2, 1, 0]
        while True:
            self.lengths = [rng.choice(LENGTHS) for _ in range(sum(sides))]
            if tiled:
                self.lengths = [rng.choice(each) for each in TILED]
            self.examples = rng.choice(EXAMPLES)
            size = math.prod(self.lengths)
            if size <= MOST and size * self.examples <= WORK:
                break
        self.left = list(range(sides[0]))
        self.right = list(range(sides[0], sides[0] + sides[1]))
        self.both = list(range(sides[0] + sides[1], sum(sides)))
        self.order = rng.sample(range(sum(sides)), sum(sides))
        if tiled and rng.random() < 0.5:
            self.order = [0, 2, 1]  # the loops of rows stay two

    def shapes(self):
        """Of both operands, and of the weights."""
        left, right = (
            [self.examples, *[self.lengths[k] for k in (*self.both, *side)]]
            for side in (self.left, self.right)
        )
        return [left, right], [self.lengths[k] for k in self.order]

    def slope(self, n, weights, x, y):
        """What weights are moved by, of operands as they come or computed."""
        return geon.dot(x, y, n)

    def axes(self, n):
        """Of both operands, and of the weights."""
        found = [geon.Axis(f"A{k}", length) for k, length in enumerate(self.lengths)]
        left, right = (
            [n, *[found[k] for k in (*self.both, *side)]] for side in (self.left, self.right)
        )
        return [left, right], [found[k] for k in self.order]


class Filters:
    """A convolution of images with windows of 1 to 3 positions along two axes."""

    def __init__(self, rng):
        while True:
            self.channels, self.filters = rng.choice(LENGTHS), rng.choice(LENGTHS)
            self.windows = [rng.choice([1, 2, 3]) for _ in range(2)]
            self.sides = [rng.choice([3, 5, 8]) for _ in range(2)]
            self.examples = rng.choice(EXAMPLES[:3])
            size = math.prod([self.channels, self.filters, *self.windows])
            if size <= MOST and size * self.examples * math.prod(self.sides) <= WORK:
                break
        self.pads = [rng.randrange(window) for window in self.windows]
        self.order = rng.sample(range(4), 4)

    def shapes(self):
        ends = [
            side + 2 * pad - window + 1
            for side, pad, window in zip(self.sides, self.pads, self.windows, strict=True)
        ]
        lengths = [*self.windows, self.channels, self.filters]
        images = [[self.examples, *self.sides, self.channels], [self.examples, *ends, self.filters]]
        return images, [lengths[k] for k in self.order]

    def axes(self, n):
        (_, *sides, channels), (_, *ends, filters) = self.shapes()[0]
        h, w = geon.Axis("H", sides[0]), geon.Axis("W", sides[1])
        c, k = geon.Axis("C", channels), geon.Axis("K", filters)
        r, s = geon.Axis("R", self.windows[0]), geon.Axis("S", self.windows[1])
        high, wide = geon.Axis("H", ends[0]), geon.Axis("W", ends[1])
        found = [r, s, c, k]
        return [[n, h, w, c], [n, high, wide, k]], [found[each] for each in self.order]

    def slope(self, n, weights, x, y):
        """The derivative of a weighted sum of what the filters give."""
        windows = {
            name: geon.Window(next(a for a in weights.axes if a.name == at), pad=(pad, pad))
            for name, at, pad in zip("HW", "RS", self.pads, strict=True)
        }
        made = geon.convolution(x, weights, windows, "C")
        return geon.deriv(geon.sum(made * y), weights)


def check(seed):
    """One program, on one to four threads, beside NumPy."""
    rng = random.Random(seed)
    case = rng.choice([Weights, Filters])(rng)
    dtype = rng.choice(["float32", "float32", "float64"])
    known, momentum = rng.random() < 0.5, rng.random() < 0.5
    factors = rng.choice([(1, 1), (0.5, 1), (1, 0.5), (0.5, 0.25)])  # of operands, computed or not
    shapes, of_weights = case.shapes()
    data = [np.random.default_rng(seed + k).standard_normal(s) for k, s in enumerate(shapes)]
    data = [each.astype(dtype) for each in data]
    first = np.random.default_rng(seed + 2).standard_normal(of_weights).astype(dtype)

    def after(name, **options):
        n = geon.Axis("N", case.examples) if known else geon.Axis("N")
        (left, right), own = case.axes(n)
        x, y = geon.placeholder(left, dtype), geon.placeholder(right, dtype)
        w = geon.variable(own, dtype, initial_value=first, name="w")
        v = geon.variable(own, dtype, initial_value=0, name="v")
        operands = [z if k == 1 else z * k for z, k in zip((x, y), factors, strict=True)]
        moved = case.slope(n, w, *operands)
        moved = 0.9 * v + moved if momentum else moved
        steps = [geon.assign(w, w - 0.01 * moved)]
        if momentum:
            steps.append(geon.assign(v, moved))
        with geon.make_transformer(name, **options) as transformer:
            f = transformer.computation(geon.doall(steps), x, y)
            for _ in range(2):
                f(*data)
            return [np.array(transformer.get(each)) for each in ((w, v) if momentum else (w,))]

    wanted = after("numpy")
    for threads in (1, rng.choice([2, 3, 4])):
        for value, other in zip(after("native", threads=threads), wanted, strict=True):
            close = 3e-5 if dtype == "float32" else 1e-11
            scale = max(np.abs(other).max(), 1)
            np.testing.assert_allclose(value, other, rtol=close, atol=close * scale, err_msg=seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_updates_are_those_of_numpy(part):
    for seed in range(8 * part, 8 * part + 8):
        check(seed)
