"""Random graphs of geon for property tests, with the feeds of two calls.

A graph grows step by step from leaves; ``random_steps`` has the steps. What is random comes from
``Choices``: hypothesis's, or a seed's, where no shrinking is wanted (``tests.large``). Each value
carries a bound on its size and on how far two correct evaluations of it may lie apart, so that
results can be compared tightly, and steps that jump (a floor, a sort, a comparison) take only exact
values.
"""

from dataclasses import dataclass, field
from functools import cache

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.transforms.functionalize import functional
from geon.op_graph.values.dtypes import DTYPES, FLOATS, kind, promote

MOST_ELEMENTS = 600
LARGEST = 1000.0  # a float beyond this is not used further
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)
VARIABLE_ERROR = 1e-3  # how far apart the values of a float variable may be
OPEN = ("N", "M", "K")


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor; ``error`` 0 means equal bit for bit, ``smooth`` that its derivative is stable."""

    op: geon.Tensor
    bound: float
    error: float = 0.0
    smooth: bool = True

    @property
    def axes(self):
        return self.op.axes

    @property
    def kind(self):
        return kind(self.op.dtype)

    @property
    def exact(self):
        return self.error == 0


@dataclass
class Case:
    """Results to compute, with the arrays of two calls for each placeholder and their lengths."""

    results: list
    errors: list
    placeholders: list
    feeds: list
    lengths: list
    variable_errors: dict


@cache
def eps(dtype):
    """The relative rounding error of a float dtype."""
    return float(ml_dtypes.finfo(dtype).eps)


def limits(dtype):
    """The largest and smallest value that random integers of a dtype take."""
    info = np.iinfo(dtype)
    return max(int(info.min), -9), min(int(info.max), 9)


class Choices:
    """Random choices that hypothesis makes, and can shrink."""

    def __init__(self, draw):
        self.draw = draw

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def flag(self):
        return self.draw(st.booleans())


@dataclass
class Builder:
    """The graph so far, grown by ``choices``."""

    choices: Choices
    values: list = field(default_factory=list)
    placeholders: list = field(default_factory=list)
    variables: list = field(default_factory=list)

    def __post_init__(self):
        self.bindings = [{}, {}]
        self.choose_lengths()
        self.fresh = 0
        self.streams = [geon.Random(self.integer(0, 3)), geon.Random(7)]

    def choose_lengths(self):
        """The axes that leaves have, and the lengths of open ones in each call."""
        # Most graphs have no axis of length 0: there is little to see where nothing is computed.
        counts = [3, 2, 4, 1, 5, *([0] if self.integer(0, 7) == 7 else [])]
        self.special = self.integer(0, 7) == 7
        for name in OPEN:
            sizes = [self.choice(counts) for _ in self.bindings]
            for binding, size in zip(self.bindings, sizes, strict=True):
                binding[name] = sizes[0] if name == "K" else size
        fixed = [geon.Axis(name, self.choice(counts)) for name in "ABCD"]
        self.fixed = [*fixed, geon.Axis("K")]
        self.axes = [*self.fixed, geon.Axis("N"), geon.Axis("M"), geon.Axis("E", "N")]

    # Choices ------------------------------------------------------------------------------------

    def integer(self, low, high):
        return self.choices.integer(low, high)

    def choice(self, options):
        options = list(options)
        return options[self.integer(0, len(options) - 1)]

    def flag(self):
        return self.choices.flag()

    def some(self, options, least=0, most=None):
        """Some of the options, each at most once, in any order."""
        options, found = list(options), []
        most = len(options) if most is None else min(most, len(options))
        for _ in range(self.integer(min(least, most), most)):
            found.append(options.pop(self.integer(0, len(options) - 1)))
        return found

    def new_axis(self, length):
        self.fresh += 1
        return geon.Axis(f"F{self.fresh}", length)

    # Lengths ------------------------------------------------------------------------------------

    def sizes(self, length):
        """A length in each of the calls; an ``Axis`` is taken for its length."""
        if isinstance(length, geon.Axis):
            length = length.expression
        return [evaluate(length, binding) for binding in self.bindings]

    def least(self, length):
        return min(self.sizes(length))

    def most(self, axes):
        """The largest number of elements over these axes, at least 1."""
        return max(1, *self.sizes(geon.Axes(axes).size))

    # Values -------------------------------------------------------------------------------------

    def add(self, op, bound, error=0.0, smooth=True):
        """Know a new value, unless it is too large to be of use."""
        if len(op.axes) > 5 or self.most(op.axes) > MOST_ELEMENTS:
            return None
        if kind(op.dtype) == "f":
            if not bound <= LARGEST or not error <= 0.2 * max(1.0, bound):
                return None
        elif kind(op.dtype) == "b":
            bound = 1.0
        else:
            bound = min(bound, float(np.iinfo(op.dtype).max))
        value = Value(op, float(bound), float(error), smooth)
        self.values.append(value)
        return value

    def rounded(self, op, bound, error, ulps=1.0, smooth=True):
        """A float value with one more rounding; integers and bool have none."""
        if kind(op.dtype) == "f":
            error += ulps * eps(op.dtype) * bound
        return self.add(op, bound, error, smooth)

    def measured(self, made):
        """Values whose bounds are found by computing them."""
        pure = functional(made)
        largest, finite = np.zeros(len(made)), True
        scale = 1.0
        for k, binding in enumerate(self.bindings):
            leaves = {leaf: arrays[k] for leaf, arrays in self.placeholders}
            for value in self.variables:
                initial = value.op.info.initial_value
                leaves[value.op] = interpret([initial], {}, binding)[initial]
            for stream in self.streams:
                leaves[stream.counter] = np.uint64(k)
            values = interpret(pure.roots, leaves, binding)
            for op, array in values.items():
                if kind(op.dtype) == "f" and array.size:
                    with np.errstate(all="ignore"):
                        size = float(np.abs(array.astype(np.float64)).max())
                    finite = finite and np.isfinite(size)
                    scale = max(scale, size) if finite else scale
            for position, op in enumerate(pure.outputs):
                array = values[op]
                if array.size and finite:
                    largest[position] = max(largest[position], float(np.abs(array).max()))
        if not finite or scale > LARGEST:
            return
        variable = max([v.error for v in self.variables if v.kind == "f"], default=0.0)
        for op, bound in zip(made, largest, strict=True):
            error = (256 * eps(op.dtype) + 16 * variable) * scale**2
            self.add(op, 4 * bound + 1, error)

    def moved(self, op, *values, bound=0.0):
        """The same elements elsewhere: no new error."""
        return self.add(
            op,
            max(bound, *(v.bound for v in values)),
            max(v.error for v in values),
            all(v.smooth for v in values),
        )

    def pick(self, test=lambda value: True):
        """A value that passes the test, the newest most likely; None when there is none."""
        found = [value for value in self.values if test(value)]
        if not found:
            return None
        return found[-1 - min(self.integer(0, len(found) - 1), self.integer(0, len(found) - 1))]

    def pick_float(self, smooth=False):
        return self.pick(lambda v: v.kind == "f" and (v.smooth or not smooth))

    def partner(self, *others, test=lambda value: True):
        """A value that may meet the ``others`` in an elementwise op."""

        def agrees(x, y):
            shared = [axis for axis in y.axes if axis in x.axes]
            same = all(x.axes[a.name].expression == a.expression for a in shared)
            return same and promotable(x.op.dtype, y.op.dtype)

        def meets(y):
            near = others[-1]
            touches = any(axis in near.axes for axis in y.axes)
            joined = touches or not len(near.axes) or not len(y.axes)
            return joined and test(y) and all(agrees(x, y) for x in others)

        return self.pick(meets)

    def positions(self, length):
        """A value of positions along a length that is never 0: an int64 value inside it."""
        x = self.pick(lambda v: v.kind == "i" and v.exact and v.op.dtype.name != "uint64")
        if x is None or self.least(length) == 0:
            return None
        size = geon.tensor_size(geon.iota(geon.Axis("size", length)))
        inside = geon.mod(geon.cast(x.op, "int64"), size)
        return inside - size if self.flag() else inside

    # Leaves -------------------------------------------------------------------------------------

    def array(self, dtype, shape):
        """An array with moderate values; zeros, equal elements and both signs are likely."""
        seed = self.integer(0, 2**16)
        random = np.random.default_rng(seed)
        if kind(dtype) == "b":
            return random.integers(0, 2, shape).astype(bool)
        if kind(dtype) == "i":
            low, high = limits(dtype)
            return random.integers(low, high + 1, shape).astype(dtype)
        made = random.uniform(-2, 2, shape)
        if seed % 3 == 0:
            made = random.integers(-4, 5, shape) / 2
        if self.special:
            made = np.where(random.random(shape) < 0.2, random.choice(SPECIAL, shape), made)
        return made.astype(dtype)

    def dtype(self):
        return np.dtype(ml_dtypes.bfloat16) if (name := self.dtype_name()) == "bfloat16" \
            else np.dtype(name)  # fmt: skip

    def dtype_name(self):
        return self.choice(["float32", *DTYPES, "float32", "float64", "int64", "int32"])

    def leaf_bound(self, dtype):
        return {"b": 1.0, "i": 9.0, "f": 2.0}[kind(dtype)]

    def placeholder(self, dtype=None, axes=None):
        dtype = self.dtype() if dtype is None else np.dtype(dtype)
        axes = self.some(self.axes, most=3) if axes is None else axes
        leaf = geon.placeholder(axes, dtype)
        arrays = [self.array(dtype, [self.sizes(a)[k] for a in leaf.axes]) for k in (0, 1)]
        self.placeholders.append((leaf, arrays))
        self.add(leaf, self.leaf_bound(dtype))

    def variable(self):
        """A variable, whose axes have the same lengths in both calls."""
        dtype = self.choice(["float32", "float64", "int32", "float16", "bool", "uint8"])
        axes = self.some(self.fixed, most=3)
        array = self.array(geon.cast(0, dtype).dtype, [self.sizes(a)[0] for a in axes])
        leaf = geon.Variable(axes, dtype, initial_value=array if array.ndim else array.item())
        error = VARIABLE_ERROR if kind(leaf.dtype) == "f" else 0.0
        value = self.add(leaf, self.leaf_bound(leaf.dtype), max(error, self.coarse(leaf.dtype)))
        self.variables.append(value or Value(leaf, self.leaf_bound(leaf.dtype), error))

    def coarse(self, dtype):
        return 4 * eps(dtype) if kind(dtype) == "f" else 0.0


def promotable(left, right):
    """Whether two dtypes have a common one."""
    try:
        promote(left, right)
    except geon.DTypeError:
        return False
    return True


def dtype_of(*values):
    """The dtype that the values promote to."""
    found = values[0].op.dtype
    for value in values[1:]:
        found = promote(found, value.op.dtype)
    return found


@st.composite
def graphs(draw, steps, effects=False):
    """A ``Case`` grown by some of the ``steps``: functions of a ``Builder``."""
    from .random_effects import add_effects

    builder = Builder(Choices(draw))
    builder.placeholder(draw(st.sampled_from(["float32", "float64", "float32", "float16"])))
    builder.placeholder("bool", [geon.Axis(name) for name in OPEN])  # every open name has data
    for _ in range(builder.integer(1, 3)):
        builder.placeholder()
    for _ in range(builder.integer(1 if effects else 0, 2)):
        builder.variable()
    for step in draw(st.lists(st.sampled_from(steps), min_size=6, max_size=24)):
        step(builder)
    return finished(builder, add_effects(builder) if effects else [])


def finished(builder, effects):
    """The case of a builder: some of its values, the newest among them, and the effects."""
    chosen = [builder.values[-1], *builder.some(builder.values[:-1], most=4)]
    results = [(value.op, value.error) for value in chosen] + list(effects)
    results = builder.some(results, least=len(results))
    return Case(
        [op for op, _ in results],
        [error for _, error in results],
        [leaf for leaf, _ in builder.placeholders],
        [[arrays[k] for _, arrays in builder.placeholders] for k in (0, 1)],
        builder.bindings,
        {value.op: value.error for value in builder.variables},
    )


__all__ = ["FLOATS", "Builder", "Case", "Value", "dtype_of", "eps", "graphs"]
