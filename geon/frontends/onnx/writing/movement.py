"""Rows of leaves, movement and indexing: Reshape, Slice, Concat, Pad, Gather, ScatterElements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....op_graph.axes.lengths import Length, product
from ....op_graph.building.constants import constant_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, INT64, kind, named_dtype
from .exporter import Exporter, OnnxValue
from .expressions import Expr

ALL = np.iinfo(np.int64).max


def constant(e: Exporter, op: Op) -> OnnxValue:
    """Write a constant as an initializer."""
    return OnnxValue(e.graph.constant(constant_value(op)), op.axes.names)


def iota(e: Exporter, op: Op) -> OnnxValue:
    """Write the positions along an axis."""
    return OnnxValue(e.range(op.attrs.axis.expression).cast(op.dtype).name, op.axes.names)


def length(e: Exporter, op: Op) -> OnnxValue:
    """Write a length as a scalar."""
    return OnnxValue(e.lengths.scalar(op.attrs.length), ())


def same(e: Exporter, op: Op) -> OnnxValue:
    """Return the value of the first argument."""
    value: OnnxValue = e.values[op.args[0]]
    return value


def rename(e: Exporter, op: Op) -> OnnxValue:
    """Return the same value under other names."""
    value: OnnxValue = e.values[op.args[0]]
    names = dict(zip(op.args[0].axes.names, op.axes.names, strict=True))
    return OnnxValue(value.name, tuple([names[name] for name in value.order]))


def flip(e: Exporter, op: Op) -> OnnxValue:
    """Write a Slice with steps of -1."""
    value: OnnxValue = e.values[op.args[0]]
    axes = [k for k, name in enumerate(value.order) if name in op.attrs.flipped]
    return OnnxValue(_sliced(e, value.name, axes, -1, -ALL, -1), value.order) if axes else value


def _sliced(e: Exporter, name: str, axes: list[int], *ends: int) -> str:
    parts = [e.graph.constant([end] * len(axes), np.int64) for end in ends]
    listed = e.graph.constant(axes, np.int64)
    return e.graph.node("Slice", [name, parts[0], parts[1], listed, parts[2]])


def flatten(e: Exporter, op: Op) -> OnnxValue:
    """Write a Reshape that merges dimensions."""
    return merged(e, op.args[0], op.attrs.merged, op.attrs.axis.name, op.axes)


def merged(e: Exporter, x: Op, names: Sequence[str], into: str, axes: Any = None) -> OnnxValue:
    """Return the value of ``x`` with dimensions merged, at the place of the first of them.

    ``axes`` are those of the result; with None a merged axis is always a dimension.
    """
    value: OnnxValue = e.values[x]
    if axes is not None and not any(name in value.order for name in names):
        return value
    value = e.complete(x, names)
    first = value.order.index(names[0])
    before = [name for name in value.order[:first] if name not in names]
    after = [name for name in value.order[first:] if name not in names]
    if len(names) == 1:
        return OnnxValue(value.name, tuple([into if n == names[0] else n for n in value.order]))
    arranged = e.transposed(value, (*before, *names, *after))
    size = product([x.axes[name].expression for name in names])
    lengths = [x.axes[name].expression for name in before]
    lengths += [size, *[x.axes[name].expression for name in after]]
    return OnnxValue(e.reshaped(arranged, lengths), (*before, into, *after))


def unflatten(e: Exporter, op: Op) -> OnnxValue:
    """Write a Reshape that splits a dimension."""
    value: OnnxValue = e.values[op.args[0]]
    if op.attrs.split not in value.order:
        return value
    at = value.order.index(op.attrs.split)
    order = (*value.order[:at], *op.attrs.axes.names, *value.order[at + 1 :])
    return OnnxValue(e.reshaped(value.name, [op.axes[name].expression for name in order]), order)


def slice_part(e: Exporter, op: Op) -> OnnxValue:
    """Write ranges as one Slice, and positions as Gather."""
    value: OnnxValue = e.values[op.args[0]]
    ranges: list[tuple[str, Any]] = []
    positions: list[tuple[str, Any]] = []
    for axis, item in zip(op.args[0].axes, op.attrs.items, strict=True):
        if item is not None and axis.name in value.order:
            (ranges if item[0] == "range" else positions).append((axis.name, item))
    name, order = value.name, list(value.order)
    if ranges:
        listed = [e.graph.constant([order.index(each) for each, _ in ranges], np.int64)]
        starts, stops, steps = (
            e.lengths.listed([item[k] for _, item in ranges]) for k in (1, 2, 3)
        )
        name = e.graph.node("Slice", [name, starts, stops, *listed, steps])
    for along, item in positions:
        index = position_of(e, op, item)
        name = e.gathered(name, index, order.index(along))
        order.remove(along)
    return OnnxValue(name, tuple(order))


def position_of(e: Exporter, op: Op, item: Any) -> str:
    """Return the index of one position, of a slice or update, as a scalar."""
    if item[0] == "at":
        return e.lengths.scalar(item[1])
    return e.expr(e.values[op.args[item[1]]].name, op.args[item[1]].dtype).cast(INT64).name


def concat(e: Exporter, op: Op) -> OnnxValue:
    """Write a Concat in the order of the first argument."""
    order = e.complete(op.args[0], op.axes.names).order
    parts = [e.arranged(arg, order) for arg in op.args]
    made = e.graph.node("Concat", parts, axis=order.index(op.attrs.axis))
    return OnnxValue(made, order)


def pad(e: Exporter, op: Op) -> OnnxValue:
    """Write a Pad along the padded axes."""
    widths = {
        axis.name: width
        for axis, width in zip(op.args[0].axes, op.attrs.widths, strict=True)
        if width is not None
    }
    return padded(e, e.complete(op.args[0], list(widths)), widths, op.args[1])


def padded(e: Exporter, value: OnnxValue, widths: dict[str, Any], fill: Op) -> OnnxValue:
    """Return a value with elements ``fill`` before and after some axes; negative numbers crop.

    All axes have widths: ONNX Runtime 1.32 moves a Transpose past a Pad as if it had no input of
    axes, and permutes the wrong numbers.
    """
    before, after = ([widths.get(name, (0, 0))[k] for name in value.order] for k in (0, 1))
    if all(isinstance(width, int) and width == 0 for width in (*before, *after)):
        return value
    pads = e.lengths.listed([*before, *after])
    x, filling = (e.expr(name, fill.dtype) for name in (value.name, e.values[fill].name))
    return OnnxValue(x.run_mixed("Pad", [x, pads, filling]).name, value.order)


# Windows ----------------------------------------------------------------------------------------


def _column(e: Exporter, values: Expr) -> Expr:
    """Return a list as a column, against which another list is a row."""
    return e.expr(e.graph.node("Unsqueeze", [values.name, e.graph.constant([1], np.int64)]), INT64)


def windows(e: Exporter, op: Op) -> OnnxValue:
    """Write a Pad where windows reach outside, and a Gather of the elements of each window."""
    a, x = op.attrs, op.args[0]
    value = e.complete(x, (a.axis,))
    if op.primitive.name == "padded_windows":
        reach = (a.length - 1) * a.stride + (a.window.expression - 1) * a.dilation + 1
        after = reach - a.before - x.axes[a.axis].expression
        value = padded(e, value, {a.axis: (a.before, after)}, op.args[1])
    starts, steps = e.range(a.length) * a.stride, e.range(a.window.expression) * a.dilation
    return _picked(e, value, op, _column(e, starts) + steps)


def unwindow(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather of the window that has an element at each position.

    Elements without one take the last element, which a Pad adds.
    """
    a = op.attrs
    count = op.args[0].axes[a.axis].expression
    value = padded(e, e.complete(op.args[0], (a.axis,)), {a.axis: (0, 1)}, op.args[1])
    steps = e.range(a.window.expression) * a.dilation
    start = _column(e, e.range(a.length)) + _number(e, a.before) - steps
    window = start.run("Div", a.stride)
    inside = (start >= 0) & (window < _number(e, count))
    if a.stride > 1:
        inside = inside & start.run("Mod", a.stride).equals(0)
    return _picked(e, value, op, inside.where(window, _number(e, count)), count + 1)


