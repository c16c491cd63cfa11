"""Random programs over axes of which some are open and many are short, of moves that are joined,
looked up, reduced and differentiated.
"""

from dataclasses import dataclass

import numpy as np

import geon
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import kind

LENGTHS = (2, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 63, 65, 255, 257)
MOST = 1 << 14  # elements of what is given,
LARGEST = 1 << 18  # and of what is computed
FLOATS = ("float64", "float32", "float32", "float16")
DTYPES = (*FLOATS, "int64", "int32", "int16", "int8", "uint8")


@dataclass
class Program:
    """Results of placeholders, and the lengths of axes in two calls."""

    placeholders: list
    results: list
    calls: list

    def feeds(self, number):
        """The arrays of a call: small numbers, so that sums of integers are exact."""
        generator, lengths = np.random.default_rng(number), self.calls[number]
        found = []
        for leaf in self.placeholders:
            shape = [lengths[axis.name] for axis in leaf.axes]
            low = 0 if kind(leaf.dtype) == "u" else -4
            found.append(generator.integers(low, 5, shape).astype(leaf.dtype))
        return found


class Maker:
    """Makes one program of a number; what does not go together is left out."""

    def __init__(self, number):
        self.random = np.random.default_rng(number)
        names = "ABCD"[: self.random.integers(2, 5)]
        self.calls = [self.lengths(names), self.lengths(names)]
        self.axes = {}
        for name, length in self.calls[0].items():
            is_open = self.random.random() < 0.6
            self.axes[name] = geon.Axis(name) if is_open else geon.Axis(name, length)
            self.calls[1][name] = self.calls[1][name] if is_open else length
        dtype = self.pick(DTYPES)
        self.placeholders = [self.placeholder(dtype, full) for full in (True, False)]
        self.values = list(self.placeholders)
        self.names = 0

    def pick(self, values):
        return values[self.random.integers(len(values))]

    def lengths(self, names):
        found, size = {}, 1
        for name in self.random.permutation(list(names)):
            fitting = [length for length in LENGTHS if size * length <= MOST]
            found[str(name)] = self.pick(fitting) if fitting else 1
            size *= found[str(name)]
        return found

    def placeholder(self, dtype, full):
        order = self.random.permutation(list(self.axes))
        count = len(order) if full else self.random.integers(1, len(order) + 1)
        return geon.placeholder([self.axes[str(name)] for name in order[:count]], dtype=dtype)

    def named(self):
        self.names += 1
        return f"Z{self.names}"

    def size(self, value):
        """The most elements that a value has."""
        return max(
            np.prod([geon.op_graph.axes.lengths.evaluate(a.expression, call) for a in value.axes])
            for call in self.calls
        )

    def step(self):
        """One more value, of the last one or of any; or an error where it cannot be."""
        x = self.values[-1] if self.random.random() < 0.6 else self.pick(self.values)
        made = self.pick(STEPS if x.axes.names else OF_SCALARS)(self, x)
        if made is not None and self.size(made) <= LARGEST:
            self.values.append(made)

    def program(self):
        for _ in range(self.random.integers(4, 14)):
            try:
                self.step()
            except (geon.AxisError, geon.DTypeError, geon.IndexRangeError):
                continue
        results = [self.values[-1], *self.random.permutation(len(self.values))[:2]]
        results = [results[0], *(self.values[k] for k in results[1:])]
        floats = [p for p in self.placeholders if kind(p.dtype) == "f"]
        if floats and kind(results[0].dtype) == "f" and self.random.random() < 0.4:
            total = geon.sum(geon.tanh(geon.cast(results[0], floats[0].dtype)))
            results.append(geon.deriv(total, floats[0], unreached="zero"))
        return Program(self.placeholders, results, self.calls)


def is_exact(x):
    """Whether any order of sums gives the same: small numbers are, but of functions and halves."""
    below = post_order([x])
    names = {op.primitive.name for op in below}
    return not names & {"tanh", "exp"} and all(op.dtype != np.float16 for op in below)


def axis(make, x):
    return make.pick(list(x.axes.names))


def elementwise(make, x):
    if kind(x.dtype) == "f":
        functions = (geon.tanh, geon.absolute, lambda v: geon.exp(geon.tanh(v)), geon.relu)
        return make.pick(functions)(x) * 1.5
    return make.pick((lambda v: v + 3, lambda v: v * 2, lambda v: v > 1, geon.absolute))(x)


def together(make, x):
    y = make.pick(make.values)
    if not set(x.axes.names) & set(y.axes.names):
        return geon.outer(geon.multiply, x, y)
    return make.pick((geon.add, geon.multiply, geon.maximum, geon.subtract))(x, y)


def multiplied(make, x):
    """Over one axis, so that there are rows and columns."""
    at = axis(make, x)
    y = geon.rename(x, {name: make.named() for name in x.axes.names if name != at})
    return geon.dot(x, geon.tanh(y) if kind(x.dtype) == "f" else y)


def turned(make, x):
    return geon.reorder(x, [str(name) for name in make.random.permutation(x.axes.names)])


def flipped(make, x):
    return geon.flip(x, axis(make, x))


def parted(make, x):
    at = make.random.integers(len(x.axes.names))
    part = make.pick((slice(None, None, 2), slice(1, None), slice(None, None, -1), 0, -1))
    return x[(slice(None),) * at + (part,)]


def joined(make, x):
    name = axis(make, x)
    other = make.pick((x, elementwise(make, x)))
    return geon.rename(geon.concat([x, other], name), {name: make.named()})


def bordered(make, x):
    name = axis(make, x)
    border = {name: (int(make.random.integers(0, 3)), 1)}
    return geon.rename(geon.pad(x, border), {name: make.named()})


def rolled(make, x):
    return geon.roll(x, {axis(make, x): int(make.random.integers(-2, 4))})


def looked_up(make, x):
    at = x.axes[axis(make, x)]
    back = geon.rename(-1 - geon.iota(at), {at.name: make.named()})
    return geon.gather(x, back, at)


def reduced(make, x):
    names = [name for name in x.axes.names if make.random.random() < 0.5] or [axis(make, x)]
    functions = [geon.sum, geon.max, geon.min, *([geon.argmax] if is_exact(x) else [])]
    return make.pick(functions)(x, names)


def running(make, x):
    return geon.cumsum(x, axis(make, x))


def flat(make, x):
    if len(x.axes.names) < 2:
        return None
    names = [str(name) for name in make.random.permutation(x.axes.names)[:2]]
    return geon.flatten(x, names, geon.Axis(make.named()))


def chosen(make, x):
    at = x.axes[axis(make, x)]
    return geon.where(geon.iota(at) % 3 > 0, x, -x)


def repeated(make, x):
    more = [each for name, each in make.axes.items() if name not in x.axes.names]
    return geon.broadcast(x, [make.pick(more), *x.axes]) if more else None


def cast(make, x):
    return geon.cast(x, make.pick(DTYPES if kind(x.dtype) != "f" else FLOATS))


STEPS = (
    elementwise, elementwise, together, together, multiplied, turned, turned, flipped, parted,
    joined, bordered, rolled, looked_up, reduced, reduced, running, flat, chosen, repeated, cast,
)  # fmt: skip
OF_SCALARS = (elementwise, together, repeated, cast)
