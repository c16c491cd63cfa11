"""Random programs whose kernels may be text of vectors: of columns, and of rows by themselves.

Lengths are those that fill vectors, and some beside these that do not.
"""

import numpy as np

import geon
from geon import Axis

FILLED = (16, 96, 32, 160, 48, 64, 64, 80, 128, 256, 272, 512, 528)
LEFT = (1, 4, 8, 15, 17, 24, 40, 100)
OTHERS = (1, 2, 3, 5, 8, 31, 33, 64, 65, 130)
DTYPES = ("float32", "float32", "float32", "float64")
KINDS = ("columns", "columns", "normalised", "normalised", "rows", "rows", "layer", "plain", "all")
WEIGHTED = 4  # one of so many programs of columns has weights of rows, and borders


class VectoredNest:
    """A program: its results and leaves, and arrays of these."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.dtype = "int32" if seed % 12 == 5 else self.one(DTYPES)
        self.leaves, self.arrays = [], []
        kinds = ("plain", "plain", "columns") if self.dtype == "int32" else KINDS
        kind = self.one(kinds)
        least = int(kind in ("columns", "normalised"))
        self.lengths = [self.one(OTHERS), self.one(OTHERS)][: self.random.integers(least, 3)]
        self.lengths.append(self.one(FILLED if self.random.integers(0, 6) else LEFT))
        if kind == "all":
            self.lengths[0] *= self.one((1, 40, 200))
        names = ["N", "M"][: len(self.lengths) - 1] + ["C"]
        self.axes = [Axis(name, length) for name, length in zip(names, self.lengths, strict=True)]
        if len(self.axes) > 1 and self.random.integers(0, 3):
            self.axes[0] = Axis("N")
        self.results = getattr(self, kind)()
        # Whether vectors add terms in another order than plain text does.
        self.reordered = kind in ("rows", "layer", "all", "normalised")
        self.kind = f"{kind} of {self.dtype} {self.lengths}, seed {seed}"

    def one(self, choices):
        """One of these."""
        return choices[int(self.random.integers(0, len(choices)))]

    def leaf(self, numbers=None):
        """A placeholder over the axes of these numbers, all axes where not given."""
        numbers = range(len(self.axes)) if numbers is None else numbers
        made = geon.placeholder([self.axes[k] for k in numbers], self.dtype)
        values = np.asarray(self.random.normal(size=[self.lengths[k] for k in numbers])) * 3
        self.leaves.append(made)
        self.arrays.append(np.array(values, self.dtype, order="C"))
        return made

    def chain(self, x):
        """Some elementwise work, with parameters of the last axis, of rows and of everything."""
        last = len(self.axes) - 1
        for _ in range(self.random.integers(1, 5)):
            y = self.leaf(self.one(([last], [last], [0], range(last), None, [])))
            step = self.one(("add", "scale", "relu", "chosen", "square", "both", "float", "within"))
            if step == "add":
                x = x + y
            elif step == "scale":
                x = (x - y) * 2
            elif step == "relu":
                x = geon.maximum(x, 0) - geon.minimum(y, x)
            elif step == "chosen":
                x = geon.where((x > y) & geon.logical_not(y >= 2), x, -y)
            elif step == "square":
                x = geon.square(x) * y + geon.absolute(x)
            elif step == "both":
                x = geon.where(geon.equal(x, y) | (x <= 0), y * 2, x)
            elif step == "within":
                x = geon.where(y > 0, x, x + 1)
            elif self.dtype != "int32":
                x = x / (geon.absolute(y) + 1) - geon.rsqrt(x * x + 1) * geon.sqrt(y * y + 2)
        return x

    def columns(self):
        """Sums of what lies above one another, and what is computed of them."""
        x = self.leaf()
        outer = self.axes[: self.random.integers(1, len(self.axes))]
        terms = [self.chain(x) for _ in range(self.random.integers(1, 3))]
        found = [geon.sum(term, outer) for term in terms]
        if self.random.integers(0, WEIGHTED) == 0:
            border = {self.one(self.axes[1:]): (16, 32)}
            wide = geon.pad(x, border, value=self.one((0, 3)))
            weights = self.leaf([0])
            weights = self.one((weights, weights * 2, weights * weights + 1))
            found.append(geon.dot(wide, geon.broadcast(weights, wide.axes), self.axes[:1]))
        return found

    def normalised(self):
        """Normalised columns, and slopes through them."""
        x, outer = self.leaf(), self.axes[:-1]
        y = (x - geon.mean(x, outer)) * geon.rsqrt(geon.variance(x, outer) + 0.5)
        y = self.chain(y)
        return [y, geon.deriv(geon.sum(y * self.leaf()), x)]

    def rows(self):
        """Sums of rows, and what is computed of them."""
        x, last = self.leaf(), self.axes[-1]
        y = self.chain(x)
        return [y, geon.sum(self.chain(y), last), geon.prod(x * 0.125 + 1, last)]

    def layer(self):
        """Normalised rows, and slopes through them."""
        x, last = self.leaf(), self.axes[-1]
        y = (x - geon.mean(x, last)) * geon.rsqrt(geon.variance(x, last) + 0.5)
        y = self.chain(y)
        return [y, geon.deriv(geon.sum(y * self.leaf()), x)]

    def plain(self):
        """Elements by themselves."""
        x = self.chain(self.leaf())
        return [x, self.chain(x)]

    def all(self):
        """Sums of everything."""
        x = self.chain(self.leaf())
        return [geon.sum(x), x - geon.sum(x * x) * 1e-6]
