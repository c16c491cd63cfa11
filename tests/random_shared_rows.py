"""Random programs of several results that share rows: reductions of values that are then free, so
that results are computed in their places, beside others that read them.
"""

from dataclasses import dataclass

import numpy as np

import geon
from geon.op_graph.values.dtypes import kind

LENGTHS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 65, 70)
SHORT = (1, 2, 3, 20)
LARGEST = 1 << 14  # elements of what is given
DTYPES = ("float32", "float32", "float32", "float64", "int32")
REDUCTIONS = (geon.sum, geon.sum, geon.max, geon.min, geon.mean, geon.argmax)


@dataclass
class Program:
    """Results of placeholders, the last one perhaps an effect, and the lengths in two calls."""

    placeholders: list
    results: list
    variables: list
    calls: list

    @property
    def count(self):
        """How many calls there are: one where variables would not be what they were."""
        return 1 if self.variables else len(self.calls)

    def feeds(self, number):
        """The arrays of a call: small numbers, so that sums of integers are exact."""
        generator, lengths = np.random.default_rng(number), self.calls[number]
        found = []
        for leaf in self.placeholders:
            shape = [lengths[axis.name] for axis in leaf.axes]
            scale = 8 if kind(leaf.dtype) == "f" else 1
            found.append((generator.integers(-8, 9, shape) / scale).astype(leaf.dtype))
        return found

    def values(self, f, number):
        """What a computation gives in a call, and variables after it."""
        found = [a for a in f(*self.feeds(number)) if a is not None]
        return [np.asarray(a) for a in (*found, *map(f.transformer.get, self.variables))]

    def wanted(self, number):
        """The same by NumPy."""
        f = geon.NumPyTransformer().computation(self.results, *self.placeholders)
        with np.errstate(all="ignore"):
            return self.values(f, number)

    def compare(self, found, wanted, say):
        for a, b in zip(found, wanted, strict=True):
            within = 1e-3 if kind(a.dtype) == "f" else 0
            most = np.abs(b[np.isfinite(b)]).max(initial=1)
            np.testing.assert_allclose(a, b, within, within * most, err_msg=say)


class Maker:
    """Makes one program of a number."""

    def __init__(self, number):
        self.random = np.random.default_rng(number)
        self.is_open = self.random.random() < 0.4
        rank = self.pick((1, 2, 2, 2, 3))
        self.calls = [self.lengths("ABC"[:rank]), self.lengths("ABC"[:rank])]
        self.placeholders, self.variables, self.axes = [], [], []
        for name, length in self.calls[0].items():
            opened = self.is_open and self.random.random() < 0.6
            self.axes.append(geon.Axis(name) if opened else geon.Axis(name, length))
            self.calls[1][name] = self.calls[1][name] if opened else length
        extra, length = geon.Axis("D"), self.pick(SHORT)
        self.extra = extra if self.is_open else geon.Axis("D", length)
        for call in self.calls:
            call["D"] = length
        self.rows = self.axes[: self.pick((1, 1, max(rank - 1, 1)))]

    def pick(self, values):
        return values[self.random.integers(len(values))]

    def chance(self, share):
        return self.random.random() < share

    def lengths(self, names):
        found = {name: int(self.pick(LENGTHS)) for name in names}
        while np.prod(list(found.values())) > LARGEST:
            found[self.pick(names)] = int(self.pick(SHORT))
        return found

    def placeholder(self, axes):
        self.placeholders.append(geon.placeholder(axes, dtype=self.pick(DTYPES)))
        return self.placeholders[-1]

    def free(self, axes):
        """A value that a kernel of its own computes, whose memory later ones may take."""
        x = self.placeholder(axes)
        axis, how = self.pick(axes), self.random.integers(3)
        if how == 0:
            return geon.cumsum(x, axis)
        if how == 1:
            return geon.cond(geon.sum(x) > 0, lambda: x * 2, lambda: x + 1)
        return geon.sort(x, axis)

    def program(self):
        self.whole = [self.free(self.axes) for _ in range(self.random.integers(1, 3))]
        self.each_row = [self.free(self.rows) for _ in range(self.random.integers(1, 4))]
        wide = self.placeholder([*(self.rows if self.chance(0.7) else self.axes), self.extra])
        for value in (*self.whole, wide):
            for _ in range(self.random.integers(3)):
                self.reduce(self.changed(value) if self.chance(0.4) else value)
        results = [self.result() for _ in range(self.random.integers(2, 6))]
        if not self.is_open and self.chance(0.3):
            results.append(self.effect())
        return Program(self.placeholders, results, self.variables, self.calls)

    def reduce(self, value):
        """Reduce a value to one for each row."""
        over = [axis for axis in value.axes if axis not in self.rows]
        if over:
            reduction = self.pick(REDUCTIONS[: 4 if kind(value.dtype) != "f" else 6])
            self.each_row.append(reduction(value, over))

    def changed(self, value):
        """A value of each element of another one."""
        if kind(value.dtype) != "f":
            return self.pick((value + 1, -value, geon.cast(value, "float32")))
        wide = geon.cast(value, "float64") if value.dtype.name == "float32" else value
        return self.pick((geon.sin(value), geon.tanh(value), value + 1, wide, -value))

    def of(self, values, others):
        """A value made of some, and of others that may have fewer axes."""
        value = self.pick(values)
        for _ in range(self.random.integers(3)):
            other = self.pick(others)
            value = self.pick((self.changed(value), value * other, value + other))
        return value

    def row(self):
        return self.of(self.each_row, self.each_row)

    def result(self):
        value = self.row()
        if self.chance(0.5):
            value = self.of(self.whole, [*self.whole, value])
        axis, how = self.pick(list(value.axes)), self.random.random()
        if how < 0.35:
            return geon.sort(value, axis)
        if how < 0.45:
            return geon.cumsum(value, axis)
        if how < 0.6:
            order = self.random.permutation(len(value.axes))
            return geon.reorder(value, [value.axes[k] for k in order])
        return value

    def effect(self):
        value = self.row()
        variable = geon.Variable(value.axes, initial_value=1, dtype=value.dtype)
        self.variables.append(variable)
        return geon.assign(variable, variable * 2 + value)
