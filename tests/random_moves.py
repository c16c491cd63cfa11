"""Steps of random graphs that move elements: slices, concatenation, gathers, orders, draws."""

import numpy as np

import geon
from geon.op_graph.values.dtypes import kind

from .random_graphs import dtype_of, promotable
from .random_steps import small

# Movement ---------------------------------------------------------------------------------------


def reorder(b):
    x = b.pick(lambda v: len(v.axes) > 1)
    if x is not None:
        b.moved(geon.reorder(x.op, b.some(x.axes, least=len(x.axes))), x)


def broadcast(b):
    """New axes among those it has, in any order."""
    x = b.pick(lambda v: len(v.axes) < 4)
    new = [a for a in b.axes if a not in x.axes] if x is not None else []
    if new:
        axes = [*x.axes, *b.some(new, least=1, most=2)]
        b.moved(geon.broadcast(x.op, b.some(axes, least=len(axes))), x)


def rename(b):
    x = b.pick(lambda v: len(v.axes))
    if x is not None:
        axis = b.choice(x.axes)
        if axis.prime not in x.axes:
            b.moved(geon.rename(x.op, {axis: axis.prime}), x)


def flip(b):
    x = b.pick(lambda v: len(v.axes))
    if x is not None:
        b.moved(geon.flip(x.op, b.some(x.axes, least=1)), x)


def flatten(b):
    """Some axes merged into one, which may be split again or another way round."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    axes = b.some(x.axes, least=1)
    merged = b.new_axis(geon.Axes(axes).size)
    flat = b.moved(geon.flatten(x.op, axes, merged), x)
    if flat is not None and b.flag():
        b.moved(geon.unflatten(flat.op, merged, b.some(axes, least=len(axes))), x)


def item(b, axis):
    """A way to take an axis, inside it in both calls: a range, a position, or one at run time."""
    least = b.least(axis)
    which = b.choice(["range", "backwards", "range", "at", "dynamic", "whole", "end"])
    if which in ("range", "backwards") and least:
        start, stop = sorted([b.integer(0, least), b.integer(0, least)])
        step = b.integer(1, 3)
        if which == "range":
            return slice(start, stop, step)
        if start < stop:
            return slice(stop - 1, start - 1 if start else None, -step)
    if which == "end" and least:
        return slice(-b.integer(1, least), None)
    if which == "at" and least:
        return b.integer(-least, least - 1)
    if which == "dynamic" and (at := b.positions(axis.expression)) is not None:
        if not len(at.axes):
            return at
        if all(b.least(a) for a in at.axes):
            return at[tuple([0] * len(at.axes))]
    return slice(None)


def take(b):
    """A slice: ranges with steps forwards and backwards, positions, positions at run time."""
    x = b.pick(lambda v: len(v.axes))
    if x is not None:
        at = {axis: item(b, axis) for axis in b.some(x.axes, least=1)}
        b.moved(x.op[at], x)


def parts(b):
    """The sum of a value over some axes, less sums of ranges of it along one of these."""
    x = b.pick(lambda v: len(v.axes) and v.kind == "f")
    if x is None:
        return
    axis = b.choice(x.axes)
    over = [axis.name, *(a.name for a in b.some([a for a in x.axes if a.name != axis.name]))]
    made = geon.sum(x.op, over)
    pieces = b.integer(1, 2)
    for _ in range(pieces):
        start, stop = sorted([b.integer(0, b.least(axis)), b.integer(0, b.least(axis))])
        made = made - geon.sum(x.op[{axis: slice(start, stop, b.integer(1, 3))}], over)
    count = (1 + pieces) * b.most([x.axes[name] for name in over])
    b.rounded(made, count * x.bound, count * x.error, 2 * count, x.smooth)


def update(b):
    """A part replaced by a number or by the same part of the value, changed."""
    x = b.pick(lambda v: len(v.axes) and v.kind != "b")
    if x is None:
        return
    at = {axis: item(b, axis) for axis in b.some(x.axes, least=1)}
    part = geon.cast(1, x.op.dtype) if b.flag() else -x.op[at]
    b.moved(geon.update(x.op, part, at), x, bound=max(1.0, np.inf if x.kind == "i" else 0.0))


def concat(b):
    """Values one after another along an axis that may have other lengths in each."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    axis = b.choice(x.axes)

    def fits(y):
        others = [a for a in y.axes if a.name != axis.name]
        return (
            axis in y.axes
            and y.axes.same_set(x.axes)
            and all(x.axes[a.name].expression == a.expression for a in others)
            and promotable(dtype_of(*values), y.op.dtype)
        )

    values = [x]
    for _ in range(b.integer(0, 2)):
        values.append(b.pick(fits) or x)
    if kind(dtype_of(*values)) == "f":
        values = [small(b, value) for value in values]
    if all(values):
        b.moved(geon.concat([v.op for v in values], axis), *values)