def _number(e: Exporter, value: int | Length) -> Expr:
    return e.expr(e.lengths.scalar(value), INT64)


def _picked(
    e: Exporter, value: OnnxValue, op: Op, index: Expr, length: int | Length | None = None
) -> OnnxValue:
    """Return the elements along the axis of windows at an index over the axis and the window.

    If the value has the axis of positions in windows already, each position picks from its own.
    ``length`` is that of the axis in the value, if it differs from that of the argument.
    """
    a = op.attrs
    at = value.order.index(a.axis)
    if a.window.name not in value.order:
        made = e.gathered(value.name, index.name, at)
        return OnnxValue(made, (*value.order[:at], a.axis, a.window.name, *value.order[at + 1 :]))
    rest = [name for name in value.order if name not in (a.axis, a.window.name)]
    arranged = e.transposed(value, (*rest, a.axis, a.window.name))
    width = a.window.expression
    # The last dimension merges both; its length is left to the runtime.
    shape = [op.axes[name].expression for name in rest]
    flat = e.graph.node(
        "Reshape", [arranged, e.lengths.listed([*shape, _size(e, op, length) * width])], allowzero=1
    )
    both = index * _number(e, width) + e.range(width)
    made = e.gathered(flat, both.name, len(rest))
    return OnnxValue(made, (*rest, a.axis, a.window.name))


