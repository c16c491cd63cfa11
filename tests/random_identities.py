"""Steps of random graphs that write what simplification rules look for."""

import geon

from .random_steps import ULPS

# Forms of x and y that equal the second function of their bounds; exact where x and y are.
EXACT = [
    lambda x, y: -x,
    lambda x, y: -geon.negative(x),
    lambda x, y: x * -1 if x.dtype.kind != "u" else x * 1,
    lambda x, y: -geon.reorder(-x, list(x.axes)[::-1]),
    lambda x, y: geon.reorder(-x, list(x.axes)[::-1]) * -y,
    lambda x, y: 1 * x,
    lambda x, y: 0 - x,
    lambda x, y: x - 0,
    lambda x, y: 0 + x,
    lambda x, y: x + 0.0 if x.dtype.kind == "f" else x + 0,
    lambda x, y: x - (-y),
    lambda x, y: x + (-y),
    lambda x, y: (-x) + y,
    lambda x, y: (-x) - y,
    lambda x, y: (-x) * (-y),
    lambda x, y: x * (-y),
    lambda x, y: -(x - y),
    lambda x, y: x**1,
    lambda x, y: geon.where(geon.less_equal(x, 0), 0, x),
    lambda x, y: geon.where(True, x, y),
    lambda x, y: geon.where(geon.constant(False), x, y),
    lambda x, y: geon.stop_gradient(x) + y,
    lambda x, y: geon.cast(geon.cast(x, x.dtype), x.dtype),
    lambda x, y: geon.reorder(geon.reorder(x, list(x.axes)[::-1]), x.axes),
    lambda x, y: geon.flip(geon.flip(x, x.axes), x.axes),
    lambda x, y: geon.maximum(x, y) - geon.minimum(x, y),
    lambda x, y: x * True if x.dtype.kind != "b" else x,
]
ROUNDED = [
    lambda x, y: x / 1,
    lambda x, y: x / -1.0,
    lambda x, y: (-x) / 2,
    lambda x, y: geon.log(geon.exp(geon.tanh(x))),
    lambda x, y: geon.log(geon.reorder(geon.exp(geon.tanh(x)), list(x.axes)[::-1])),
    lambda x, y: geon.log(geon.reorder(geon.sigmoid(geon.tanh(x)), list(x.axes)[::-1])),
    lambda x, y: geon.log1p(geon.reorder(geon.exp(geon.tanh(x)), list(x.axes)[::-1])),
    lambda x, y: geon.log(1 + geon.exp(geon.tanh(x))),
    lambda x, y: geon.log(geon.exp(geon.tanh(y)) + 1),
    lambda x, y: geon.log1p(geon.exp(geon.tanh(x))),
    lambda x, y: geon.log(geon.sigmoid(geon.tanh(x))),
    lambda x, y: geon.log(1 - geon.sigmoid(geon.tanh(x))),
    lambda x, y: geon.log(geon.exp(geon.tanh(x)) / (2 + geon.square(geon.tanh(y)))),
    lambda x, y: x**0 + y,
    lambda x, y: (2 + geon.square(geon.tanh(x))) ** -1,
    lambda x, y: 1 / (2 + geon.square(geon.tanh(x))),
]


def identity(b):
    """A form that is simpler than it is written."""
    x = b.pick(lambda v: v.kind != "b")
    y = b.pick(lambda v: v.axes is x.axes and v.op.dtype is x.op.dtype)
    if b.special:  # rules keep values, not which of the special ones comes of others
        return
    bound, error = x.bound + y.bound, x.error + y.error
    smooth = x.smooth and y.smooth and x.exact and y.exact
    form = b.integer(0, len(EXACT) + len(ROUNDED) - 1)
    if form < len(EXACT):
        made = EXACT[form](x.op, y.op)
        product = x.bound * y.bound
        spread = x.bound * y.error + y.bound * x.error
        b.rounded(made, max(bound, product), max(error, spread), 4 * bool(error), smooth)
    elif x.kind == "f" and max(x.bound, y.bound) < 50:
        b.rounded(ROUNDED[form - len(EXACT)](x.op, y.op), bound + 4, 2 * error, ULPS, smooth)


def size_of_sum(b):
    """Sums over axes that a broadcast added, and of what is the same in all of them."""
    x = b.pick(lambda v: v.kind != "b" and len(v.axes) < 4)
    new = [a for a in b.axes if a not in x.axes] if x is not None else []
    if not new or b.special:
        return
    added = b.some(new, least=1, most=2)
    wide = geon.broadcast(x.op, b.some([*x.axes, *added], least=len(x.axes) + len(added)))
    reduced = [*added, *b.some(x.axes)]
    count = b.most(reduced)
    turned = geon.reorder(wide, list(wide.axes)[::-1])
    made = geon.sum(b.choice([wide, -wide, -turned]), reduced)
    b.rounded(made, count * x.bound, count * x.error, 2 * count, x.smooth)
