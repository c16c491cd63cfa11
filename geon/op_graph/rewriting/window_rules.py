"""Rewrites sums over windows in derivatives as contractions over windows.

``unwindow`` (the transpose of taking windows) is linear and moves elements along two axes only. So
it commutes with broadcasts, reorders and sums over other axes, and distributes into the factors of
a product. The sum over window positions is then part of the contraction, and the summed product is
never in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..axes.lengths import product
from ..op_graph import Op, Tensor, make
from ..rows.concatenation import pad
from ..rows.contraction import contract_two
from ..rows.movement import flatten, sum_over
from ..rows.windows import WindowAttributes, unwindow
from .driver import Rules
from .matching import is_of, over_axes, tensor

MAX_UNROLLED_POSITIONS = 64  # window positions: sums over at most this many are left to targets if
MAX_WINDOW_STRIDE = 8  # the stride of windows, in elements, is at most this

simpler = Rules("simpler windows")
stored = Rules("windows that are stored")


@simpler.on("window", "padded_windows", "unwindow")
def windows_of_broadcast(op: Op) -> Op | None:
    """window(broadcast(x)) is broadcast(window(x)), and so are the other window ops."""
    inner = op.args[0]
    if not (is_of(inner, "broadcast") or is_of(inner, "reorder")):
        return None
    x = inner.args[0]
    if op.attrs.axis not in x.axes:
        return None
    return over_axes(make(op.primitive, (x, *op.args[1:]), op.attrs), op)


@simpler.on("sum")
def sum_of_windows_side_by_side(op: Op) -> Op | None:
    """sum(unwindow(y)) of windows without gaps or overlaps is a flatten of y.

    Sums over few positions, unless of a product, are left to targets that do not store windows.
    """
    undone, names = _beneath(op.args[0]), op.attrs.reduced
    if not is_of(undone, "unwindow") or undone.attrs.window.name not in names:
        return None
    count = product(op.args[0].axes[each].expression for each in names)
    few = (
        isinstance(count, int)
        and count <= MAX_UNROLLED_POSITIONS
        and undone.attrs.stride <= MAX_WINDOW_STRIDE
    )
    y = _beneath(undone.args[0])
    if few and not (is_of(y, "dot") or is_of(y, "multiply")):
        return None
    return flattened_windows(op)


@stored.on("sum")
def flattened_windows(op: Op) -> Op | None:
    """sum(unwindow(y)) of adjacent windows is a flatten of y, for any y and number of positions."""
    undone, names = _beneath(op.args[0]), op.attrs.reduced
    if not is_of(undone, "unwindow") or undone.attrs.window.name not in names:
        return None
    a: WindowAttributes = undone.attrs
    y = tensor(undone.args[0])
    window, count = a.window, y.axes[a.axis].expression * a.stride
    if window.expression != a.stride or a.dilation != 1 or a.before != 0:
        return None
    if window.name not in y.axes or not (isinstance(a.length, int) and isinstance(count, int)):
        return None
    if count > a.length:
        return None
    whole = y.axes[a.axis].with_length(count)
    together = flatten(y, [y.axes[a.axis], window], whole)
    if count < a.length:
        together = pad(together, {a.axis: (0, a.length - count)})
    rest = tuple([each for each in names if each != window.name])
    return over_axes(sum_over(together, rest) if rest else together, op)


@simpler.on("sum")
def sum_of_unwindow(op: Op) -> Op | None:
    """sum(unwindow(y)) over window positions goes into y if y is a sum or a product."""
    undone, names = _beneath(op.args[0]), op.attrs.reduced
    if not is_of(undone, "unwindow") or undone.attrs.window.name not in names:
        return None
    y, attrs = _beneath(undone.args[0]), undone.attrs
    if is_of(y, "sum") and y.dtype is y.args[0].dtype:
        return over_axes(
            sum_over(unwindow(tensor(y.args[0]), attrs), (*y.attrs.reduced, *names)), op
        )
    if is_of(y, "dot") or is_of(y, "multiply"):
        summed = y.attrs.over if is_of(y, "dot") else ()
        return _product(op, [undo_windows(factor, attrs) for factor in y.args], summed)
    return None


def undo_windows(factor: Op, attrs: WindowAttributes) -> Tensor:
    """Return a factor of a product with its windows undone, if it has the axis of windows."""
    x = tensor(factor)
    return unwindow(x, attrs) if attrs.axis in x.axes else x


def _product(op: Op, factors: Sequence[Tensor], summed: tuple[str, ...]) -> Tensor | None:
    """Return the product of ``factors`` summed over ``summed`` and the axes that ``op`` sums.

    None if a factor lacks an axis that ``op`` sums, or the dtype differs.
    """
    x, y = factors
    if any(name not in x.axes or name not in y.axes for name in op.attrs.reduced):
        return None
    result = contract_two(x, y, (*summed, *op.attrs.reduced))
    return over_axes(result, op) if result.dtype is op.dtype else None


def _beneath(op: Op) -> Op:
    """Return the op below reorders."""
    while is_of(op, "reorder"):
        op = op.args[0]
    return op


WINDOW_RULES = simpler.done()
STORED_WINDOW_RULES = stored.done()
