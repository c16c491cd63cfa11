"""Small random programs for loop trees: lengths around the factors of transformations."""

import numpy as np

import geon
from geon import Axis, Window

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18)
FEW = (1, 2, 3, 4, 5)


class Program:
    """Some results over a few axes, which may be open; ``lengths`` are possible ones of each.

    ``kind`` makes the results; it is random where not given.
    """

    def __init__(self, seed, lengths=None, kind=None):
        self.random = np.random.default_rng(seed)
        lengths = lengths or {"N": FEW, "M": LENGTHS, "C": LENGTHS}
        self.lengths = {name: self.one(choices) for name, choices in lengths.items()}
        if self.random.integers(8) == 0:
            self.lengths[self.one("NMC")] = 0
        self.axes = {
            name: Axis(name, None if self.random.integers(4) == 0 else length)
            for name, length in self.lengths.items()
        }
        self.dtype = self.one(("float32", "float64", "int32"))
        self.leaves = []
        kinds = (
            maps,
            windows,
            rows,
            columns,
            values_of_columns,
            normalised,
            centred,
            positions,
            joins,
            filled,
            transposed,
        )
        self.kind = maps if 0 in self.lengths.values() else kind or self.one(kinds)
        self.results = self.kind(self)

    def one(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def leaf(self, names="NMC"):
        return self.made([self.axes[name] for name in names])

    def made(self, axes):
        """A placeholder over axes."""
        self.leaves.append(geon.placeholder(axes, self.dtype))
        return self.leaves[-1]

    def feeds(self):
        """An array of small numbers for each placeholder."""
        lengths = [[self.lengths.get(a.name, a.length) for a in x.axes] for x in self.leaves]
        numbers = [self.random.normal(size=each) * 3 for each in lengths]
        return {x: n.astype(x.dtype) for x, n in zip(self.leaves, numbers, strict=True)}


def maps(p):
    x, y, z = p.leaf(), p.leaf("C"), p.leaf("NM")
    return [geon.maximum(x * y - z, 0) + y, x - z * 2]


def windows(p):
    r = Axis("R", p.one((1, 2, 3)))
    pad = p.one(((0, 0), (1, 1), (0, 2)))
    if p.lengths["M"] + sum(pad) < r.length:
        return maps(p)
    x, f = p.leaf(), p.made([r, p.axes["C"]])
    return [geon.convolution(x, f, {"M": Window(r, pad=pad)}, [])]


def rows(p):
    x = p.leaf()
    return [geon.sum(x * p.leaf("C"), "C"), geon.max(x, "C") - geon.min(x, "C")]


def columns(p):
    x = p.leaf()
    return [geon.sum(x, ["N", "M"]), geon.sum(x * x, "M")]


def values_of_columns(p):
    """Rows that read values of columns, for all rows or for the rows of each index of N."""
    p.dtype = p.one(("float32", "float64"))
    x = p.leaf()
    over = p.one((["N", "M"], ["M"]))
    mean, power = geon.mean(x, over), geon.mean(x * x, over)
    others = [p.leaf(names) for names in p.one((("C",), ("NC", "C", "C"), ("MC", "NC", "C")))]
    return [(x - mean) * power + sum(others[1:], others[0])]


def normalised(p):
    x = geon.cast(p.leaf(), "float64")
    return [(x - geon.mean(x, "C")) / (1 + geon.sum(geon.exp(x - geon.max(x, "C")), "C"))]


def centred(p):
    x = geon.cast(p.leaf(), "float64")
    y = x - geon.mean(x, "C")
    return [y / (1 + geon.sum(y * y, "C"))]


def positions(p):
    x = p.leaf()
    return [geon.argmax(x, "C"), geon.argmin(x, "M")]


def joins(p):
    x = p.leaf()
    return [geon.pad(x, {"M": (2, 1), "C": (3, 0)}) * 2, geon.pad(x, {"M": (1, 2)}) - 1]


def filled(p):
    x = p.leaf()
    return [geon.flip(x, "C") - geon.sum(x)]


def transposed(p):
    x = p.leaf()
    return [geon.reorder(x * 2, [p.axes[name] for name in "CNM"]) + p.leaf("CNM")]
