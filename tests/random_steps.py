"""The steps that random graphs are made of: each adds values to a ``Builder``, or nothing."""

from functools import cache

import numpy as np

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import FLOATS, kind

from .random_graphs import dtype_of, eps

ROWS = {name: row for name, row in PRIMITIVES.items() if isinstance(row, Elementwise)}
# Rows of one correct rounding: equal operands give equal bits, whoever computes them.
SINGLE = frozenset(
    "add subtract multiply divide negative absolute sign square sqrt reciprocal maximum minimum"
    " where floor ceil round trunc floordivide mod less less_equal greater greater_equal equal"
    " not_equal isnan isinf isfinite logical_and logical_or logical_xor logical_not".split()
)
# Rows that jump: a small difference in an operand may be a large one in the result.
JUMPING = frozenset("floor ceil round trunc sign floordivide mod isnan isinf isfinite".split())
KINKED = frozenset("maximum minimum absolute".split())
ULPS = 32.0  # what elementary functions and their approximations may differ by

# Elementwise ------------------------------------------------------------------------------------


@cache
def steepness(name):
    """Over the domain of a float row: the largest |value|, and slope for each operand."""
    row = ROWS[name]
    points = [np.linspace(low, high, 25) for low, high in row.domain]
    grid = np.meshgrid(*points, indexing="ij")
    with np.errstate(all="ignore"):
        values = np.asarray(row.reference(*grid), np.float64)
    slopes = []
    for at, line in enumerate(points):
        step = (line[-1] - line[0]) / (len(line) - 1)
        slopes.append(2 * np.abs(np.diff(values, axis=at)).max() / step)
    return float(np.abs(values).max()), slopes


def inside(b, value, interval):
    """A value moved into an interval: exactly by clipping, or smoothly."""
    low, high = interval
    if value.kind != "f":
        low, high = np.ceil(low), np.floor(high)
        dtype = value.op.dtype
        if value.kind == "i" and low <= high and np.iinfo(dtype).min <= low:
            return b.moved(geon.minimum(geon.maximum(value.op, int(low)), int(high)), value)
        return None
    if value.exact:
        clipped = geon.minimum(geon.maximum(value.op, low), high)
        return b.add(clipped, max(abs(low), abs(high)))
    middle, half = (low + high) / 2, (high - low) / 2
    if not (value.smooth and value.bound < 50):
        return None
    moved = geon.tanh(value.op) * half + middle
    bound = max(abs(low), abs(high))
    return b.rounded(moved, bound, value.error * half, ULPS, value.smooth)


def small(b, value):
    """An integer value of moderate size; others as they are."""
    if value.kind == "i" and value.bound > 100:
        return b.add(geon.mod(value.op, 11), 11)
    return value


def elementwise(b):
    """Any row of the registry, on values brought into its domain."""
    name = b.choice(ROWS)
    row = ROWS[name]
    values = operands(b, row)
    if values is None:
        return
    floats = row.rule == "float" or (row.rule not in ("logical", "bits", "integer")
                                     and any(v.kind == "f" for v in values))  # fmt: skip
    if row.rule == "compare" and not all(v.exact for v in values):
        return
    if not floats:
        if row.rule == "logical" and not all(v.exact for v in values):
            return
        b.add(applied(row, values), np.inf)
    elif row.rule in ("compare", "predicate"):
        if all(v.exact for v in values):
            b.add(applied(row, values), 1)
    elif row.rule == "select":
        where(b, values)
    else:
        float_row(b, name, row, values)


def operands(b, row):
    """As many values as the row takes, of kinds that it takes."""

    def takes(value):
        if row.rule in ("integer", "bits"):
            return value.kind == "i" or (value.kind == "b" and row.rule == "bits")
        return True

    first = b.pick(takes)
    if first is None:
        return None
    if row.rule == "select":
        first = b.pick(lambda v: v.kind == "b")
        if first is None:
            return None
    values = [first]
    while len(values) < row.arity:
        other = b.partner(*values, test=takes)
        if other is None:
            return None
        values.append(other)
    try:
        row.apply(*[v.op for v in values])
    except (geon.DTypeError, geon.AxisError):
        return None
    return values


def applied(row, values):
    """The row of values that may share no axis."""
    operands = [value.op for value in values]
    try:
        return row(*operands)
    except geon.AxisError:
        return geon.outer(row, *operands)


