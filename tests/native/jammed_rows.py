"""Random programs whose neighbouring rows load much alike: windows, filters, rows of parameters.

Lengths are around those at which vectors, and turns that are taken together, end.
"""

import numpy as np

import geon
from geon import Axis, Window

INNER = (1, 3, 4, 7, 8, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 63, 64, 65, 100, 129)
OUTER = (1, 3, 5, 8, 10, 11, 12, 13, 14, 16, 17, 22, 29, 40)
MANY = (2, 40, 64, 65, 66, 67, 69, 72, 101)  # where there is one such axis alone
DTYPES = ("float32", "float32", "float32", "float64", "int32", "int64")
TAKEN = "GEON_KEPT(t"  # text of jammed rows: values that they share stay in registers
ENDS = ("none", "relu", "chosen", "scaled", "two", "lengths", "of rows")


class JammedRows:
    """A program: its results and leaves, and arrays of these."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.dtype = self.one(DTYPES)
        self.floats = self.dtype[0] == "f"
        self.leaves, self.arrays = [], []
        kind = self.one(("channels", "channels", "pool", "pool", "filter", "filter", "applied"))
        y = getattr(self, kind)()
        self.kind = f"{kind} of {self.dtype}, seed {seed}"
        self.results = self.ended(y)
        if self.floats and kind != "applied" and self.random.integers(0, 3) == 0:
            g = self.leaf(y.axes, self.shape)
            self.results += [geon.deriv(y, self.leaves[0], seed=g)]

    def one(self, choices):
        """One of these."""
        return choices[int(self.random.integers(0, len(choices)))]

    def leaf(self, axes, shape):
        """A placeholder with an array of so many small numbers."""
        made = geon.placeholder(axes, self.dtype)
        numbers = self.random.normal(size=shape) * 3
        self.leaves.append(made)
        self.arrays.append(np.ascontiguousarray(numbers.astype(self.dtype)))
        return made

    def axes(self, lengths):
        """Axes of these lengths, each of which may be open."""
        return [
            Axis(name, None if self.random.integers(0, 4) == 0 else length)
            for name, length in lengths.items()
        ]

    def windows(self, names, lengths):
        """Windows along these axes, at least one of which fits, and their axes."""
        found, axes = {}, []
        for name in names:
            while True:
                size, stride = self.one((1, 2, 3, 3, 5, 7)), self.one((1, 1, 1, 2))
                dilation, pad = self.one((1, 1, 2)), self.one(((0, 0), (1, 1), (0, 2), (2, 1)))
                spare = lengths[name] + sum(pad) - (size - 1) * dilation - 1
                if spare >= 0:
                    break
            axes.append(Axis({"H": "R", "W": "S"}[name], size))
            found[name] = Window(axes[-1], stride, dilation, pad)
            lengths[name] = spare // stride + 1
        return found, axes

    def channels(self):
        """A filter for each channel."""
        lengths = {"N": self.one((1, 2, 3)), "H": self.one(OUTER), "W": self.one(OUTER)}
        lengths["C"] = self.one(INNER)
        x = self.leaf(self.axes(lengths), list(lengths.values()))
        windows, axes = self.windows("HW", lengths)
        c = x.axes["C"]
        sizes = [*(axis.length for axis in axes), lengths["C"]]
        w = self.leaf([*axes, Axis("C", c.length)], sizes)
        self.shape = list(lengths.values())
        return geon.convolution(x, w, windows, [])

    def pool(self):
        """What windows show of each channel, reduced."""
        lengths = {"N": self.one((1, 2)), "H": self.one(OUTER), "W": self.one(OUTER)}
        lengths["C"] = self.one(INNER)
        x = self.leaf(self.axes(lengths), list(lengths.values()))
        windows, axes = self.windows("HW", lengths)
        self.shape = list(lengths.values())
        reduce = self.one((geon.max, geon.min, geon.sum))
        return reduce(geon.window(x, windows), axes)

    def filter(self):
        """A filter of planes, whose rows need not fill vectors."""
        lengths = {"H": self.one(MANY), "W": self.one((*INNER, 200, 1000))}
        x = self.leaf(self.axes(lengths), list(lengths.values()))
        windows, axes = self.windows("HW", lengths)
        w = self.leaf(axes, [axis.length for axis in axes])
        self.shape = list(lengths.values())
        return geon.convolution(x, w, windows, [])

    def applied(self):
        """Parameters of channels applied to rows of them."""
        lengths = {"N": self.one(MANY), "C": self.one(INNER)}
        x = self.leaf(self.axes(lengths), list(lengths.values()))
        c = Axis("C", x.axes["C"].length)
        a, b, d, e, f = (self.leaf([c], [lengths["C"]]) for _ in range(5))
        self.shape = list(lengths.values())
        y = (((x - a) * b + d) * e - f) * (a + e)
        return geon.where(y > x, y - d, x * b)

    def ended(self, y):
        """Results of what was computed."""
        end = self.one(ENDS)
        if end == "relu":
            return [geon.maximum(y, 0)]
        if end == "chosen":
            first, second = y > 1, y >= 5
            both = (
                first & ~second,
                geon.logical_or(geon.logical_not(first), second),
                first ^ second,
                geon.equal(first, second),
                geon.less(first, second),  # no vectors: truths have no order there
            )
            return [geon.where(self.one(both), y * y, -y)]
        if end == "of rows":
            n = y.axes[0]
            row = self.leaf([Axis(n.name, n.length)], [self.shape[0]])
            return [y * (geon.exp(row / 9) if self.floats else row % 7) - row]
        if end == "scaled":
            c = y.axes[-1]
            scale = self.leaf([Axis(c.name, c.length)], [self.shape[-1]])
            return [geon.minimum(y * scale, 7)]
        if end == "lengths":
            if not self.floats:
                return [geon.absolute(y)]
            length = geon.sqrt(y * y + 1)
            return [length, y * geon.rsqrt(length), geon.absolute(y) + geon.reciprocal(length)]
        if end == "two":
            return [y, y - 1]
        return [y]

    def feeds(self):
        """The arrays of the leaves."""
        return dict(zip(self.leaves, self.arrays, strict=True))
