"""Random programs over large arrays, grown by the steps of ``tests.random_graphs``.

Values have some 10^5 to 10^7 elements. Nothing is computed while a program grows: floats are taken
to be of moderate size, and what comes out not finite is left out by whoever runs it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon
from geon.op_graph.op_graph import Leaf, Op, post_order
from geon.op_graph.values.dtypes import kind
from geon.transformers.binding.open_lengths import open_names
from tests import random_moves as moves
from tests import random_steps as steps
from tests.random_graphs import Builder, Value

Array = np.ndarray[Any, Any]

FEWEST, MOST = 5.0, 7.0  # decimal logarithm of the elements that main values have
SMALL_FEWEST, SMALL_MOST = 2.0, 3.0  # of a trial run
TOGETHER = 12  # times so many elements may all values of a program have
PRODUCTS = 1 << 33  # multiply-adds of one contraction
LARGE = 0.1  # part of the main values' elements from which on a value counts as large
MODERATE = 8.0  # what the size of floats is taken to be
ROUNDED = 1e-6  # an error that is not 0
PLAIN = (
    "add add add subtract subtract multiply multiply multiply divide negative absolute square"
    " maximum maximum minimum where where sqrt rsqrt reciprocal less greater equal sign floor round"
).split()
FUNCTIONS = (
    "exp exp tanh tanh log sigmoid sigmoid softplus sin cos erf expm1 log1p gelu_tanh silu power"
    " atan sinh atan2 logical_and bitwise_and mod"
).split()
ANYWHERE = frozenset("tanh sigmoid softplus sin cos erf gelu_tanh silu atan".split())
COLUMNS = (1, 2, 5, 8, 16, 32, 33, 64, 100, 128, 256, 512, 1000)
NOT_INTEGER = frozenset("power mod floordivide".split())  # what integers mean there differs


def elementwise(b: Large) -> None:
    """A row of the registry, the cheap ones most often."""
    name = b.choice(FUNCTIONS if b.integer(0, 3) == 0 else PLAIN)
    row = steps.ROWS[name]
    values = steps.operands(b, row)
    if values is None or (name in NOT_INTEGER and all(v.kind != "f" for v in values)):
        return
    if row.rule == "select":
        steps.where(b, values)
    elif row.rule in ("logical", "bits") or not any(v.kind == "f" for v in values):
        if all(v.exact for v in values):
            b.add(steps.applied(row, values), np.inf)
    elif row.rule == "compare":
        if all(v.exact for v in values):
            b.add(steps.applied(row, values), 1)
    elif name in ANYWHERE:  # not held inside an interval first
        value = values[0]
        b.rounded(row(value.op), MODERATE, value.error, smooth=value.smooth)
    else:
        steps.float_row(b, name, row, values)


def product(b: Large) -> None:
    """A product of a large value and a new matrix over one of its axes, few or many columns."""
    x = b.pick(lambda v: v.kind == "f" and len(v.axes) > 0)
    if x is None:
        return
    axis = b.choice(x.axes)
    room = b.total / b.least(axis)
    columns = b.new_axis(b.choice([n for n in COLUMNS if n <= room] or [1]))
    b.placeholder(x.op.dtype, b.some([axis, columns], least=2))
    made = geon.dot(x.op, b.placeholders[-1][0], over=axis)
    b.rounded(made, MODERATE, 1.0, smooth=x.smooth)


def operand(b: Large) -> None:
    """A new input that may meet the values there are."""
    b.placeholder()


def placed(step: Callable[[Any], None]) -> Callable[[Large], None]:
    """A step that may ask for positions, which are an input of their own."""

    def found(b: Large) -> None:
        b.places = True
        step(b)
        b.places = False

    return found


def pad(b: Large) -> None:
    """A border of one number, which JAX has too."""
    x = b.pick(lambda v: len(v.axes) > 0)
    axes = b.some(x.axes, least=1, most=2)
    widths = {axis: (b.integer(0, 2), b.integer(0, 3)) for axis in axes}
    b.moved(geon.pad(x.op, widths, "constant", b.integer(0, 1)), x, bound=1.0)


FORWARD: list[Callable[[Any], None]] = [
    moves.reorder, moves.reorder, moves.broadcast, moves.flip, moves.flatten, moves.take,
    moves.take, moves.update, moves.concat, moves.concat, moves.stack, pad,
    *[elementwise] * 8, *[steps.with_number] * 3, steps.cast, *[steps.reduction] * 5,
    steps.contraction, steps.matrices, product, product, product,
    moves.running, moves.running, placed(moves.gather),
    placed(moves.scatter), moves.order, steps.composite, steps.composite, operand, operand,
]  # fmt: skip
ALL = [*FORWARD, moves.pad, steps.derivative, steps.derivative, steps.derivative]


class TooLargeError(Exception):
    """A step that wants an input of too many elements, and is given up."""


class Seeded:
    """Choices of a seed, as ``tests.random_graphs.Choices`` makes them."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def flag(self) -> bool:
        return self.random.random() < 0.5