def _size(e: Exporter, op: Op, length: int | Length | None) -> int | Length:
    if length is not None:
        return length
    a, x = op.attrs, op.args[0]
    if op.primitive.name == "padded_windows":
        reach = (a.window.expression - 1) * a.dilation + 1
        made: int | Length = (a.length - 1) * a.stride + reach
        return made
    return x.axes[a.axis].expression


def diagonal(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather along the merged axes, whose diagonal elements are equally far apart."""
    names, axis = op.attrs.axes, op.attrs.axis
    x = op.args[0]
    value = merged(e, x, names, "diagonal of axes")
    step: int | Length = 0
    for name in names:
        step = step * x.axes[name].expression + 1
    index = e.range(axis.expression) * _number(e, step)
    at = value.order.index("diagonal of axes")
    made = e.gathered(value.name, index.name, at)
    return OnnxValue(made, tuple([axis.name if k == at else n for k, n in enumerate(value.order)]))


# Updates ----------------------------------------------------------------------------------------


def update(e: Exporter, op: Op) -> OnnxValue:
    """Write x with a part replaced: pieces joined by Concat, along one axis in another."""
    x, value = op.args[:2]
    order = op.axes.names
    name = e.arranged(x, order)
    items = [(k, item) for k, item in enumerate(op.attrs.items) if item is not None]
    part = e.arranged(value, [n for n in order if n in value.axes])
    single = [k for k, item in items if item[0] != "range"]
    if single:
        part = e.graph.node("Unsqueeze", [part, e.graph.constant(single, np.int64)])
    return OnnxValue(_updated(e, op, name, part, items), order)


def _updated(e: Exporter, op: Op, x: str, value: str, items: list[tuple[int, Any]]) -> str:
    """Return ``x`` with the part that ``items`` select, by dimension, replaced by ``value``."""
    if not items:
        return value
    (at, item), rest = items[0], items[1:]
    axis = e.graph.constant([at], np.int64)
    start, stop, step = _ends(e, op, at, item)
    one = e.graph.constant([step], np.int64)
    part = x if not rest else e.graph.node("Slice", [x, start, stop, axis, one])
    new = _updated(e, op, part, value, rest)
    if step > 1:
        index = e.graph.node("Range", [*(e.graph.node("Squeeze", [v]) for v in (start, stop, one))])
        return scattered(e, x, index, new, at, len(op.axes))
    zero, end = e.graph.constant([0], np.int64), e.graph.constant([ALL], np.int64)
    before = e.graph.node("Slice", [x, zero, start, axis])
    after = e.graph.node("Slice", [x, stop, end, axis])
    return e.graph.node("Concat", [before, new, after], axis=at)


def _ends(e: Exporter, op: Op, at: int, item: Any) -> tuple[str, str, int]:
    """Return the first position of an item and the one after the last, as lists, and its step."""
    if item[0] == "range":
        return e.lengths.listed([item[1]]), e.lengths.listed([item[2]]), item[3]
    if item[0] == "at":
        return e.lengths.listed([item[1]]), e.lengths.listed([item[1] + 1]), 1
    index = e.expr(position_of(e, op, item), INT64)
    wrapped = (index < 0).where(index + _number(e, op.axes[at].expression), index)
    vector = e.graph.node("Reshape", [wrapped.name, e.graph.constant([1], np.int64)])
    return vector, (e.expr(vector, INT64) + 1).name, 1


def scattered(
    e: Exporter, x: str, index: str, value: str, at: int, rank: int, reduction: str = "none"
) -> str:
    """Return ``x`` with ``value`` put at a list of positions along a dimension."""
    others = [k for k in range(rank) if k != at]
    if others:
        index = e.graph.node("Unsqueeze", [index, e.graph.constant(others, np.int64)])
    full = e.graph.node("Expand", [index, e.graph.node("Shape", [value])])
    return e.graph.node("ScatterElements", [x, full, value], axis=at, reduction=reduction)


# Positions --------------------------------------------------------------------------------------


def gather(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather; after lowering, an index shares no axis with the tensor."""
    x, index = op.args
    value, places = e.complete(x, (op.attrs.axis,)), e.values[index]
    at = value.order.index(op.attrs.axis)
    made = e.gathered(value.name, places.name, at)
    return OnnxValue(made, (*value.order[:at], *places.order, *value.order[at + 1 :]))


MODES = {"add": "add", "multiply": "mul", "max": "max", "min": "min"}


def scatter(e: Exporter, op: Op) -> OnnxValue:
    """Write a ScatterElements along a list of positions.

    Of several values for one position the last is kept, which ONNX leaves open: their numbers are
    scattered by their maximum, and the values gathered.
    """
    x, index, value = op.args
    axis, mode = op.attrs.axis, op.attrs.mode
    order = e.complete(x, op.axes.names).order
    at = order.index(axis)
    own = index.axes.names
    places = e.reshaped(e.arranged(index, own), [index.axes.size])
    values = e.arranged(value, (*order[:at], *own, *order[at + 1 :]))
    lengths = [op.axes[name].expression for name in order]
    count = index.axes.size
    values = e.reshaped(values, [*lengths[:at], count, *lengths[at + 1 :]])
    name = e.arranged(x, order)
    if mode == "set":
        size = op.axes[axis].expression
        last = (e.range(size) + _number(e, count)).name
        # Behind the values stand the elements of x, one of which each position has at first.
        numbers = e.range(count).name
        wrapped = e.expr(places, INT64)
        wrapped = (wrapped < 0).where(wrapped + _number(e, size), wrapped)
        unset = e.range(size) * 0 - 1
        found = e.expr(scattered(e, unset.name, wrapped.name, numbers, 0, 1, "max"), INT64)
        chosen = (found < 0).where(e.expr(last, INT64), found)
        both = e.graph.node("Concat", [values, name], axis=at)
        return OnnxValue(e.gathered(both, chosen.name, at), order)
    return OnnxValue(_combined(e, op, name, places, values, at), order)


def _combined(e: Exporter, op: Op, x: str, places: str, values: str, at: int) -> str:
    """Return a scatter that combines values; NaN is kept by maxima and minima."""
    mode, rank = op.attrs.mode, len(op.axes)
    wide = named_dtype("uint8") if op.dtype == BOOL else op.dtype
    if op.dtype.name in ("float16", "bfloat16"):
        wide = named_dtype("float32")
    both = [e.expr(name, op.dtype).cast(wide) for name in (x, values)]
    made = e.expr(scattered(e, both[0].name, places, both[1].name, at, rank, MODES[mode]), wide)
    if mode in ("max", "min") and kind(wide) == "f":
        marks = [each.run("IsNaN").cast(INT64).name for each in both]
        hits = e.expr(scattered(e, marks[0], places, marks[1], at, rank, "add"), INT64)
        made = (hits > 0).where(float("nan"), made)
    return made.cast(op.dtype).name


def checked(e: Exporter, op: Op) -> OnnxValue:
    """Write positions: Gather and Slice check those of axes, a Gather from one element others.

    The number of a branch, and the sign that a loop converged, select no element of an axis.
    """
    value: OnnxValue = e.values[op.args[0]]
    if op.attrs.from_end:
        return value
    number = op.args[-1]
    index = e.operand(number, value.order)
    outside = (index < 0) | (index >= _number(e, op.attrs.length).cast(number.dtype))
    one = e.graph.constant([0], np.int64)
    zero = e.expr(e.gathered(one, outside.cast(INT64).name, 0), INT64)
    x = e.expr(value.name, op.args[0].dtype)
    if len(op.args) == 1:
        return OnnxValue((x + zero.cast(x.dtype)).name, value.order)
    return OnnxValue(zero.equals(0).where(x, x).name, value.order)


Row = Callable[[Exporter, Op], Any]
ROWS: dict[str, Row] = {
    "after": same,
    "broadcast": same,
    "checked": checked,
    "concat": concat,
    "constant": constant,
    "diagonal": diagonal,
    "flatten": flatten,
    "flip": flip,
    "gather": gather,
    "iota": iota,
    "length": length,
    "pad": pad,
    "padded_windows": windows,
    "rename": rename,
    "reorder": same,
    "scatter": scatter,
    "slice": slice_part,
    "unflatten": unflatten,
    "unwindow": unwindow,
    "update": update,
    "window": windows,
}
