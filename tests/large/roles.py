"""What a length can be: for each role a function that adds values with something of that length."""

import numpy as np

import geon
from geon.op_graph.values.dtypes import kind

SIDES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33, 47, 48, 49, 64, 65, 100, 130]
FEW = [1, 2, 3, 5, 7, 8, 9, 12]
MANY = [1, 2, 5, 9, 33, 63, 64, 65, 70, 130]
WORK = 1 << 26  # multiply-adds of a product
MOST = 1 << 21  # elements of an operand


def _capped(b, options, most):
    """One of the options that is not above ``most``."""
    return b.choice([n for n in options if n <= max(1, most)] or [1])


def _side(b, length, options, most=1 << 20):
    """A new axis beside one of this length, of so many elements together at most."""
    return b.axis(_capped(b, options, most // max(1, length)))


def _leaf(b, axes, dtype=None):
    return b.placeholder(dtype or b.float(), b.shuffled(axes))


def _after(b, x):
    """Something elementwise with x, cheap or costly."""
    which = b.choice(["none", "double", "tanh", "square", "number"])
    if x.dtype.kind != "f" and kind(x.dtype) != "f":
        return x * 2 if which == "double" else x
    if which == "double":
        return x * 2
    if which == "tanh":
        return geon.tanh(x)
    if which == "square":
        return x * x * 0.25
    return x + 0.5 if which == "number" else x


def size(b, length):
    """So many elements, over one axis, in one go."""
    axis = b.axis(length)
    x, y = _leaf(b, [axis], b.number()), _leaf(b, [axis], "float32")
    made = _after(b, x)
    if kind(x.dtype) == "f" and x.dtype.itemsize >= 4:
        made = made + y
    b.add(made)
    total = b.choice([geon.sum, geon.max, geon.min, geon.mean, geon.sum])
    if kind(made.dtype) != "f":
        total = geon.sum
    b.add(total(made))
    if b.flag() and kind(made.dtype) == "f":
        b.add(made - geon.broadcast(total(made), made.axes))


def row(b, length):
    """A row that a reduction goes over."""
    axis = b.axis(length)
    other = _side(b, length, FEW)
    x = _leaf(b, [axis, other], b.number() if b.flag() else None)
    x = b.turned(_after(b, x))
    which = b.choice(["sum", "max", "softmax", "normal", "several", "log", "kept"])
    if kind(x.dtype) != "f":
        which = b.choice(["sum", "max", "several"])
    if which in ("sum", "kept"):
        total = geon.sum(x, axis)
        b.add(total)
        if which == "kept":
            b.add(b.turned(x - geon.broadcast(total, x.axes) * (1.0 / length)))
    elif which == "max":
        b.add(getattr(geon, b.choice(["max", "min"]))(x, axis))
    elif which == "softmax":
        b.add(b.turned(geon.softmax(x, normalization_axes=axis)))
    elif which == "normal":
        mean = geon.mean(x, axis)
        spread = geon.variance(x, axis) + 1.0
        b.add((x - geon.broadcast(mean, x.axes)) / geon.broadcast(geon.sqrt(spread), x.axes))
    elif which == "log":
        b.add(geon.logsumexp(x, reduction_axes=axis))
    else:
        b.add(geon.sum(x, axis))
        b.add(geon.max(x, axis))
        b.add(geon.sum(x * 2, axis))


def lane(b, length):
    """Neighbouring rows of a reduction, which are computed side by side."""
    axis = b.axis(length)
    other = _side(b, length, [2, 3, 5, 8, 17, 64, 65, 130])
    dtype = b.float()
    z, w = (
        b.placeholder(dtype, [other, axis]),
        b.placeholder(dtype, [axis] if b.flag() else [other]),
    )
    if b.flag():
        w = b.placeholder(dtype, b.shuffled([axis, other]))
    total = getattr(geon, b.choice(["sum", "sum", "max", "min"]))(_after(b, z) * w, other)
    b.add(total)
    which = b.choice(["plus", "over", "soft", "turned", "alone"])
    if which == "plus":
        b.add(b.turned(total + z))
    elif which == "over":
        b.add(z - geon.broadcast(total, z.axes))
    elif which == "soft":
        b.add(b.turned(geon.softmax(z, normalization_axes=other)))
    elif which == "turned":
        b.add(geon.reorder(z - geon.broadcast(total, z.axes), [axis, other]))


def short_row(b, length):
    """Short rows, enough of which adjoin to be taken side by side, or not enough."""
    _short(b, b.choice([5, 63, 64, 513, 2000]), length)


def short_rows(b, length):
    """So many neighbouring rows of a few elements."""
    _short(b, length, b.choice([1, 2, 3, 7, 8, 12]))


def _short(b, rows, length):
    """Reductions of rows of this length, of floats, halves and truths."""
    axes = [b.axis(rows), b.axis(length)]
    if b.flag():
        axes.insert(b.choice([0, 1]), b.axis(b.choice([2, 3])))
    inner = axes[-1]
    x = _leaf(b, axes, b.choice(["float32", "float32", "float64", "float16", "bool", "int8"]))
    which = b.choice(["max", "sum", "any", "all", "argmax", "argmin", "soft", "log", "several"])
    if kind(x.dtype) != "f" and which in ("soft", "log", "several"):
        which = "any"
    if which == "max" and kind(x.dtype) == "b":
        which = "all"
    if which == "soft":
        b.add(geon.softmax(x, normalization_axes=inner))
    elif which == "log":
        b.add(geon.logsumexp(x, reduction_axes=inner))
    elif which == "several":
        mean = geon.mean(x, inner)
        b.add(geon.max(x, inner) + mean)
        b.add(b.turned(x - geon.broadcast(mean, x.axes)))
    else:
        b.add(getattr(geon, which)(x, inner))


def across(b, length):
    """What is read along one axis and written along another."""
    axis = b.axis(length)
    other = _side(b, length, MANY)
    x = b.placeholder(b.number(), [axis, other] if b.flag() else [other, axis])
    y = geon.reorder(_after(b, x), list(x.axes)[::-1])
    b.add(y)
    z = b.placeholder(x.dtype, list(y.axes))
    if kind(x.dtype) == "f":
        b.add(y * 2 + z)
    else:
        b.add(y + z)


def wide_turns(b, length):
    """Turns of a sum over the first axes of columns that fill vectors, some inner ones known."""
    columns = geon.Axis(f"W{length}", b.choice([64, 65, 130, 256, 511]))
    axes = [b.axis(length), *([b.new_axis(b.choice([2, 5]))] if b.flag() else [])]
    x = _after(b, b.placeholder(b.number(), [*axes, columns]))
    if b.flag():
        x = x - geon.mean(x, reduction_axes=axes)
    b.add(geon.sum(x * x, reduction_axes=axes))
    if b.flag():
        b.add(geon.max(x, reduction_axes=axes))


def one_run(b, length):
    """Turns of a sum over the first axis of a few columns."""
    axis, columns = b.axis(length), b.axis(b.choice([1, 2, 3, 5, 12, 31, 42, 63]))
    x = _after(b, b.placeholder(b.number(), [axis, columns]))
    which = b.choice(["sum", "max", "several", "less the mean", "stored"])
    if which in ("less the mean", "stored"):
        x = x - geon.mean(x, reduction_axes=[axis])
    if which == "stored":
        b.add(x * b.placeholder(x.dtype, [columns]))
    elif which != "max":
        b.add(geon.sum(x * x if which == "less the mean" else x, reduction_axes=[axis]))
    if which in ("max", "several"):
        b.add(geon.max(x, reduction_axes=[axis]))


def columns_of_runs(b, length):
    """Columns of such a sum."""
    rows, columns = b.axis(b.choice([257, 1000, 4099])), b.axis(length)
    x = _after(b, b.placeholder(b.number(), [rows, columns]))
    b.add(geon.sum(x, reduction_axes=[rows]))
    b.add(geon.max(x, reduction_axes=[rows]))


def _both_sides(b, turns, kept, run):
    """Folds over so many turns and shorter runs on both sides of kept axes, some of what rows have
    for themselves.
    """
    first = b.axis(turns)
    row, last = geon.Axis(f"R{kept}", kept), geon.Axis(f"B{run}", run)
    x = _after(b, b.placeholder(b.number(), [first, row, last]))
    if b.flag():
        x = x - geon.mean(x, out_axes=[row])
    b.add(geon.sum(x * x, out_axes=[row]))
    if b.flag():
        b.add(b.choice([geon.max, geon.min])(x, out_axes=[row]))


def turns_before(b, length):
    """Turns before kept axes of a fold over these and over runs behind them."""
    _both_sides(b, length, b.choice([2, 5, 64]), b.choice([2, 3, 16, 40]))


def run_behind(b, length):
    """Elements behind kept axes of such a fold."""
    _both_sides(b, b.choice([64, 70, 300]), b.choice([2, 5, 33]), length)


def of_both_sides(b, length):
    """So many elements of such a fold."""
    _both_sides(b, length // 16, 4, 4)


def turned_short(b, length):
    """What is turned and repeated in memory, its innermost axis of this length."""
    axes = [b.axis(b.choice([7, 64, 100])), b.axis(b.choice([33, 300, 1000])), b.axis(length)]
    y = _after(b, b.placeholder(b.float(), axes))
    b.add(geon.reorder(y, b.shuffled(axes)))
    b.add(geon.broadcast(y + 1, b.shuffled([*axes, b.new_axis(b.choice([2, 3]))])))


def read_ahead(b, length):
    """What is turned, repeated or a part in memory, its innermost axes of so many elements."""
    inner = [b.axis(length)] if b.flag() else [b.axis(max(1, length // 2)), b.axis(2)]
    axes = [b.axis(b.choice([1, 3, 40])), b.axis(b.choice([7, 130])), *inner]
    numbers = ["float32", "float32", "float64", "float16", "bool", "int8"]
    some = [axis for axis in axes if b.flag()] or axes[:1]
    x, y = b.placeholder("float32", axes), _leaf(b, some, b.choice(numbers))
    turned = b.placeholder(b.choice(numbers), [axes[1], axes[0], *axes[2:]])
    made = x + geon.broadcast(geon.cast(y, "float32"), x.axes)
    made = geon.maximum(made, geon.broadcast(geon.cast(turned, "float32"), x.axes))
    b.add(geon.cast(geon.tanh(made), b.choice(["float32", "bool", "float64"])))
    b.add(b.choice([geon.sum, geon.max, geon.argmin])(made))


def bent(b, length):
    """Differences of neighbours along one of two axes, the other of so many elements or both as
    many together, and the slope of what is made of them: several kernels read a value elsewhere
    than at its own place.
    """
    few = b.choice([5, 64, 1030])
    along, other = b.axis(few), b.axis(max(1, b.choice([min(length, MOST // few), length // few])))
    x = _leaf(b, [along, other] if b.flag() else [other, along], "float32")
    inner = x[{along: slice(1, -1)}]
    apart = x[{along: slice(2, None)}] + x[{along: slice(None, -2)}] - 2 * inner
    apart = b.choice([geon.tanh, geon.negative])(apart)
    cost = geon.sum(geon.square(apart)) + geon.mean(inner * apart)
    b.add(geon.deriv(cost, x) + b.choice([geon.sigmoid, geon.negative])(x))


def looked_up(b, length):
    """So many rows of a table, or so many that are looked up, which are stored or reduced."""
    rows, few = b.choice([(length, 300), (4000, length)])
    n, k, p = b.axis(min(rows, 9000)), b.axis(b.choice([3, 40, 70])), b.axis(min(few, 9000))
    at = geon.mod(b.placeholder("int64", [p]), geon.tensor_size(geon.iota(n)))
    found = geon.gather(b.placeholder("float32", [n, k]), at, n)
    b.add(found + b.choice([0, 1]))
    b.add(b.choice([geon.sum, geon.max])(found))


def numbered(b, length):
    """Short rows in which positions along their axes are numbers."""
    n, k = b.axis(b.choice([7, 1030])), b.axis(length)
    x = b.placeholder(b.choice(["int64", "int32", "float32"]), [n, k])
    axis = b.choice([n, k])
    at = x + geon.broadcast(geon.cast(geon.iota(axis), x.dtype), x.axes)
    b.add(at)
    b.add(b.choice([geon.max, geon.argmin])(at))


def strided(b, length):
    """The slope of a strided part of rows of this length, or of as many rows, with another of all
    elements.
    """
    axes = [b.axis(b.choice([3, 97, 1030])), b.axis(length)]
    x = b.placeholder("float32", axes if b.flag() else axes[::-1])
    step = b.choice([2, 3, 8, 9, 100])
    part = x[{b.choice(axes): slice(b.choice([0, 1]), None, step)}]
    slope = geon.deriv(geon.sum(geon.square(part)), x)
    b.add(slope + b.choice([geon.sigmoid, geon.negative])(x))


def backwards(b, length):
    """What is read from its end on, and stored as something wider or narrower."""
    axes = [b.axis(b.choice([1, 3])), b.axis(length)]
    x = b.placeholder(b.choice(["float32", "float64", "float16", "bool", "int8"]), axes)
    y = geon.cast(x, "float32")[:, ::-1] + geon.cast(x, "float32")
    b.add(geon.cast(y, b.choice(["bool", "float64", "bfloat16", "int32"])))
    b.add(geon.max(y, axes[1]))


def loads(b, length):
    """So many values read in an order that is not that of the result."""
    axes = [b.axis(33), b.axis(20), b.axis(3)]
    made = b.placeholder("float32", axes)
    for _ in range(length):
        turned = b.placeholder("float32", [axes[1], axes[0], axes[2]])
        made = made + geon.broadcast(turned, made.axes)
    b.add(geon.tanh(made))


def few_rows(b, length):
    """So many rows that are long, and parts of what is in memory."""
    x = b.placeholder(b.choice(["float32", "int8"]), [b.axis(length), b.axis((1 << 16) + 70)])
    b.add(_after(b, x[:, b.choice([1, 6]) :]))


def flat(b, length):
    """So many elements of several axes, flattened or one loop."""
    other = _capped(b, [2, 3, 4, 7, 8], length // 4)
    first, second = b.axis(max(1, length // other)), b.axis(other)
    x = b.placeholder(b.float(), [first, second])
    y = _after(b, x)
    merged = b.new_axis(geon.Axes([first, second]).size)
    b.add(geon.flatten(y, b.shuffled([first, second]), merged))
    b.add(geon.sum(y) if b.flag() else geon.sum(b.turned(y)))


# Products -----------------------------------------------------------------------------------------


def _product(b, dtype=None, **lengths):
    """A product with this length of rows, columns, depth or batch, others small or middling."""
    work, room = WORK, MOST
    for length in lengths.values():
        work //= max(1, length)
        room //= max(1, length)
    sizes = dict(lengths)
    if not b.integer(0, 3):
        sizes.setdefault("batch", b.choice([1, 2, 3, 5]))
    for part in b.shuffled(["rows", "columns", "depth", "batch"]):
        if part not in sizes and part != "batch":
            sizes[part] = _capped(b, SIDES, min(work, room))
        if part not in lengths:
            work //= sizes.get(part, 1)
            room //= sizes.get(part, 1)
    axes = {part: b.axis(n) for part, n in sizes.items()}
    batch = [axes["batch"]] if "batch" in axes else []
    if dtype is None:
        dtype = b.float() if b.integer(0, 7) else "int32"
    x = b.placeholder(dtype, b.shuffled([axes["rows"], axes["depth"], *batch]))
    weights = b.shuffled([axes["depth"], axes["columns"], *(batch if b.flag() else [])])
    fixed = all(isinstance(axis.expression, int) for axis in weights)
    stay = fixed and b.flag() and not dtype.startswith("int")
    y = b.variable(dtype, weights) if stay else b.placeholder(dtype, weights)
    x, y = _before(b, x), _before(b, y)
    made = geon.dot(x, y, over=axes["depth"])
    b.add(made)
    which = b.choice(["none", "bias", "relu", "turned", "tanh", "twice"])
    if kind(made.dtype) != "f":
        return made
    if which == "bias":
        b.add(made + b.placeholder(made.dtype, [axes["columns"]]))
    elif which == "relu":
        b.add(geon.maximum(made, 0.0) if b.flag() else made * 0.5)
    elif which == "turned":
        b.add(geon.reorder(made, b.shuffled(made.axes)))
    elif which == "tanh":
        b.add(geon.tanh(made * 0.01))
    elif which == "twice":
        b.add(made * 0.25)
        b.add(geon.reorder(made * 0.5, b.shuffled(made.axes)))
    return made


def _before(b, x):
    """An operand that is read as it lies, turned, in part, or computed."""
    which = b.choice(["plain", "plain", "flip", "tanh", "part", "square"])
    if which == "flip":
        return geon.flip(x, b.some(x.axes, least=1, most=1))
    if which == "tanh" and kind(x.dtype) == "f":
        return geon.tanh(x)
    if which == "square":
        return x * x
    return x


def rows(b, length):
    """Rows of a product."""
    _product(b, rows=length)


def columns(b, length):
    """Columns of a product."""
    _product(b, columns=length)


def depth(b, length):
    """Summed indices of a product."""
    _product(b, depth=length)


def batch(b, length):
    """Products side by side."""
    _product(b, batch=length)


def depth64(b, length):
    """Summed indices of a product in float64."""
    _product(b, "float64", depth=length)


def columns64(b, length):
    """Columns of a product in float64."""
    _product(b, "float64", columns=length)


def parts(b, length):
    """Elements of a product with long sums."""
    sides = [side for side in (16, 31, 40, 64) if length // side <= 200] or [100]
    side = _capped(b, sides, length)
    _product(b, "float32", rows=side, columns=max(1, length // side), depth=16384)


def deep_rows(b, length):
    """Rows of a product with long sums."""
    _product(b, "float32", rows=length, depth=8193, columns=b.choice([1, 2, 3]))


def thin(b, length):
    """Results of few rows and few columns, whose depth is long."""
    rows = _capped(b, [1, 2, 3, 5, 8, 16, 20, 25, 48], length)
    deep = b.choice([129, 700, 4099, 9001, 40000])
    _product(b, rows=rows, columns=max(1, length // rows), depth=deep)


def thin_depth(b, length):
    """The depth of such products."""
    _product(b, rows=b.choice([1, 2, 3, 7, 20]), columns=b.choice([1, 2, 4, 5, 20]), depth=length)


def few_columns(b, length):
    """Columns of a product of many rows, whose depth is short."""
    _product(b, rows=b.choice([1000, 4099]), columns=length, depth=b.choice([1, 2, 5, 9, 31]))


def narrow_products(b, work):
    """Multiply-adds of a product of columns that fill half of a vector at most."""
    columns, depth = b.choice([3, 5, 8]), b.choice([27, 72, 128])
    _product(b, rows=-(-work // (columns * depth)), columns=columns, depth=depth)


def terms(b, length):
    """Summed indices of a product of many results."""
    _product(b, rows=b.choice([7, 9000]), columns=b.choice([2, 3, 2500]), depth=length)


def run_of_terms(b, length):
    """Columns of a product whose depth is a few indices."""
    _product(b, rows=b.choice([600, 17000]), columns=length, depth=b.choice([1, 2, 3, 4]))


def elements_of_terms(b, length):
    """Elements of such a product."""
    columns = b.choice([1, 2, 64])
    _product(b, rows=max(1, length // columns), columns=columns, depth=b.choice([1, 2, 3]))


def again(b, length):
    """Rows of such a product with many columns."""
    _product(b, rows=length, columns=5000, depth=b.choice([2, 3, 4]))


def small_products(b, length):
    """Elements of many products of a few indices."""
    rows = b.choice([1, 2, 3, 4, 8])
    columns = max(1, length // rows)
    _product(b, batch=3000, rows=rows, columns=columns, depth=b.choice([2, 3, 4]))


def near(b, length):
    """Bytes of an operand's block that is read where it lies."""
    line = _capped(b, [16, 32, 48, 64], length // 64)
    _product(b, "float32", depth=max(1, length // 4 // line), columns=line)


def products(b, length):
    """Multiply-adds of a whole product."""
    if length > WORK:  # so many elements of long and narrow ones would be too many
        k, n = b.choice([400, 700, 1000]), b.choice([500, 768])
        _product(b, depth=k, columns=n, rows=-(-length // (k * n)))
        return
    k = _capped(b, [3, 5, 8, 17, 32], length)
    n = _capped(b, [4, 12, 16, 33], length // k)
    _product(b, depth=k, columns=n, rows=max(1, length // (k + 4) // n))


def stream(b, length):
    """Bytes of an operand that one row or a few are multiplied by."""
    columns = _capped(b, [24, 130, 256, 1030], length // 64)
    depth = max(1, length // 4 // columns)
    _product(b, "float32", rows=b.choice([1, 2, 3]), columns=columns, depth=depth)


def stream_depth(b, length):
    """Summed indices of such a product."""
    _product(b, rows=b.choice([1, 2]), columns=b.choice([520, 1100]), depth=length)


def streams(b, length):
    """Such products side by side."""
    _product(b, batch=length, rows=1, columns=b.choice([64, 256]), depth=b.choice([300, 1030]))


def matrix_vector(b, length):
    """A row of a matrix times a vector."""
    axis, other = b.axis(length), _side(b, length, MANY)
    x = b.placeholder("float32" if b.flag() else "float64", b.shuffled([axis, other]))
    y = b.placeholder(x.dtype, [axis])
    b.add(geon.dot(x, y) if b.flag() else geon.dot(y, x))


def matrices(b, length):
    """Elements of each of some matrices beside each other, times a row each."""
    deep = _capped(b, [64, 100, 1024], length)
    known, beside = geon.Axis(f"deep{b.lengths}", deep), b.axis(b.choice([2, 3]))
    one = [geon.Axis(f"one{b.lengths}", 1)] if b.flag() else []
    columns = b.axis(max(1, length // deep))
    x = b.placeholder("float32" if b.flag() else "float64", b.shuffled([columns, known, beside]))
    y = b.placeholder(x.dtype, [*one, beside, known])
    b.add(geon.dot(y, geon.minimum(x, 3) if b.flag() else x, over=[known]))


def reduced_product(b, length):
    """Rows of a product that are reduced, and perhaps multiplied again."""
    _reduced(b, length, max(600, (1 << 18) // length + 1), [])


def reduced_batch(b, length):
    """Such products side by side."""
    rows = b.choice([64, 70, 96])
    _reduced(b, rows, (1 << 18) // (rows * length) + 20, [b.axis(length)])


def _reduced(b, rows, columns, batch):
    """Products of enough columns for a chain, over depths that are known."""
    dtype = "float32" if b.flag() else "float64"
    rows, columns = b.axis(rows), b.axis(columns)
    deep, wide = (geon.Axis(f"{n}{b.lengths}", b.choice([1, 5, 8, 16])) for n in ("deep", "wide"))
    x, y = (b.placeholder(dtype, [*batch, axis, deep]) for axis in (rows, columns))
    square = geon.dot(x, y, over=[deep]) * 0.25
    which = b.choice(["softmax", "softmax", "largest", "both"])
    if which in ("softmax", "both"):
        v = b.placeholder(dtype, [*batch, columns, wide])
        b.add(geon.dot(geon.softmax(square, columns), v, over=[columns]))
    if which in ("largest", "both"):
        b.add(geon.max(square, columns))


# Library ------------------------------------------------------------------------------------------


def _line(b, length, dtype=None):
    """Data for work along an axis of this length, some lines side by side; and that axis."""
    axis = b.axis(length)
    side = [_side(b, length, [1, 2, 3, 5])] if b.flag() else []
    dtype = dtype or b.choice(["float32", "float64", "float16", "int64", "int32", "int8", "uint16"])
    return _leaf(b, [axis, *side], dtype), axis


def line(b, length):
    """A line that is sorted, or whose extreme is found."""
    _order(b, *_line(b, length))


def lines(b, length):
    """So many short lines that are sorted."""
    beside, short = b.axis(length), b.axis(b.choice([2, 7, 16, 30]))
    x = b.placeholder(b.choice(["float32", "int8", "int32", "float64"]), [beside, short])
    b.add(geon.argsort(x, short) if b.flag() else geon.sort(x, short))


def line16(b, length):
    """A line of 16-bit numbers that is sorted."""
    _order(b, *_line(b, length, "float16"))


def line32(b, length):
    """A line of 32-bit numbers that is sorted."""
    _order(b, *_line(b, length, "float32"))


def line64(b, length):
    """A line of 64-bit numbers that is sorted."""
    _order(b, *_line(b, length, "float64"))


def _order(b, x, axis):
    which = b.choice(["sort", "argsort", "top_k", "sort"])
    if which == "sort":
        b.add(geon.sort(x, axis, descending=b.flag()))
    elif which == "argsort":
        b.add(geon.argsort(x, axis))
    else:
        most = b.least(axis)
        picked, positions = geon.top_k(x, min(most, b.choice([1, 2, 5, 63, most])), axis)
        b.add(picked)
        b.add(positions)


def extreme(b, length):
    """A line whose extremes are found, mostly at its ends."""
    b.data = "rising" if b.integer(0, 3) else None
    x, axis = _line(b, length)
    b.data = None
    b.add(geon.argmax(x, axis))
    b.add(geon.argmin(x, axis))


def positions(b, length):
    """Extremes over several axes and over outer ones, whose positions loops look for."""
    b.data = "rising" if b.integer(0, 3) else None
    outer, axis, inner = b.axis(b.choice([1, 3])), b.axis(length), b.axis(b.choice([1, 2]))
    x = _leaf(b, [outer, axis, inner], b.choice(["float32", "float64", "int64", "int8"]))
    b.data = None
    b.add(geon.argmax(x, [axis, inner]))
    b.add(geon.argmin(x, axis))


def most(b, length):
    """How many of the largest are found: of just as many, of about four times as many, of more."""
    for count in (
        length + b.choice([0, 1, 3]),
        4 * length + b.choice([-1, 0, 1, 3, 4]),
        4 * length + b.choice([5, 70, 200]),
    ):
        b.data = "rising" if b.flag() else None
        axis = b.new_axis(count)
        dtype = b.choice(["float32", "int16", "int64"])
        x = _leaf(b, [axis, *([b.axis(3)] if b.flag() else [])], dtype)
        b.data = None
        picked, positions = geon.top_k(x, length, axis)
        b.add(picked)
        b.add(positions)


def running(b, length):
    """The length of prefix sums."""
    x, axis = _line(b, length, b.choice(["float32", "float64", "int32", "float16"]))
    b.add(geon.cumsum(x, axis, exclusive=b.flag(), reverse=b.flag()))


def beside(b, length):
    """Prefix sums side by side."""
    axis, other = b.axis(length), _side(b, length, FEW)
    x = b.placeholder(b.choice(["float32", "float64", "int32"]), [other, axis])
    b.add(geon.cumsum(x, other, exclusive=b.flag(), reverse=b.flag()))
    if kind(x.dtype) == "i":
        b.add(geon.cumprod(x, other))


def running_rows(b, length):
    """The length of prefix sums of wide rows, which are cut into parts where they are long."""
    axis, other = b.axis(length), b.new_axis(b.choice([65, 300, 513]))
    x = b.placeholder(b.choice(["float32", "int32"]), [axis, other])
    b.add(geon.cumsum(x, axis, exclusive=b.flag(), reverse=b.flag()))


def running_lines(b, length):
    """How many lines of prefix sums there are, some of them long enough to be cut."""
    lines, axis = b.axis(length), b.new_axis(b.choice([1000, 32768, 40000]))
    x = b.placeholder(b.choice(["float32", "int32"]), [lines, axis])
    b.add(geon.cumsum(x, axis, exclusive=b.flag(), reverse=b.flag()))


def scattered(b, length):
    """How many elements, or positions, a scatter or gather goes over."""
    axis, other = b.axis(length), _side(b, length, FEW)
    x = b.placeholder(b.choice(["float32", "int32", "float64"]), b.shuffled([axis, other]))
    along = b.choice([axis, other])
    count = b.axis(
        _capped(b, [1, 3, 64, 70, 300], (1 << 19) // max(1, b.most(x.axes) // b.least(along)))
    )
    index = geon.mod(b.placeholder("int64", [count]), geon.tensor_size(geon.iota(along)))
    part = geon.gather(x, index, along)
    b.add(part)
    value = part if b.flag() else geon.cast(2, x.dtype)
    b.add(geon.scatter(x, index, value, along, mode=b.choice(["set", "add"])))


def added(b, length):
    """How many values are added to few places."""
    _added(b, length, b.choice([1, 3, 100, 1000]))


def places(b, length):
    """How many places there are for values that are added, which mostly are many more."""
    _added(b, b.choice([2, 5, 17]) * length + b.choice([-1, 0, 70_000]), length)


def far_places(b, length):
    """How many places there are, more than caches hold, for some values."""
    _added(b, b.choice([100, 66_000, 90_001]), length)


def far_values(b, length):
    """How many values are added to more places than caches hold."""
    _added(b, length, 2_200_000)


def _added(b, values, count):
    axis, other, along = b.new_axis(values), b.new_axis(b.choice([1, 2])), b.new_axis(count)
    dtype = b.choice(["float32", "int32", "float64"])
    x, value = b.placeholder(dtype, [along, other]), b.placeholder(dtype, [axis, other])
    index = geon.mod(b.placeholder("int64", [axis]), geon.tensor_size(geon.iota(along)))
    b.add(geon.scatter(x, index, value, along, mode="add"))


def bits(b, length):
    """Random words, and masks used where they are drawn."""
    axis = b.axis(length)
    drawn = b.choice(b.streams).bits([axis], b.choice(["uint32", "uint64"]))
    b.add(drawn)
    b.add(geon.bitwise_and(drawn, 7) + geon.cast(b.placeholder("bool", [axis]), drawn.dtype))
    other = _side(b, length, [1, 2, 3, 9, 10, 65])
    axes = b.shuffled([axis, other])
    x = _leaf(b, axes, "float32")
    mask = b.choice(b.streams).bernoulli(b.choice([axes, axes[::-1]]), 0.5)
    dropped = x * mask
    which = b.choice(["stored", "rows", "columns", "part"])
    if which == "stored":
        b.add(b.turned(dropped))
    elif which == "part":
        last = mask.axes[-1]
        b.add(mask[{last: slice(last.length // 3, None)}] * 2)
    else:
        b.add(geon.sum(dropped, axis if which == "rows" else other))


def finite(b, length):
    """Results that are looked at for what is not finite."""
    axis = b.axis(length)
    x = b.placeholder(b.choice(["float32", "float64", "float16"]), [axis])
    b.add(x * 2)
    b.add(geon.sum(x * 0.5) if x.dtype.itemsize > 2 else x * 0.5)


def shifted(b, length):
    """Elements that NumPy computes block by block."""
    axis = b.axis(length)
    x = b.placeholder("int32", [axis])
    b.add(geon.left_shift(x, geon.bitwise_and(x, 7)))
    b.add(geon.power(x, geon.bitwise_and(x, 3)))
    b.add(geon.cast(b.placeholder("float32", [axis]), "int8"))


def constant(b, length):
    """Bytes of a constant array."""
    axis = geon.Axis("G", max(1, length // 4))
    data = b.array(np.dtype("float32"), [axis.length])
    x = b.placeholder("float32", [axis])
    b.add(geon.constant(data, [axis]) * 2 + x)


# Numbers of ops -----------------------------------------------------------------------------------


def _chain(b, count, step, dtype="float64"):
    axis = b.axis(b.choice([1, 33, 70, 300]))
    x = y = b.placeholder(dtype, [axis])
    for k in range(count):
        y = step(y, x, k)
    b.add(y)
    return y


def joined(b, length):
    """Values joined along an axis, some of whose parts are so long."""
    axis = b.axis(length)
    other = _side(b, length, SIDES)
    dtype = b.number()
    x, y = _leaf(b, [axis, other], dtype), _leaf(b, [axis, other], dtype)
    y = geon.reorder(y, list(x.axes))
    along = b.choice([axis, other])
    made = geon.concat([_after(b, x), y, x], along)
    if b.flag():
        made = geon.stack([x, _after(b, y), x][: b.integer(2, 4)], geon.Axis("S"), b.integer(0, 3))
    b.add(b.turned(_after(b, made)))


def bordered(b, length):
    """So long an axis between borders, and the slope of its differences."""
    axis = b.axis(length)
    other = _side(b, length, SIDES)
    x = _leaf(b, [axis, other])
    wide = {each: (b.integer(0, 10), b.integer(0, 10)) for each in x.axes if b.flag()}
    b.add(b.turned(_after(b, geon.pad(_after(b, x), wide))))
    step = b.integer(1, 5)
    if length > step + 1:
        part = (
            x[{x.axes[axis.name]: slice(step, None)}] - x[{x.axes[axis.name]: slice(None, -step)}]
        )
        b.add(geon.deriv(geon.sum(geon.square(part) * 0.5), x))


def parts_joined(b, length):
    """So many parts of one join."""
    axis, other = b.axis(b.choice([1, 7, 65])), b.axis(b.choice([1, 9, 33]))
    x = _leaf(b, [axis, other])
    b.add(geon.concat([x + float(k) for k in range(length)], b.choice([axis, other])))


def cheap(b, length):
    """So many cheap ops in a row, used more than once."""
    y = _chain(b, length, lambda y, x, k: (y + x) * 0.5 if k % 2 else y * 0.5)
    b.add(geon.sum(y))
    b.add(y * y)


def _divided(b, turns, length):
    """So many rows of so many elements by what is the same in all rows and divides."""
    row = b.axis(length)
    x, y = _leaf(b, [b.axis(turns), row]), _leaf(b, [row])
    share = y / (y * y + 2.0)
    b.add(x * share + geon.rsqrt(y * y + 1.0))
    if b.flag():
        b.add(share)


def divided_turns(b, length):
    """Rows by what is the same in all of them and divides."""
    _divided(b, length, b.choice([3, 300, 1000]))


def divided(b, length):
    """So many elements of such rows."""
    _divided(b, max(1, length // 32), 32)


def chain(b, length):
    """So many ops in a row."""
    _chain(b, length, lambda y, x, k: [y * 0.75, y + x, geon.minimum(y, x), y - 0.25][k % 4])


def heavy(b, length):
    """So many elementary functions in a row."""
    _chain(b, length, lambda y, x, k: geon.tanh(y + x) if k % 2 else geon.exp(y * 0.1) * 0.5)


def stored(b, length):
    """So many ops on what a product stores."""
    x = b.placeholder("float64", [b.axis(9), geon.Axis("G", 17)])
    y = b.placeholder("float64", [geon.Axis("G", 17), b.axis(20)])
    made = geon.dot(x, y)
    for k in range(length):
        made = [made * 0.5, made + 0.5, geon.minimum(made, 8.0), made - 0.25][k % 4]
    b.add(made)


def steps(b, length):
    """So many kernels, each with memory of its own."""
    _chain(b, length, lambda y, x, k: geon.cumsum(y * 0.01, y.axes[0], reverse=k % 2 == 1))


def results(b, length):
    """So many values of one shape, and as many results."""
    axis = b.axis(b.choice([1, 33, 70]))
    x = b.placeholder("float64", [axis])
    for k in range(length):
        b.add(geon.sort(x * float(k + 1), axis))


def together(b, length):
    """So many values of one loop, each a result."""
    axis = b.axis(b.choice([33, 700, 3000]))
    x = b.placeholder(b.float(), [axis])
    for k in range(length):
        b.add(x * float(k + 1))


ROLES = {
    function.__name__: function
    for function in (
        size, row, lane, short_row, short_rows, across, turned_short, read_ahead, numbered, strided,
        looked_up, bent,
        backwards, loads, few_rows, flat, together,
        rows, columns, depth, batch, depth64, columns64, parts, near, thin, thin_depth, few_columns,
        narrow_products,
        terms, run_of_terms, elements_of_terms, again, small_products,
        one_run, columns_of_runs, wide_turns,
        turns_before, run_behind, of_both_sides,
        deep_rows,
        products, stream, stream_depth, streams,
        matrix_vector, matrices, reduced_product, reduced_batch,
        line, lines, line16, line32, line64, extreme, positions, most,
        running,
        beside, running_rows, running_lines, scattered, added, places,
        far_places, far_values, bits, finite, shifted,
        constant, cheap, divided_turns, divided,
        chain, heavy, stored, steps,
        results, joined, bordered, parts_joined,
    )
}  # fmt: skip
