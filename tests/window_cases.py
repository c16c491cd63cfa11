"""Random convolutions and poolings, with what NumPy makes of them element by element.

A case is made from a seed: up to three axes that windows lie along, kernels shorter and longer than
these, strides and dilations of any size, padding, groups, any order of axes, open lengths.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np

import geon

SPATIAL = "HWD"
FILTER = "RST"


@dataclass
class Along:
    """Windows along one axis: lengths of the axis and of windows, and how they lie."""

    name: str
    positions: str
    length: int
    size: int
    stride: int
    dilation: int
    pad: tuple[int, int]
    open: bool
    ceil: bool = False

    @property
    def reach(self):
        return (self.size - 1) * self.dilation + 1

    @property
    def spare(self):
        return self.length + sum(self.pad) - self.reach

    @property
    def count(self):
        if not self.ceil:
            return self.spare // self.stride + 1
        count = -(-self.spare // self.stride) + 1
        return count - 1 if (count - 1) * self.stride >= self.length + self.pad[0] else count

    @property
    def axis(self):
        return geon.Axis(self.name, None if self.open else self.length)

    @property
    def window(self):
        axis = geon.Axis(self.positions, self.size)
        return geon.Window(axis, self.stride, self.dilation, self.pad, self.ceil)

    def places(self):
        """Which element each position of each window shows, and whether there is one."""
        at = np.arange(self.count)[:, None] * self.stride
        at = at + np.arange(self.size) * self.dilation - self.pad[0]
        return at, (at >= 0) & (at < self.length)


@dataclass
class Case:
    """Axes of x and w in some order, and windows; ``kept`` axes stay in both."""

    along: list[Along]
    x_axes: str
    w_axes: str
    over: str
    sizes: dict[str, int]
    open: set[str] = field(default_factory=set)

    def __str__(self):
        return f"{self.x_axes} by {self.w_axes} over {self.over}: {self.along}"

    def axis(self, name):
        for each in self.along:
            if each.name == name:
                return each.axis
            if each.positions == name:
                return geon.Axis(name, each.size)
        return geon.Axis(name, None if name in self.open else self.sizes[name])

    def lengths(self, names):
        known = {**self.sizes, **{a.name: a.length for a in self.along}}
        known.update({a.positions: a.size for a in self.along})
        return [known[name] for name in names]

    @property
    def windows(self):
        return {each.name: each.window for each in self.along}


def along(random, k, most=9, filters=5):
    """Random windows along axis number ``k``; at least one fits."""
    while True:
        length = int(random.choice([1, 2, 3, 4, 5, 7, most]))
        size = int(random.integers(1, filters + 1))
        found = Along(
            SPATIAL[k],
            FILTER[k],
            length,
            size,
            int(random.choice([1, 1, 2, 3, 6])),
            int(random.choice([1, 1, 2, 3])),
            (int(random.integers(0, 5)), int(random.integers(0, 5))),
            bool(random.integers(0, 2)),
        )
        if found.spare >= 0:
            return found


def shuffled(random, names):
    return "".join(random.permutation(list(names)))


def convolution_case(seed):
    """A convolution: batch N, groups G at times, channels C, filters K at times."""
    random = np.random.default_rng(seed)
    count = int(random.choice([1, 2, 2, 3]))
    axes = [along(random, k, 9 if count < 3 else 5, 5 if count < 3 else 3) for k in range(count)]
    spatial, positions = SPATIAL[:count], FILTER[:count]
    over = "" if random.integers(0, 4) == 0 else "C"
    groups = "G" if random.integers(0, 3) == 0 else ""
    filters = "" if random.integers(0, 4) == 0 else "K"
    sizes = {n: int(random.choice([1, 2, 3, 5])) for n in "NCGK"}
    open_ = {n for n in "NCG" if random.integers(0, 3) == 0}
    x_axes = shuffled(random, "NC" + groups + spatial)
    w_axes = shuffled(random, "C" + groups + filters + positions)
    return Case(axes, x_axes, w_axes, over, sizes, open_), random


def shown(case, x, fill=0.0):
    """The windows of an array, over its axes and then those of positions."""
    for each in case.along:
        at, inside = each.places()
        k = case.x_axes.index(each.name)
        taken = np.take(x, np.clip(at, 0, each.length - 1), axis=k)
        taken = np.moveaxis(taken, k + 1, -1)
        mask = inside.reshape([-1 if n == k else 1 for n in range(taken.ndim - 1)] + [each.size])
        x = np.where(mask, taken, fill)
    return x


def hidden(case, windows):
    """The sum of windows at the elements that they show."""
    for each in reversed(case.along):
        at, inside = each.places()
        k = case.x_axes.index(each.name)
        moved = np.moveaxis(windows, (k, windows.ndim - 1), (0, 1))
        whole = np.zeros((each.length, *moved.shape[2:]))
        np.add.at(whole, at[inside], moved[inside])
        windows = np.moveaxis(whole, 0, k)
    return windows


def letters(case):
    """The axes of windows, of filters and of the result, as einsum writes them."""
    positions = "".join(each.positions for each in case.along)
    seen = case.x_axes + positions
    gone = case.over + positions
    out = "".join(n for n in seen if n not in gone)
    out += "".join(n for n in case.w_axes if n not in out and n not in gone)
    return seen, case.w_axes, out


def convolved(case, x, w):
    seen, filters, out = letters(case)
    return np.einsum(f"{seen},{filters}->{out}", shown(case, x), w)


def slope_of_x(case, g, w):
    seen, filters, out = letters(case)
    return hidden(case, np.einsum(f"{out},{filters}->{seen}", g, w))


def slope_of_w(case, g, x):
    seen, filters, out = letters(case)
    return np.einsum(f"{out},{seen}->{filters}", g, shown(case, x))


def pooling_case(seed):
    """Windows of an array over N, C and some axes; padding at most half of a window."""
    random = np.random.default_rng(seed)
    count = int(random.choice([1, 2, 2]))
    axes = []
    while len(axes) < count:
        each = along(random, len(axes))
        each.pad = tuple(int(random.integers(0, each.size // 2 + 1)) for _ in range(2))
        if each.stride + each.pad[1] <= each.reach or not each.open:
            each.ceil = bool(random.integers(0, 2))
        if each.spare >= 0 and all(inside.any(axis=1).all() for _, inside in [each.places()]):
            axes.append(each)
    sizes = {n: int(random.choice([1, 2, 3])) for n in "NC"}
    names = shuffled(random, "NC" + SPATIAL[:count])
    return Case(axes, names, "", "", sizes, {"N"}), random


def counted(case, pad):
    """How many elements the mean of each window is over, for each axis windows lie along."""
    found = []
    for each in case.along:
        at, inside = each.places()
        if pad:
            inside = (at >= -each.pad[0]) & (at < each.length + each.pad[1])
        shape = [1] * len(case.x_axes)
        shape[case.x_axes.index(each.name)] = -1
        found.append(inside.sum(axis=1).reshape(shape))
    return reduce(np.multiply, found)


def pooled(x, windows):
    return [
        geon.max_pool(x, windows),
        geon.average_pool(x, windows),
        geon.average_pool(x, windows, count_pad=True),
        geon.lp_pool(x, windows, 3),
    ]


def pooling_graph(case):
    """Each pool, its slope along ``g``, what these change by along ``u`` and with ``g``; and the
    placeholders x, ``g`` and ``u``.
    """
    x = geon.placeholder([case.axis(n) for n in case.x_axes], "float64", name="x")
    ys = pooled(x, case.windows)
    g, u = (geon.placeholder(op.axes, "float64") for op in (ys[0], x))
    slopes = [geon.deriv(geon.sum(y * g), x) for y in ys]
    second = [geon.deriv(geon.sum(d * u), by, unreached="zero") for by in (x, g) for d in slopes]
    return [*ys, *slopes, *second], [x, g, u]


def pooling_arrays(case, random):
    """Arrays for x, ``g`` and ``u``."""
    x, u = (random.normal(size=case.lengths(case.x_axes)) for _ in range(2))
    counts = {each.name: each.count for each in case.along}
    shape = [counts.get(n, have) for n, have in zip(case.x_axes, x.shape, strict=True)]
    return x, random.normal(size=shape), u