def where(b, values):
    condition, x, y = values
    if not condition.exact:
        return
    b.add(
        applied(geon.where, values),
        max(x.bound, y.bound),
        max(x.error, y.error),
        x.smooth and y.smooth,
    )


def float_row(b, name, row, values):
    """A row with a float result."""
    values = [small(b, value) for value in values]
    if any(value is None for value in values):
        return
    exact = all(value.exact for value in values)
    smooth = all(value.smooth for value in values) and (exact or name not in KINKED)
    if name in JUMPING and not exact:
        return
    if name in ("add", "subtract", "maximum", "minimum", "negative", "absolute"):
        bound, error = sum(v.bound for v in values), sum(v.error for v in values)
    elif name == "multiply":
        x, y = values
        bound, error = x.bound * y.bound, x.bound * y.error + y.bound * x.error
    else:
        values = [inside(b, v, i) for v, i in zip(values, row.domain, strict=True)]
        if any(value is None for value in values):
            return
        exact = all(value.exact for value in values)
        if name in JUMPING and not exact:
            return
        bound, slopes = steepness(name)
        error = sum(v.error * slope for v, slope in zip(values, slopes, strict=True))
    made = applied(row, values)
    rounding = 0.0 if exact and name in SINGLE else ULPS * eps(made.dtype) * bound
    b.add(made, bound, error + rounding, smooth)


def with_number(b):
    """A row of a value and a Python number, on either side."""
    x = b.pick(lambda v: v.kind != "b")
    number = b.choice([0, 1, 2, 3, -1, 0.5, -2.0, 1.0, 0.0])
    if x.kind == "i" and (number != int(number) or number < 0 or isinstance(number, float)):
        number = 2
    if b.flag():
        name = b.choice(["add", "subtract", "multiply"])
        pair = (x.op, number) if b.flag() else (number, x.op)
        size = max(1, abs(number))
        wraps = name == "subtract" and x.op.dtype.kind == "u"
        b.rounded(
            getattr(geon, name)(*pair),
            np.inf if wraps else (x.bound + size) * size,
            x.error * size,
            0.0 if x.exact else 1.0,
            x.smooth,
        )
    elif x.kind == "i":
        b.add(x.op ** b.choice([0, 1, 2, 3]), np.inf)
    else:
        power = b.choice([0, 1, 2, 3])
        slope = power * max(1.0, x.bound) ** max(0, power - 1)
        b.rounded(x.op**power, max(1.0, x.bound) ** power, x.error * slope, ULPS, x.smooth)


def cast(b):
    """Any value in any dtype."""
    x = b.pick()
    name = b.dtype_name()
    if kind(np.dtype(x.op.dtype)) == "f" and name not in FLOATS and not x.exact:
        return
    if name in FLOATS:
        x = small(b, x)
        if x is None:
            return
        rounding = 0.0 if x.exact else eps(geon.cast(0, name).dtype) * x.bound
        b.add(geon.cast(x.op, name), x.bound, x.error + rounding, x.smooth)
    else:
        b.add(geon.cast(x.op, name), np.inf if x.kind == "i" or b.special else x.bound)


def polygamma(b):
    x = b.pick_float()
    x = x and inside(b, x, (0.5, 4.0))
    if x is not None:
        b.rounded(geon.polygamma(b.integer(0, 2), x.op), 20, 60 * x.error, ULPS, x.smooth)


# Reductions and contractions --------------------------------------------------------------------


def reduction(b):
    """A reduction over some axes, or to some axes in any order."""
    x = b.pick()
    row = b.choice(["sum", "sum", "prod", "max", "min", "any", "all", "argmax", "argmin"])
    axes = b.some(x.axes)
    reduced = [a for a in x.axes if a not in axes] if (keep := b.flag()) else axes
    count = b.most(reduced)
    size = geon.Axes(reduced).size
    if row in ("max", "min", "argmax", "argmin") and (b.least(size) == 0 or x.kind == "b"):
        return
    if row in ("any", "all", "argmax", "argmin") and not x.exact:
        return
    if row == "prod" and x.kind == "f":
        x = inside(b, x, (-1.5, 1.5)) if count <= 6 else None
        if x is None:
            return
    arguments = {"out_axes" if keep else "reduction_axes": axes}
    made = getattr(geon, row)(x.op, **arguments)
    if kind(made.dtype) != "f":
        b.add(made, np.inf)
    elif row == "sum":
        b.rounded(made, count * x.bound, count * x.error, 2 * count, x.smooth)
    elif row == "prod":
        b.rounded(made, 1.5**count, count * 1.5**count * x.error, 2 * count, x.smooth)
    else:
        b.add(made, x.bound, x.error, x.smooth and x.exact)


