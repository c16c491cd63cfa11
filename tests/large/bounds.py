"""What a graph computes in float64, and how far a correct program in its own dtypes may be off.

Each float value comes with a bound for each of its elements, carried from op to op: what the
operands may be off moves the result as far as it does when it is tried, and each op rounds. Where
all operands are exact and the result fits its dtype (sums of small integers do), it is exact, and a
program may not be off at all. A sum of float32 may be off by ``SUM_ULPS`` roundings of the sum of
magnitudes, however long it is, and a product by ``PRODUCT_ULPS``: what adds in blocks keeps that,
what adds one after the other does not. In float64 blocks of ``CHAIN`` terms are added one after
the other, and the terms of a product.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from geon.op_graph.building.constants import constant_value
from geon.op_graph.evaluation.interpreter import BoundOp, evaluate
from geon.op_graph.op_graph import Leaf, post_order
from geon.op_graph.rows.reductions import positions
from geon.op_graph.values.dtypes import kind
from geon.testing.comparison import same_bits

SUM_ULPS = 24.0
PRODUCT_ULPS = 64.0
CHAIN = 32
# Elementary functions, and divisions written as products.
ULPS = 32.0
ROUNDED_ONCE = frozenset(
    "add subtract multiply divide negative absolute square sqrt reciprocal maximum minimum where"
    " floor ceil round trunc sign copy stop_gradient cast".split()
)
MOVES = frozenset(
    "broadcast reorder rename flip flatten unflatten slice update concat pad gather checked "
    "window padded_windows unwindow diagonal".split()
)
WIDE = np.dtype(np.float64)
HALF_RANGE = 65504.0


class UndeterminedError(Exception):
    """A value that rounding may change by more than rounding: a comparison of near numbers."""


@dataclass(frozen=True, eq=False)
class Known:
    """A value in float64 (others in their dtype), and how far off it may be; None: not at all."""

    value: np.ndarray
    error: np.ndarray | None = None

    @property
    def exact(self):
        return self.error is None


class Reference:
    """The values of a growing graph under some lengths."""

    def __init__(self, lengths):
        self.lengths = lengths
        self.known = {}
        self.bounds = {}

    def give(self, leaf, array):
        """The data of a leaf, which is exact."""
        wide = array.astype(WIDE) if kind(leaf.dtype) == "f" else array
        self.known[leaf] = Known(wide)
        self.bounds[leaf] = self.bound(leaf)

    def bound(self, op):
        made = BoundOp(op, self.lengths, tuple(self.bounds[arg] for arg in op.args))
        if kind(op.dtype) == "f":
            made.dtype = WIDE
        return made

    def find(self, op):
        """What is known of an op; ``UndeterminedError`` where comparing it would not be fair."""
        for each in post_order([op]):
            if each in self.known:
                continue
            assert not isinstance(each, Leaf), f"no data of {each}"
            self.bounds[each] = self.bound(each)
            args = [self.known[arg] for arg in each.args]
            with np.errstate(all="ignore"):
                made = self.computed(each, self.bounds[each], args)
            self.refuse_overflow(each, made)
            self.known[each] = made
        return self.known[op]

    def refuse_overflow(self, op, known):
        """Raise where a half is out of its range, which kernels that keep it in float32 pass by."""
        if op.dtype.name == "float16" and known.value.size:
            largest = np.abs(known.value).max() + (0.0 if known.exact else known.error.max())
            if not largest < HALF_RANGE:
                raise UndeterminedError(f"{op} overflows")

    def computed(self, op, bound, args):
        """One op: by what its kind of op does with what its operands may be off."""
        name = op.primitive.name
        if name == "dot":
            return self.dot(op, bound, *args)
        value = self.apply(op, bound, [arg.value for arg in args])
        if kind(op.dtype) != "f":
            self.refuse_unsteady(op, bound, args, value)
            return Known(value)
        floats = [arg for arg in args if arg.value.dtype == WIDE]
        exact = all(arg.exact for arg in floats)
        if name in MOVES:
            if exact:
                return Known(value)
            moved = [_error(arg) if arg.value.dtype == WIDE else arg.value for arg in args]
            return Known(value, self.apply(op, bound, moved))
        if name == "sum":  # as exact as there is: one after the other, float64 is off by too much
            precise = np.add.reduce(args[0].value.astype(np.longdouble), axis=positions(op))
            value = np.asarray(precise, WIDE)
        if name == "cumsum":
            precise = evaluate(_Widened(op, np.dtype(np.longdouble)), bound, [args[0].value])
            value = precise.astype(WIDE)
        if name in ("sum", "cumsum", "scatter") or name in ("prod", "cumprod"):
            return getattr(self, f"_{name.removeprefix('cum')}")(op, bound, args, value)
        if exact and (name in ROUNDED_ONCE or op.primitive.kind != "elementwise"):
            return Known(value, _misfit(value, op.dtype))
        ulps = 0.5 if name in ROUNDED_ONCE else ULPS
        return self.steady(op, bound, args, value, ulps)

    def apply(self, op, bound, arrays):
        """The op on these arrays, floats in float64."""
        if op.primitive.name == "constant":
            held = constant_value(op)
            return held.astype(WIDE) if kind(op.dtype) == "f" else np.array(held)
        if op.primitive.name == "cast" and kind(op.dtype) == "f":
            return np.array(arrays[0], WIDE)
        if kind(op.dtype) != "f":
            return evaluate(op, bound, arrays)
        return evaluate(_Widened(op), bound, arrays)

    def steady(self, op, bound, args, value, ulps):
        """As far as each operand's error moves the value, and its rounding."""
        error = np.zeros(value.shape)
        values = [arg.value for arg in args]
        for k, arg in enumerate(args):
            if arg.exact:
                continue
            farthest = None
            for side in (arg.value + arg.error, arg.value - arg.error):
                moved = self.apply(op, bound, [*values[:k], side, *values[k + 1 :]])
                distance = np.abs(moved - value)
                farthest = distance if farthest is None else np.maximum(farthest, distance)
            error += farthest
        for sides in ((1, 1), (1, -1)):  # what operands may be off together
            moved = [
                arg.value if arg.exact else arg.value + sides[k > 0] * arg.error
                for k, arg in enumerate(args)
            ]
            error = np.maximum(error, np.abs(self.apply(op, bound, moved) - value))
        return Known(value, error + _rounding(np.abs(value) + error, op.dtype, ulps))

    def refuse_unsteady(self, op, bound, args, value):
        """Raise where rounding of an operand could change a value that is no float."""
        values = [arg.value for arg in args]
        for k, arg in enumerate(args):
            for side in () if arg.exact else (arg.value + arg.error, arg.value - arg.error):
                moved = self.apply(op, bound, [*values[:k], side, *values[k + 1 :]])
                if not np.array_equal(moved, value):
                    raise UndeterminedError(str(op))

    # Sums ---------------------------------------------------------------------------------------

    def _sum(self, op, bound, args, value):
        x = args[0]
        size = self.apply(op, bound, [np.abs(x.value)])
        if x.exact and _fits(x.value, size, op.dtype):
            return Known(value)
        error = 0.0 if x.exact else self.apply(op, bound, [x.error])
        count = max(2, x.value.size // max(1, value.size))
        if op.primitive.name == "cumsum":  # rounded once, in float64 with each addition
            ulps = 2 + (value.shape[op.axes.index(op.attrs.axis)] if op.dtype == WIDE else 0)
        else:
            ulps = min(count, SUM_ULPS + (count / CHAIN if op.dtype == WIDE else 0.0))
        return Known(value, error + _accumulated(size + error, value, op.dtype, ulps))

    def _prod(self, op, bound, args, value):
        x = args[0]
        if x.exact and np.isin(np.abs(x.value), (0.0, 1.0)).all():
            return Known(value)
        count = max(2, x.value.size // max(1, value.size))
        if op.primitive.name == "cumprod":
            count = x.value.shape[op.axes.index(op.attrs.axis)]
        largest = self.apply(op, bound, [np.abs(x.value) + _error(x)])
        error = largest - self.apply(op, bound, [np.abs(x.value)])
        return Known(value, error + _accumulated(largest, value, op.dtype, count))

    def _scatter(self, op, bound, args, value):
        x, index, part = args
        if x.exact and part.exact and op.attrs.mode == "set":
            return Known(value)
        error = self.apply(op, bound, [_error(x), index.value, _error(part)])
        if op.attrs.mode == "set":
            return Known(value, error)
        size = self.apply(op, bound, [np.abs(x.value), index.value, np.abs(part.value)])
        fits = x.exact and part.exact and _fits(x.value, size, op.dtype)
        if fits and _fits(part.value, size, op.dtype):
            return Known(value)
        times = np.bincount(index.value.ravel().astype(np.int64) % max(1, x.value.size)).max()
        return Known(value, error + _rounding(size + error, op.dtype, float(times) + 1))

    def dot(self, op, bound, x, y):
        """A contraction as products of matrices."""
        value = _matmul(op, x.value, y.value)
        if kind(op.dtype) != "f":
            return Known(value.astype(op.dtype))
        left, right = np.abs(x.value), np.abs(y.value)
        size = _matmul(op, left, right)
        if x.exact and y.exact and _fits(x.value, size, op.dtype, y.value):
            return Known(value)
        error = np.zeros(value.shape)
        if not x.exact:
            error += _matmul(op, x.error, right + _error(y))
        if not y.exact:
            error += _matmul(op, left, y.error)
        summed = [x.value.shape[op.args[0].axes.index(n)] for n in op.attrs.over]
        count = max(2, int(np.prod(summed)))
        ulps = min(count, PRODUCT_ULPS + (count / 2 if op.dtype == WIDE else 0.0))
        return Known(value, error + _accumulated(size + error, value, op.dtype, ulps))


class _Widened:
    """An op whose float result is of a wider dtype."""

    def __init__(self, op, dtype=WIDE):
        self.dtype = dtype
        self.primitive, self.args, self.file_info = op.primitive, op.args, op.file_info

    def __str__(self):
        return self.primitive.name


def _error(known):
    return np.zeros(known.value.shape) if known.error is None else known.error


def _eps(dtype):
    return float(ml_dtypes.finfo(dtype).eps)


def _rounding(size, dtype, ulps):
    """What so many roundings of values of this size may come to."""
    return ulps * _eps(dtype) * size + float(ml_dtypes.finfo(dtype).smallest_normal) * (size > 0)


def _accumulated(size, value, dtype, ulps):
    """The roundings of a sum: halves are added in float32, and rounded once."""
    if dtype.name in ("float16", "bfloat16"):
        wide = _rounding(size, np.dtype(np.float32), ulps)
        return wide + _rounding(np.abs(value) + wide, dtype, 1.0)
    return _rounding(size, dtype, ulps)


def _misfit(value, dtype):
    """None where all of these are numbers of the dtype; else how far off its numbers may be."""
    if dtype == WIDE or same_bits(value.astype(dtype).astype(WIDE), value).all():
        return None if dtype != WIDE else _in_float64(value)
    return _rounding(np.abs(value), dtype, 0.5)


def _in_float64(value):
    """Float64 holds what halves and quarters come to; what else was rounded is not known."""
    scaled = value * 4096.0
    if np.array_equal(scaled, np.trunc(scaled)) and (np.abs(scaled) < 2.0**52).all():
        return None
    return _rounding(np.abs(value), WIDE, 1.0)


def _grain(x):
    """The largest power of two, up to 1, that all of these are multiples of; 0 where it is tiny."""
    grain = 1.0
    while grain >= 2.0**-12:
        scaled = x / grain
        if np.array_equal(scaled, np.trunc(scaled)):
            return grain
        grain /= 4
    return 0.0


def _fits(x, size, dtype, y=None):
    """Whether each partial sum of magnitudes up to ``size`` is a number of the dtype."""
    grain = _grain(x) * (1.0 if y is None else _grain(y))
    if not grain:
        return False
    largest = float(np.max(size, initial=0.0)) / grain
    if not largest < 2.0 / _eps(np.dtype(np.float32) if dtype.itemsize < 4 else dtype):
        return False
    return dtype.itemsize >= 4 or largest < 2.0 / _eps(dtype)


def _matmul(op, x, y):
    """The contraction of two arrays as stacks of matrices."""
    xs, ys = op.args[0].axes.names, op.args[1].axes.names
    summed = op.attrs.over
    batch = [n for n in xs if n in ys and n not in summed]
    rows, columns = [n for n in xs if n not in ys], [n for n in ys if n not in xs]
    left = x.transpose([xs.index(n) for n in (*batch, *rows, *summed)])
    right = y.transpose([ys.index(n) for n in (*batch, *summed, *columns)])
    b, r = left.shape[: len(batch)], left.shape[len(batch) : len(batch) + len(rows)]
    c = right.shape[len(batch) + len(summed) :]
    depth = int(np.prod([x.shape[xs.index(n)] for n in summed], dtype=np.int64))
    sizes = [int(np.prod(s, dtype=np.int64)) for s in (b, r, c)]
    made = np.matmul(
        left.reshape(sizes[0], sizes[1], depth), right.reshape(sizes[0], depth, sizes[2])
    )
    names = [*batch, *rows, *columns]
    made = made.reshape((*b, *r, *c))
    return np.array(made.transpose([names.index(n) for n in op.axes.names]), order="C")