def stack(b):
    x = b.pick()
    values = [x, *(b.pick(lambda v: v.axes is x.axes) for _ in range(b.integer(0, 2)))]
    if all(v.op.dtype is x.op.dtype for v in values):
        axis = b.new_axis(len(values))
        at = b.integer(0, len(x.axes))
        b.moved(geon.stack([v.op for v in values], axis, at), *values)


def pad(b):
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    mode = b.choice(["constant", "edge", "reflect"])
    axes = b.some(x.axes, least=1, most=2)
    if mode != "constant" and any(b.least(axis) == 0 for axis in axes):
        return
    widths = {axis: (b.integer(0, 2), b.integer(0, 3)) for axis in axes}
    value = b.integer(0, 1) if mode == "constant" else 0
    b.moved(geon.pad(x.op, widths, mode, value), x, bound=1.0)


def window(b):
    """Windows along an axis, inside it or beyond it, which may be summed again."""
    x = b.pick(lambda v: len(v.axes) and len(v.axes) < 4 and v.kind != "b")
    if x is None:
        return
    axis = b.choice(x.axes)
    size, dilation = b.integer(1, 3), b.integer(1, 2)
    pad = b.integer(0, 2), b.integer(0, 2)
    if b.least(axis) + sum(pad) < (size - 1) * dilation + 1:
        return
    spec = geon.Window(b.new_axis(size), b.integer(1, 3), dilation, pad)
    made = b.moved(geon.window(x.op, {axis: spec}, value=b.integer(0, 1)), x, bound=1.0)
    if made is not None and x.kind == "f" and b.flag():
        total = geon.sum(made.op, spec.axis)
        b.rounded(total, size * made.bound, size * made.error, 2 * size, made.smooth)


def diagonal(b):
    """The diagonal of two axes of one length."""
    x = b.pick(lambda v: len({a.expression for a in v.axes}) < len(v.axes))
    if x is None:
        return
    first = b.choice(x.axes)
    same = [a for a in x.axes if a.expression == first.expression and a is not first]
    if same:
        b.moved(geon.diagonal(x.op, [first, b.choice(same)]), x)


def roll(b):
    x = b.pick(lambda v: len(v.axes))
    if x is not None:
        axis = b.choice(x.axes)
        least = b.least(axis)
        b.moved(geon.roll(x.op, {axis: b.integer(-least, least)}), x)


# Elements by position ---------------------------------------------------------------------------


