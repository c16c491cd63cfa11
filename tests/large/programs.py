"""Random programs over large arrays, each with lengths at which the code changes its way.

A program is grown by the steps of ``tests.random_graphs`` from values that aim at some constants:
an ``Aim`` says which, and what is as long as it says (a row, the columns of a product, ...). Each
value is computed in float64 when it is added, with a bound of what a correct program may be off.
"""

import random
from dataclasses import dataclass, field, replace

import numpy as np

import geon
from geon.op_graph.op_graph import Leaf, post_order
from geon.op_graph.values.dtypes import kind
from tests import random_moves as moves
from tests import random_steps as steps
from tests.random_graphs import Builder, Value

from .bounds import Reference, UndeterminedError

MOST_ELEMENTS = 5 << 20  # of one value
MOST_PRECISE = 500  # elements of a function whose reference takes a millisecond for each
MOST_TOGETHER = 3 << 22  # of all values of a program in both calls
MOST_PRODUCTS = 1 << 29  # of one contraction
LARGEST = 1e9
FURTHER = [moves.reorder, moves.reorder, moves.broadcast, moves.rename, moves.flip, moves.flatten,
           moves.take, moves.take, moves.update, moves.concat, moves.stack, moves.pad,
           moves.window, moves.roll,
           *[steps.elementwise] * 5, *[steps.with_number] * 3, steps.cast, *[steps.reduction] * 5,
           steps.contraction, steps.contraction, moves.running, moves.parts, moves.gather,
           moves.scatter, moves.order, moves.constant, steps.composite, steps.composite,
           steps.derivative, steps.derivative]  # fmt: skip


@dataclass(frozen=True)
class Aim:
    """A length that a program is to have, because of a constant: ``near`` is where it lies."""

    constant: str
    near: str
    role: str
    length: int

    def __str__(self):
        return f"{self.role} {self.length} ({self.near} {self.constant})"