class Large(Builder):
    """A builder of one call, whose values are large and not computed."""

    def __init__(self, seed: str, small: bool) -> None:
        self.small = small
        super().__init__(Seeded(seed))

    def choose_lengths(self) -> None:
        """Up to three axes that main values have, and short ones beside them."""
        fewest, most = (SMALL_FEWEST, SMALL_MOST) if self.small else (FEWEST, MOST)
        drawn = self.choices.random
        self.total = 10 ** drawn.uniform(fewest, most)
        self.bindings = [{}]
        self.special = self.places = False
        self.left = TOGETHER * self.total
        self.known: set[Op] = set()
        count = self.choice([1, 2, 2, 2, 3, 3])
        parts = sorted(drawn.random() for _ in range(count - 1))
        parts = [b - a for a, b in zip([0.0, *parts], [*parts, 1.0], strict=True)]
        sizes = [max(2, round(self.total**part)) for part in parts]
        self.main = [self.axis(name, self.rounded_length(n)) for name, n in zip("NMK", sizes)]  # noqa: B905
        self.fixed = [self.axis(n, self.choice([2, 3, 4, 5, 8, 16, 32, 50, 64])) for n in "AB"]
        self.axes = [*self.main, *self.fixed]

    def rounded_length(self, length: int) -> int:
        """A length as it is, or a multiple of 8 or 64 near it, as lengths often are."""
        for step in (64, 8):
            if length > 2 * step and self.integer(0, 2) == 0:
                return length // step * step
        return length

    def axis(self, name: str, length: int) -> geon.Axis:
        """An axis of a known length, or an open one."""
        self.bindings[0][name] = length
        return geon.Axis(name) if self.integer(0, 3) == 0 else geon.Axis(name, length)

    # Values -------------------------------------------------------------------------------------

    def elements(self, axes: Any) -> int:
        """How many elements some axes have."""
        return self.most(axes if isinstance(axes, geon.Axes) else list(axes))

    def add(self, op: Any, bound: float, error: float = 0.0, smooth: bool = True) -> Any:
        """Know a value, unless there would be too much to compute; its size is not known."""
        if len(op.axes) > 4 or not self.affordable(op):
            return None
        bound = min(float(bound), MODERATE if kind(op.dtype) == "f" else 100.0)
        value = Value(op, bound, ROUNDED if error else 0.0, smooth)
        self.values.append(value)
        return value

    def measured(self, made: Any) -> None:
        for op in made:
            self.add(op, MODERATE, ROUNDED)

    def affordable(self, op: Op) -> bool:
        """Whether there is time and memory for what is new; then it is counted."""
        new = [each for each in post_order([op]) if each not in self.known]
        cost = 0
        for each in new:
            size = self.elements(each.axes)
            if size > 1.3 * 10**MOST:
                return False
            if each.primitive.name == "dot":
                depth = self.elements([each.args[0].axes[n] for n in each.attrs.over])
                if size * depth > PRODUCTS:
                    return False
            cost += size
        if cost > self.left:
            return False
        self.left -= cost
        self.known.update(new)
        return True

    def pick(self, test: Any = lambda value: True) -> Any:
        """A value that passes the test, mostly a large one."""
        large = LARGE * self.total
        if self.integer(0, 7):
            found = super().pick(lambda v: self.elements(v.axes) >= large and test(v))
            if found is not None:
                return found
        return super().pick(test)

    def partner(self, *others: Any, test: Any = lambda value: True) -> Any:
        """A value that may meet the others; where the axes together are not too many elements."""
        axes = {axis.name: axis for other in others for axis in other.axes}

        def fits(value: Any) -> bool:
            together = {**axes, **{axis.name: axis for axis in value.axes}}
            return self.elements(together.values()) <= 10**MOST and bool(test(value))

        return super().partner(*others, test=fits)

    def positions(self, length: Any) -> Any:
        """A new input of positions, all over a length; None in steps that need none."""
        count = self.least(length)
        if not self.places or count == 0:
            return None
        axes = self.some(self.axes, least=1, most=2)
        if not 10 <= self.elements(axes) <= self.total:
            return None
        dtype = self.choice(["int64", "int64", "int32"])
        leaf = geon.placeholder(axes, dtype)
        drawn = np.random.default_rng(self.integer(0, 2**31))
        array = drawn.integers(0, count, [self.least(a) for a in axes]).astype(dtype)
        self.placeholders.append((leaf, [array]))
        self.known.add(leaf)
        return leaf

    # Leaves -------------------------------------------------------------------------------------

    def dtype_name(self) -> str:
        return self.choice(["float32"] * 12 + ["float64", "float64", "int32", "int64", "bool",
                            "float16", "bfloat16", "int8", "uint8"])  # fmt: skip

    def array(self, dtype: Any, shape: Any) -> Array:
        drawn = np.random.default_rng(self.integer(0, 2**31))
        if kind(dtype) == "b":
            return drawn.integers(0, 2, shape).astype(bool)
        if kind(dtype) == "i":
            low = 0 if dtype.kind == "u" else -9
            return drawn.integers(low, 10, shape).astype(dtype)
        return drawn.uniform(-1, 1, shape).astype(dtype)

    def placeholder(self, dtype: Any = None, axes: Any = None) -> None:
        """An input over the main axes, or over some that are not too few elements or too many."""
        dtype = self.dtype() if dtype is None else np.dtype(dtype)
        if axes is None:
            axes = self.main
            if self.integer(0, 2):
                axes = self.some(self.axes, least=1, most=3)
            if self.elements(axes) > self.total:
                axes = self.main
        if self.elements(axes) > 1.3 * 10**MOST:
            raise TooLargeError
        leaf = geon.placeholder(axes, dtype)
        self.placeholders.append((leaf, [self.array(dtype, [self.least(a) for a in axes])]))
        self.known.add(leaf)
        self.values.append(Value(leaf, self.leaf_bound(dtype)))