def gather(b):
    """Elements at positions computed from another value, with or without shared axes."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    axis = b.choice(x.axes)
    index = b.positions(axis.expression)
    if index is not None and agrees(index, x, axis):
        b.moved(geon.gather(x.op, index, axis), x)


def scatter(b):
    """Values set at or added to positions; where one is set twice the last stays."""
    x = b.pick(lambda v: len(v.axes) and v.kind != "b")
    if x is None:
        return
    axis = b.choice(x.axes)
    index = b.positions(axis.expression)
    if index is None or not agrees(index, x, axis):
        return
    mode = b.choice(["set", "add"])
    value = geon.gather(x.op, index, axis) if b.flag() else geon.cast(1, x.op.dtype)
    made = geon.scatter(x.op, index, value, axis, mode=mode)
    if mode == "set" or x.kind == "i":
        b.moved(made, x, bound=1.0 if mode == "set" else np.inf)
    else:
        count = b.most(index.axes) + 1
        b.rounded(made, count * max(1.0, x.bound), count * x.error, 2 * count, x.smooth)


def agrees(index, x, axis):
    """Whether the axes that an index shares with ``x`` have equal lengths."""
    shared = [a for a in index.axes if a in x.axes and a.name != axis.name]
    return all(x.axes[a.name].expression == a.expression for a in shared)


# Orders -----------------------------------------------------------------------------------------


def running(b):
    """A cumulative sum or product."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    axis = b.choice(x.axes)
    count = b.most([axis])
    options = {"exclusive": b.flag(), "reverse": b.flag()}
    if b.flag():
        made = geon.cumsum(x.op, axis, **options)
        b.rounded(made, count * x.bound, count * x.error, 2 * count, x.smooth)
    elif x.kind != "f" or (count <= 5 and x.bound <= 2):
        made = geon.cumprod(x.op, axis, **options)
        bound = max(1.0, x.bound) ** count if x.kind == "f" else np.inf
        error = count * bound * x.error if x.error else 0.0
        b.rounded(made, bound, error, 2 * count, x.smooth)


def order(b):
    """sort, argsort, top_k: of exact values, which all compute in one order."""
    x = b.pick(lambda v: len(v.axes) and v.exact)
    if x is None:
        return
    axis = b.choice(x.axes)
    which = b.choice(["sort", "sort", "argsort", "top_k"])
    if which == "sort":
        b.moved(geon.sort(x.op, axis, descending=b.flag()), x)
    elif which == "argsort":
        b.add(geon.argsort(x.op, axis), MOST_POSITIONS)
    else:
        picked, positions = geon.top_k(x.op, b.integer(0, b.least(axis)), axis)
        b.moved(picked, x)
        b.add(positions, MOST_POSITIONS)


MOST_POSITIONS = 1000.0

# Leaves -----------------------------------------------------------------------------------------


def constant(b):
    """A number, an array, a count along an axis or a length."""
    which = b.choice(["array", "number", "iota", "size", "empty"])
    if which == "array":
        axes = b.some(b.fixed[:4], most=2)
        dtype = b.dtype()
        b.add(geon.constant(b.array(dtype, [a.length for a in axes]), axes), b.leaf_bound(dtype))
    elif which == "number":
        b.add(geon.constant(b.choice([0, 1, 2.5, -1.0, True]), dtype="float32"), 3)
    elif which == "iota":
        axis = b.choice(b.axes)
        b.add(geon.iota(axis, b.choice(["int64", "int32", "float32", "uint8"])), b.most([axis]))
    elif which == "size":
        x = b.pick()
        b.add(geon.cast(geon.tensor_size(x.op), b.choice(["float32", "int64"])), 600)
    else:
        b.add(geon.broadcast(geon.cast(1.5, "float32"), b.some(b.axes, most=3)), 1.5)


def draw(b):
    """A random draw."""
    stream = b.choice(b.streams)
    axes = b.some(b.axes, most=2)
    which = b.choice(["uniform", "normal", "bernoulli", "bits"])
    dtype = b.choice(["float32", "float64", "float16", "bfloat16"])
    if which == "uniform":
        b.add(stream.uniform(axes, -1.0, 2.0, dtype), 2.01)
    elif which == "normal":
        b.add(stream.normal(axes, 0.5, 2.0, dtype), 18)
    elif which == "bernoulli":
        b.add(stream.bernoulli(axes, 0.4, b.choice([dtype, "bool"])), 1)
    else:
        b.add(stream.bits(axes, b.choice(["uint32", "uint64"])), np.inf)