class Seeded:
    """Choices of a seed, as ``tests.random_graphs.Choices`` makes them."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self, low, high):
        return self.random.randint(low, high)

    def flag(self):
        return self.random.random() < 0.5


@dataclass
class Large(Builder):
    """A builder whose axes have the lengths of ``aims``, and whose values are computed at once."""

    aims: list = field(default_factory=list)

    def choose_lengths(self):
        self.special = False
        small = [3, 2, 4, 1, 5, 7]
        for name in ("N", "M", "K"):
            sizes = [self.choice(small) for _ in self.bindings]
            for binding, size in zip(self.bindings, sizes, strict=True):
                binding[name] = sizes[0] if name == "K" else size
        fixed = [geon.Axis(name, self.choice(small)) for name in "ABCD"]
        self.fixed = [*fixed, geon.Axis("K")]
        self.axes = [*self.fixed, geon.Axis("N"), geon.Axis("M")]
        self.references = [Reference(binding) for binding in self.bindings]
        self.left = MOST_TOGETHER
        self.steady = False  # float64 alone, which is never too coarse
        self.data = None  # what the elements of leaves are to be
        self.lengths = 0

    # Values -------------------------------------------------------------------------------------

    def add(self, op, bound=0.0, error=0.0, smooth=True):
        if len(op.axes) > 5 or not self.affordable(op):
            return None
        try:
            found = [reference.find(op) for reference in self.references]
        except UndeterminedError:
            return None
        bound, error = 0.0, 0.0
        for known in found:
            if kind(op.dtype) == "f" and known.value.size:
                if not (
                    np.isfinite(known.value).all()
                    and (known.exact or np.isfinite(known.error).all())
                ):
                    return None
                bound = max(bound, float(np.abs(known.value).max()))
                error = max(error, 0.0 if known.exact else float(known.error.max()))
            elif kind(op.dtype) == "i" and known.value.size:
                bound = max(bound, abs(float(known.value.max())), abs(float(known.value.min())))
        if kind(op.dtype) == "f":
            largest = 3e4 if op.dtype.name == "float16" else LARGEST
            if not bound <= largest or not error <= 0.2 * max(1.0, bound):
                return None
        value = Value(op, max(bound, 1e-9), error, smooth)
        self.values.append(value)
        return value

    def measured(self, made):
        for op in made:
            self.add(op)

    def affordable(self, op):
        """Whether there is time and memory for what is new in ``op``; then it is counted."""
        cost = 0
        for each in post_order([op]):
            if each in self.references[0].known:
                continue
            size = self.most(each.axes)
            if each.primitive.name == "dot":
                size *= self.most([each.args[0].axes[n] for n in each.attrs.over])
                if size > MOST_PRODUCTS:
                    return False
                size = self.most(each.axes)
            if size > (MOST_PRECISE if is_precise(each) else MOST_ELEMENTS):
                return False
            cost += 2 * size
        if cost > self.left:
            return False
        self.left -= cost
        return True

    # Leaves -------------------------------------------------------------------------------------

    def array(self, dtype, shape):
        """Whole numbers and halves, of which sums are exact; or any, of one sign, or all equal.

        Some rise or fall, so that the first or the last element of a line matters most.
        """
        drawn = np.random.default_rng(self.integer(0, 2**31))
        if kind(dtype) == "b":
            return drawn.integers(0, 2, shape).astype(bool)
        which = self.choice(["whole", "any", "positive", "equal", "whole", "rising", "rising"])
        which = self.data or which
        if which == "rising" and kind(dtype) != "b":
            most = 100 if dtype.itemsize == 1 else 1000 if dtype.itemsize == 2 else 1 << 20
            made = np.arange(int(np.prod(shape, dtype=np.int64))) % most
            return (made[::-1] if self.flag() else made).reshape(shape).astype(dtype)
        if kind(dtype) == "i":
            low = 0 if dtype.kind == "u" else -9
            return drawn.integers(low, 10, shape).astype(dtype)
        if which == "whole":
            made = drawn.integers(-4, 5, shape) / 2
        elif which == "any":
            made = drawn.uniform(-2, 2, shape)
        elif which == "positive":
            made = drawn.uniform(0, 1, shape)
        else:
            made = np.full(shape, self.choice([0.1, -0.7, 1.3]))
        return made.astype(dtype)

    def placeholder(self, dtype=None, axes=None):
        dtype = self.dtype() if dtype is None else geon.cast(0, dtype).dtype
        axes = self.some(self.axes, most=3) if axes is None else axes
        leaf = geon.placeholder(axes, dtype)
        arrays = [self.array(dtype, [self.sizes(a)[k] for a in leaf.axes]) for k in (0, 1)]
        self.placeholders.append((leaf, arrays))
        self.give(leaf, arrays)
        return leaf

    def variable(self, dtype="float32", axes=None):
        dtype = geon.cast(0, dtype).dtype
        axes = self.some(self.fixed, most=2) if axes is None else axes
        array = self.array(dtype, [self.sizes(a)[0] for a in axes])
        leaf = geon.Variable(axes, dtype, initial_value=array if array.ndim else array.item())
        self.give(leaf, [array, array])
        self.variables.append((leaf, array))
        return leaf

    def give(self, leaf, arrays):
        for reference, array in zip(self.references, arrays, strict=True):
            reference.give(leaf, array)
        self.add(leaf)

    # Axes ---------------------------------------------------------------------------------------

    def axis(self, length, other=None):
        """A new axis of a length, known or open: then the other call has another length."""
        self.lengths += 1
        name = f"L{self.lengths}"
        if self.integer(0, 2):
            made = geon.Axis(name, length)
        else:
            sizes = [length, max(1, length - 1) if other is None else other]
            for binding, size in zip(self.bindings, sizes, strict=True):
                binding[name] = size
            made = geon.Axis(name)
        return made

    def shuffled(self, axes):
        return self.some(list(axes), least=len(axes))

    def float(self):
        """A dtype of floats."""
        if self.steady:
            return "float64"
        return self.choice(["float32"] * 6 + ["float64"] * 3 + ["float16", "bfloat16"])

    def number(self):
        """Any dtype of numbers."""
        return self.choice([self.float(), self.float(), "int32", "int64", "int8", "uint16"])

    def turned(self, op):
        """The same elements, perhaps with the axes in another order, some of them backwards."""
        if len(op.axes) and not self.integer(0, 3):
            op = geon.flip(op, self.some(op.axes, least=1, most=1))
        if len(op.axes) > 1 and self.flag():
            op = geon.reorder(op, self.shuffled(op.axes))
        return op


@dataclass(frozen=True, eq=False)
class Program:
    """Results with the data of two calls, and what is known of their values in each."""

    aims: list
    results: list
    placeholders: list
    feeds: list
    variables: list
    bindings: list
    known: list  # of each call, of each result
    check: str | None
    updates: list  # (variable, its new value as an op)

    def alone(self, k):
        """The program of one of the results."""
        known = [[found[k]] for found in self.known]
        return replace(self, results=[self.results[k]], known=known, updates=[])

    def __str__(self):
        shown = "; ".join(str(op)[:60] + str(op.axes) for op in self.results)
        return f"{', '.join(map(str, self.aims))}: {shown}"


def grown(seed, number, aims, further=6):
    """The program of a seed and a number with these aims, and some ``further`` steps."""
    from .roles import ROLES

    choices = Seeded(f"{seed} {number}")
    b = Large(choices, aims=list(aims))
    for stream in b.streams:  # their counters say how often they were called
        for call, reference in enumerate(b.references):
            reference.give(stream.counter, np.asarray(call, np.uint64))
    b.placeholder("bool", [geon.Axis(name) for name in ("N", "M", "K")])
    b.placeholder("float32")
    wanted = []
    for aim in aims:
        wanted += aimed(b, aim, ROLES[aim.role])[-6:]
    for _ in range(choices.integer(0, further)):
        b.choice(FURTHER)(b)
    newest = [v for v in b.values[-3:] if not isinstance(v.op, Leaf)]
    chosen = list(dict.fromkeys(v.op for v in [*wanted, *newest]))
    chosen = b.shuffled(chosen)
    updates = assigned(b)
    return finished(b, aims, chosen, updates)


def is_precise(op):
    """Whether the meaning of an op is computed number by number in many digits."""
    return "precise" in getattr(op.primitive.reference, "__qualname__", "")


def aimed(b, aim, role):
    """The values that a role adds: where they were too many or too coarse, others in float64."""
    for _ in range(8):
        before = len(b.values)
        role(b, aim.length)
        made = [v for v in b.values[before:] if not isinstance(v.op, Leaf)]
        if made:
            return made
        b.left += MOST_TOGETHER // 4
        b.steady = True
    raise AssertionError(f"nothing came of {aim}")


def assigned(b):
    """New values for some variables, of what was computed."""
    found = []
    for leaf, _ in b.variables:
        fits = [v for v in b.values if v.op is not leaf and suits(v.op, leaf)]
        if fits and b.flag():
            value = b.choice(fits).op
            found.append((leaf, geon.broadcast(value, leaf.axes)))
    return found


def suits(op, leaf):
    """Whether a value could be assigned to a leaf."""
    return (
        op.dtype is leaf.dtype
        and op.axes.same_set(leaf.axes)
        and all(op.axes[axis.name].expression == axis.expression for axis in leaf.axes)
    )


def finished(b, aims, chosen, updates):
    used = {leaf for leaf, _ in b.variables}
    known = [[reference.find(op) for op in chosen] for reference in b.references]
    for reference in b.references:
        for _, value in updates:
            reference.find(value)
    check = "nan" if any(aim.role == "finite" for aim in aims) else None
    return Program(
        list(aims),
        chosen,
        [leaf for leaf, _ in b.placeholders],
        [[arrays[k] for _, arrays in b.placeholders] for k in (0, 1)],
        [(leaf, array) for leaf, array in b.variables if leaf in used],
        b.bindings,
        known,
        check,
        [(leaf, value, [r.find(value) for r in b.references]) for leaf, value in updates],
    )