def contraction(b):
    """A product of two values summed over some of the axes they share."""
    x = b.pick(lambda v: len(v.axes))
    if x is None:
        return
    y = b.partner(x)
    if y is None or "b" in (x.kind, y.kind):
        return
    shared = [a for a in x.axes if a in y.axes]
    over = b.some(shared) if b.flag() else shared
    if kind(dtype_of(x, y)) == "f":
        x, y = small(b, x), small(b, y)
        if x is None or y is None:
            return
    made = geon.dot(x.op, y.op, over=over) if shared else geon.dot(x.op, y.op)
    count = b.most(over)
    error = count * (x.bound * y.error + y.bound * x.error)
    b.rounded(made, count * x.bound * y.bound, error, 2 * count, x.smooth and y.smooth)


def matrices(b):
    """A contraction of fresh operands over several axes, in any order of either's axes."""
    names = b.some(b.axes[:7], least=2, most=5)
    parts = [[], [], [], []]  # x alone, y alone, summed, batch
    for axis in names:
        parts[b.integer(0, 3)].append(axis)
    if not parts[2]:
        return
    dtype = b.choice(["float32", "float64", "int64", "float16", "int32", "uint8"])
    shared = parts[2] + parts[3]
    ends = []
    for own in parts[:2]:
        b.placeholder(dtype, b.some([*own, *shared], least=len(own) + len(shared)))
        leaf = b.placeholders[-1][0]
        ends.append(geon.tanh(leaf) if b.flag() and kind(leaf.dtype) == "f" else leaf)
        if b.flag():
            axes = b.some(leaf.axes, least=len(leaf.axes))
            ends[-1] = geon.reorder(ends[-1], axes)
    made = geon.dot(*ends, over=parts[2])
    count = b.most(parts[2])
    rounding = 8 * count * eps(made.dtype) * count * 4 if kind(made.dtype) == "f" else 0.0
    b.add(made, 4.0 * count if kind(made.dtype) == "f" else np.inf, rounding + rounding)


# Composites and derivatives ---------------------------------------------------------------------


def composite(b):
    """softmax and its family, statistics."""
    x = b.pick_float(smooth=True)
    if x is None or not len(x.axes) or x.bound > 20 or x.op.dtype.name in ("float16", "bfloat16"):
        return
    axes = b.some(x.axes, least=1)
    if b.least(geon.Axes(axes).size) == 0:
        return
    name = b.choice(["softmax", "log_softmax", "logsumexp", "mean", "variance", "L2_norm"])
    if name in ("softmax", "log_softmax"):
        made = getattr(geon, name)(x.op, normalization_axes=axes)
    else:
        made = getattr(geon, name)(x.op, reduction_axes=axes)
    count = b.most(axes)
    bound = {"softmax": 1.0, "variance": 2 * x.bound**2}.get(name, (2 * x.bound + 4) * count)
    steep = 4 * count * max(1.0, x.bound)
    error = steep * x.error + eps(x.op.dtype) * count * max(1.0, x.bound) ** 2
    if name != "L2_norm" or x.exact:
        b.rounded(made, bound, error, ULPS, name not in ("logsumexp", "log_softmax") or x.exact)


def marked(b):
    """A float value whose later uses compute again what some policy does not keep."""
    y = b.pick_float()
    if y is not None:
        kept = b.choice(["nothing", "products", lambda op: op.primitive.kind == "reduction"])
        b.moved(geon.remat(y.op, kept), y)


def derivative(b):
    """Derivatives of a sum in every float leaf it depends on, by reverse or forward mode."""
    y = b.pick_float(smooth=True)
    if y is None or any(op.dtype.name in ("float16", "bfloat16") for op in post_order([y.op])):
        return
    leaves = [x for x in (*y.op.placeholders(), *y.op.variables()) if kind(x.dtype) == "f"]
    leaves = [x for x in leaves if x in {v.op for v in b.values}]
    if not leaves:
        return
    total = geon.sum(geon.square(y.op) if b.flag() else y.op)
    if b.flag():
        made = geon.deriv(total, leaves, unreached="zero")
    else:
        made = [geon.jvp(total, leaves, leaves)]
    made = [g for g in made if g.dtype.kind == "f"]
    b.measured(made)
