"""Random computations whose kernels are cut at borders and walked by several indices in a turn.

Windows with strides and their slopes, joins, slices with steps, scans of small tensors, sorts:
lengths are around those where kernels change their way, and some axes are open.
"""

import numpy as np

import geon
from geon.op_graph.axes.lengths import evaluate

LENGTHS = [1, 2, 3, 5, 7, 8, 9, 10, 11, 15, 16, 17, 23, 33, 64, 65]
CHANNELS = [1, 3, 8, 9, 17]
LARGEST = 1200  # elements of what is read


class Borders:
    """One computation: its results, the leaves it reads, and arrays for these."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.axes, self.known = self.drawn_axes()
        self.x = geon.placeholder(list(self.axes.values()), "float64", name="x")
        self.leaves = [self.x]
        self.what = self.one_of(KINDS)
        self.results = KINDS[self.what](self)

    def one_of(self, values):
        return list(values)[int(self.random.integers(len(values)))]

    def drawn_axes(self):
        """Up to two axes, and channels, in any order, of lengths that are known or open."""
        names = ["H", "W"][: self.one_of([1, 2, 2])]
        known = {"C": self.one_of(CHANNELS)}
        for name in names:
            enough = LARGEST // int(np.prod([*known.values()]))
            known[name] = self.one_of([each for each in LENGTHS if each <= enough])
        axes = {}
        for name in self.random.permutation(list(known)).tolist():
            is_open = self.random.integers(0, 3) == 0
            axes[name] = geon.Axis(name, None if is_open else known[name])
        return axes, known

    def feeds(self):
        """Small integers, many of them equal, so that the order of sums shows in no bit."""
        found = {}
        for leaf in self.leaves:
            shape = [evaluate(axis.expression, self.known) for axis in leaf.axes]
            found[leaf] = self.random.integers(-9, 10, shape).astype(leaf.dtype)
        return found

    def leaf(self, axes):
        self.leaves.append(geon.placeholder(axes, "float64"))
        return self.leaves[-1]

    def with_slopes(self, y):
        """A value, and its slopes along what is drawn for it."""
        g, read = self.leaf(y.axes), self.leaves[:]
        return [y, *geon.deriv(geon.sum(y * g), read, unreached="zero")]

    def windows(self):
        """Windows along some axes, at least one of which fits: positions by what they lie along."""
        names = [n for n in self.axes if n != "C" and self.random.integers(0, 4)] or ["H"]
        found = {}
        for name in names:
            most = min(9 if len(names) == 1 else 4, self.known[name])
            size = int(self.random.integers(1, most + 1))
            dilation = self.one_of([1, 1, 2]) if 2 * size <= self.known[name] else 1
            pad = tuple(self.random.integers(0, size, 2).tolist())
            stride = int(self.random.integers(1, 9))
            positions = geon.Axis(f"{name} of windows", size)
            found[self.axes[name]] = geon.Window(positions, stride, dilation, pad)
        return found

    def pool(self):
        pools = [geon.max_pool, geon.average_pool, geon.max_pool]
        return self.with_slopes(self.one_of(pools)(self.x, self.windows()))

    def window(self):
        (axis, spec), *_ = self.windows().items()
        return self.with_slopes(geon.window(self.x, {axis: spec}))

    def convolution(self):
        windows = self.windows()
        deep = bool(self.random.integers(0, 2))
        filters = [each.axis for each in windows.values()]
        w = self.leaf([*filters, self.axes["C"], *([geon.Axis("K", 3)] if deep else [])])
        over = [self.axes["C"]] if deep else []
        return self.with_slopes(geon.convolution(self.x, w, windows, over))

    def join(self):
        a, b = (self.one_of(self.axes.values()) for _ in range(2))
        y = geon.concat([self.x * 2, geon.flip(self.x, a), self.x + 1], a)
        border = tuple(self.random.integers(0, 10, 2).tolist())
        return self.with_slopes(geon.absolute(geon.pad(y, {y.axes[b.name]: border})))

    def slices(self):
        a, b = (self.one_of(self.axes.values()) for _ in range(2))
        first, second = (self.x[{axis: self.steps(axis)}] for axis in (a, b))
        total = geon.sum(geon.square(first)) + geon.sum(geon.square(second))
        return [first * 3, geon.deriv(total, self.x)]

    def steps(self, axis):
        start = int(self.random.integers(0, self.known[axis.name]))
        stop = self.one_of([None, -1]) if start + 1 < self.known[axis.name] else None
        return slice(start, stop, int(self.random.integers(1, 10)))

    def scan(self):
        """Small carries, taken apart or not, with what every turn gives."""
        along = self.axes["H"]
        others = [axis for axis in self.x.axes if axis.name != "H"]
        start = self.leaf(others)

        def step(carry, each):
            made = geon.maximum(carry * 0.5 + each, -each)
            return made, made * 2

        last, made = geon.scan(
            step, start, self.x, over=along, reverse=bool(self.random.integers(0, 2))
        )
        loss = geon.sum(last) + geon.sum(geon.square(made))
        return [last, made, *geon.deriv(loss, [self.x, start])]

    def order(self):
        axis = self.one_of(self.axes.values())
        count = int(self.random.integers(1, self.known[axis.name] + 1))
        return [
            geon.sort(self.x, axis),
            geon.argsort(self.x, axis),
            *geon.top_k(self.x, count, axis),
            geon.cumsum(self.x, axis),
            geon.argmax(self.x, axis),
        ]


KINDS = {
    "pool": Borders.pool,
    "another pool": Borders.pool,
    "window": Borders.window,
    "convolution": Borders.convolution,
    "join": Borders.join,
    "slices": Borders.slices,
    "scan": Borders.scan,
    "order": Borders.order,
}
