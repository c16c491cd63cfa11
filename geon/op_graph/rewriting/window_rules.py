"""Sums of windows in derivatives, rewritten as contractions over windows.

What undoes windows is linear, and moves elements along two axes alone. So it goes past what repeats
or reorders, past sums over other axes, and into the factors of a product: the sum over positions is
then summed by the product, and none of what it was over is ever in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..axes.lengths import product
from ..op_graph import Op, Tensor, make
from ..rows.concatenation import pad
from ..rows.contraction import contract_two
from ..rows.movement import flatten, sum_over
from ..rows.windows import unwindow
from .driver import Rules
from .matching import is_of, over_axes, tensor

POSITIONS = 64  # positions in windows that sums are taken over without a loop,
STEPS = 8  # where windows begin no further apart

simpler = Rules("simpler windows")
stored = Rules("windows that are stored")


@simpler.on("window", "padded_windows", "unwindow")
def windows_of_broadcast(op: Op) -> Op | None:
    """Windows of what is repeated or reordered are those of what it is made of."""
    inner = op.args[0]
    if not (is_of(inner, "broadcast") or is_of(inner, "reorder")):
        return None
    x = inner.args[0]
    if op.attrs[0] not in x.axes:
        return None
    return over_axes(make(op.primitive, (x, *op.args[1:]), op.attrs), op)


@simpler.on("sum")
def sum_of_windows_side_by_side(op: Op) -> Op | None:
    """Where windows follow each other without a gap, each element is in one: they are flattened.

    Sums over few positions of what is no product are left to targets that do not store windows.
    """
    undone, names = _beneath(op.args[0]), op.attrs[0]
    if not is_of(undone, "unwindow") or undone.attrs[1].name not in names:
        return None
    count = product(op.args[0].axes[each].expression for each in names)
    few = isinstance(count, int) and count <= POSITIONS and undone.attrs[2] <= STEPS
    y = _beneath(undone.args[0])
    if few and not (is_of(y, "dot") or is_of(y, "multiply")):
        return None
    return flattened_windows(op)


@stored.on("sum")
def flattened_windows(op: Op) -> Op | None:
    """The same, whatever they show and how many positions there are."""
    undone, names = _beneath(op.args[0]), op.attrs[0]
    if not is_of(undone, "unwindow") or undone.attrs[1].name not in names:
        return None
    name, window, stride, dilation, before, length = undone.attrs
    y = tensor(undone.args[0])
    count = y.axes[name].expression * stride
    known = isinstance(length, int) and isinstance(count, int)
    if window.expression != stride or dilation != 1 or before != 0 or window.name not in y.axes:
        return None
    if not known or not count <= length:
        return None
    whole = y.axes[name].with_length(count)
    together = flatten(y, [y.axes[name], window], whole)
    if count < length:
        together = pad(together, {name: (0, length - count)})
    rest = tuple([each for each in names if each != window.name])
    return over_axes(sum_over(together, rest) if rest else together, op)


@simpler.on("sum")
def sum_of_unwindow(op: Op) -> Op | None:
    """A sum over positions of windows undone: of a product it is one, of a sum one sum."""
    undone, names = _beneath(op.args[0]), op.attrs[0]
    if not is_of(undone, "unwindow") or undone.attrs[1].name not in names:
        return None
    y, attrs = _beneath(undone.args[0]), undone.attrs
    if is_of(y, "sum") and y.dtype is y.args[0].dtype:
        return over_axes(sum_over(unwindow(tensor(y.args[0]), attrs), (*y.attrs[0], *names)), op)
    if is_of(y, "dot") or is_of(y, "multiply"):
        summed = y.attrs[0] if is_of(y, "dot") else ()
        return _product(op, [unwindowed(factor, attrs) for factor in y.args], summed)
    return None


def unwindowed(factor: Op, attrs: tuple[object, ...]) -> Tensor:
    """A factor of a product whose windows are undone: one that has the axis."""
    x = tensor(factor)
    return unwindow(x, attrs) if attrs[0] in x.axes else x  # type: ignore[arg-type]  # a row's own


def _product(op: Op, factors: Sequence[Tensor], summed: tuple[str, ...]) -> Tensor | None:
    """The sum of a product over what it sums and all that ``op`` does; None where it is none."""
    x, y = factors
    if any(name not in x.axes or name not in y.axes for name in op.attrs[0]):
        return None
    made = contract_two(x, y, (*summed, *op.attrs[0]))
    return over_axes(made, op) if made.dtype is op.dtype else None


def _beneath(op: Op) -> Op:
    """What is reordered."""
    while is_of(op, "reorder"):
        op = op.args[0]
    return op


WINDOW_RULES = simpler.done()
STORED_WINDOW_RULES = stored.done()
