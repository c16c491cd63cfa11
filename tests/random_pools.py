"""Random poolings with first and second derivatives, of lengths around those of turns and borders.

Up to two axes that windows lie along in any order among others, some of them open; at most one
of thousands. Windows of any size, stride, dilation, padding and rounding, at least one of which
fits and each of which shows an element.
"""

import numpy as np

import geon
from geon.op_graph.axes.lengths import evaluate

LENGTHS = [*range(1, 41)]
LONG = [1000, 1023, 2049, 4099]
CHANNELS = [1, 2, 5, 8, 17, 33]
LARGEST = 12_000  # elements of what is read


class Pooling:
    """One pooling: its results, the leaves it reads, and arrays for these."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.known = self.drawn_lengths()
        names = self.random.permutation(list(self.known)).tolist()
        self.axes = {n: geon.Axis(n, None if self.chance(3) else self.known[n]) for n in names}
        self.windows = {self.axes[n]: self.window(n) for n in self.known if n in "HW"}
        self.x = geon.placeholder(list(self.axes.values()), "float64", name="x")
        self.leaves = [self.x]
        self.kind = self.one_of(["max", "max", "average", "padded average", "lp"])
        self.results = self.with_slopes(self.pooled())

    def __str__(self):
        return f"{self.kind} of {self.axes} {self.known} by {self.windows}"

    def one_of(self, values):
        return list(values)[int(self.random.integers(len(values)))]

    def chance(self, count):
        """True once in so many times."""
        return self.random.integers(count) == 0

    def drawn_lengths(self):
        found = {"C": self.one_of(CHANNELS)}
        if self.chance(2):
            found["N"] = self.one_of([1, 2, 3])
        for name in "HW"[: self.one_of([1, 1, 2, 2, 2])]:
            enough = LARGEST // int(np.prod([*found.values()]))
            long = self.chance(8) and max(found.values()) < LONG[0]
            fitting = [each for each in (LONG if long else LENGTHS) if each <= enough]
            found[name] = self.one_of(fitting or [1])
        return found

    def window(self, name):
        """A window along an axis: one fits, and each shows an element that is there."""
        length = self.known[name]
        while True:
            size, stride = (
                int(self.one_of([1, 2, 2, 3, 3, 3, 4, 5, 7])),
                self.one_of([1, 1, 1, 2, 3, 4, 7]),
            )
            dilation = self.one_of([1, 1, 1, 2, 3])
            low, high = (int(self.random.integers(0, size // 2 + 1)) for _ in range(2))
            reach = (size - 1) * dilation + 1
            spare = length + low + high - reach
            ceil = self.chance(2) and (stride + high <= reach or self.axes[name].length)
            if spare < 0:
                continue
            count = -(-spare // stride) + 1 if ceil else spare // stride + 1
            if ceil and (count - 1) * stride >= length + low:
                count -= 1
            at = np.arange(count)[:, None] * stride + np.arange(size) * dilation - low
            if ((at >= 0) & (at < length)).any(axis=1).all():
                break
        positions = geon.Axis(f"{name} of windows", size)
        return geon.Window(positions, stride, dilation, (low, high), bool(ceil))

    def pooled(self):
        x, windows = self.x, self.windows
        if self.kind == "max":
            return geon.max_pool(x, windows)
        if self.kind == "lp":
            return geon.lp_pool(x, windows, 2)
        return geon.average_pool(x, windows, count_pad=self.kind == "padded average")

    def leaf(self, axes):
        self.leaves.append(geon.placeholder(axes, "float64"))
        return self.leaves[-1]

    def with_slopes(self, y):
        """The pool, its slope along what is drawn, and the slopes of that."""
        g, u = self.leaf(y.axes), self.leaf(self.x.axes)
        slope = geon.deriv(geon.sum(y * g), self.x)
        second = geon.deriv(geon.sum(slope * u), [self.x, g], unreached="zero")
        return [y, slope, *second]

    def feeds(self):
        """Small integers, many of them equal; none is 0 where a norm is divided by."""
        found = {}
        for leaf in self.leaves:
            shape = [evaluate(axis.expression, self.known) for axis in leaf.axes]
            low = 1 if self.kind == "lp" else -9
            found[leaf] = self.random.integers(low, 10, shape).astype(leaf.dtype)
        return found