@dataclass(frozen=True, eq=False)
class Program:
    """Results, the inputs that they need with their data, and lengths of open axes."""

    seed: str
    number: int
    results: list[Any]
    placeholders: list[Leaf]
    feeds: list[Array]
    lengths: dict[str, int]
    smooth: list[Any]  # the results that can be compared after a derivative is taken

    def unfed(self, results: Any = None, placeholders: Any = None) -> dict[str, int]:
        """The lengths that no input has, by name."""
        inputs = self.placeholders if placeholders is None else placeholders
        fed = {axis.name for leaf in inputs for axis in leaf.axes}
        names = open_names(post_order(self.results if results is None else results))
        return {name: n for name, n in self.lengths.items() if name in names and name not in fed}

    def dumped(self, results: list[Any] | None = None) -> str:
        """The program with its data, for ``python -m geon replay``."""
        ops = self.results if results is None else results
        used = {op for op in post_order(ops) if isinstance(op, Leaf)}
        known = dict(zip(self.placeholders, self.feeds, strict=True))
        feeds = {leaf: array for leaf, array in known.items() if leaf in used}
        names = open_names(post_order(ops))
        lengths = {name: n for name, n in self.lengths.items() if name in names}
        return geon.dumps(ops, feeds=feeds, lengths=lengths)

    def __str__(self) -> str:
        return "; ".join(f"{op.primitive.name}{op.axes} {op.dtype.name}" for op in self.results)


def grown(seed: str, number: int, derivatives: bool = True, small: bool = False) -> Program:
    """The program of a seed and a number; without ``derivatives`` it takes none."""
    for attempt in range(100):
        b = Large(f"{seed} {number} {attempt}", small)
        b.placeholder("float32", b.main)
        for _ in range(b.integer(1, 3)):
            b.placeholder()
        for _ in range(b.integer(6, 16)):
            with suppress(TooLargeError):
                b.choice(ALL if derivatives else FORWARD)(b)
        made = [v for v in b.values if not isinstance(v.op, Leaf)]
        large = [v for v in made if b.elements(v.axes) >= LARGE * b.total]
        if len(made) >= 3 and large:
            return finished(b, seed, number, made)
    raise AssertionError(f"no program came of {seed} {number}")


def finished(b: Large, seed: str, number: int, made: list[Value]) -> Program:
    """The program of a builder: its newest values, and some of those that nothing else uses."""
    used = {arg for v in made for arg in v.op.args}
    last = [v for v in made if v.op not in used]
    chosen = list(dict.fromkeys([made[-1], *b.some(last, least=min(2, len(last)), most=3)]))
    results = list(dict.fromkeys(v.op for v in chosen))
    leaves = {op for op in post_order(results) if isinstance(op, Leaf)}
    kept = [(leaf, arrays[0]) for leaf, arrays in b.placeholders if leaf in leaves]
    smooth = [v.op for v in chosen if v.kind == "f" and v.smooth]
    placeholders, feeds = [leaf for leaf, _ in kept], [array for _, array in kept]
    return Program(seed, number, results, placeholders, feeds, b.bindings[0], smooth)
