"""Rows that read or write elements at computed positions: Gather and ScatterElements.

Windows are gathers whose positions follow from lengths.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, FLOAT32, HALVES, INT64, kind, named_dtype
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import Row, merged, padded, scattered

WHOLE = "merged axes"  # the name of dimensions merged for a gather


def windows(e: Exporter, op: Op) -> OnnxValue:
    """Write a Pad where windows reach outside, and a Gather of the elements of each window."""
    a, length = op.attrs, op.args[0].axes[op.attrs.axis].expression
    value = e.complete(op.args[0], (a.axis,))
    if op.primitive.name == "padded_windows":
        reach = (a.length - 1) * a.stride + (a.window.expression - 1) * a.dilation + 1
        value = padded(e, value, {a.axis: (a.before, reach - a.before - length)}, op.args[1])
        length = reach
    starts, steps = e.range(a.length) * a.stride, e.range(a.window.expression) * a.dilation
    column = starts.run("Unsqueeze", e.integers([1]))
    return _picked(e, value, op, column + steps, length)


def unwindow(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather of the window that has an element at each position.

    Elements without one take the last element, which a Pad adds.
    """
    a, count = op.attrs, op.args[0].axes[op.attrs.axis].expression
    value = padded(e, e.complete(op.args[0], (a.axis,)), {a.axis: (0, 1)}, op.args[1])
    steps = e.range(a.window.expression) * a.dilation
    column = e.range(a.length).run("Unsqueeze", e.integers([1]))
    start = column + e.number(a.before) - steps
    window = start.run("Div", a.stride)
    inside = (start >= 0) & (window < e.number(count))
    if a.stride > 1:
        inside = inside & start.run("Mod", a.stride).equals(0)
    return _picked(e, value, op, inside.where(window, e.number(count)), count + 1)


def _picked(e: Exporter, value: OnnxValue, op: Op, index: Expr, length: int | Length) -> OnnxValue:
    """Return the elements along the axis of windows at an index over the axis and the window.

    If the value has the axis of positions in windows already, each position picks from its own.
    ``length`` is that of the axis in the value.
    """
    axis, window = op.attrs.axis, op.attrs.window
    if window.name in value.order:
        rest = [name for name in value.order if name not in (axis, window.name)]
        width = window.expression
        shape = [*[op.axes[name].expression for name in rest], length * width]
        flat = e.reshaped(e.transposed(value, (*rest, axis, window.name)), shape)
        value = OnnxValue(flat, (*rest, axis))
        index = index * e.number(width) + e.range(width)
    return e.gathered(value, axis, index.name, axis, window.name)


def diagonal(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather along the merged axes, whose diagonal elements are equally far apart."""
    (x,), step = op.args, 0
    for name in op.attrs.axes:
        step = step * x.axes[name].expression + 1
    index = e.range(op.attrs.axis.expression) * e.number(step)
    return e.gathered(merged(e, x, op.attrs.axes, WHOLE), WHOLE, index.name, op.attrs.axis.name)


def gather(e: Exporter, op: Op) -> OnnxValue:
    """Write a Gather; after lowering, an index shares no axis with the tensor."""
    index, axis = e.values[op.args[1]], op.attrs.axis
    return e.gathered(e.complete(op.args[0], (axis,)), axis, index.name, *index.order)


MODES = {"add": "add", "multiply": "mul", "max": "max", "min": "min"}


def scatter(e: Exporter, op: Op) -> OnnxValue:
    """Write a ScatterElements along a list of positions.

    Of several values for one position the last is kept, which ONNX leaves open: their numbers are
    scattered by their maximum, and the values gathered. Behind the values stand the elements of x,
    one of which each position has at first.
    """
    x, index, value = op.args
    old = e.complete(x, op.axes.names)
    at, size = old.order.index(op.attrs.axis), op.axes[op.attrs.axis].expression
    own, count = index.axes.names, index.axes.size
    places = e.expr(e.reshaped(e.arranged(index, own), [count]), INT64)
    lengths = [op.axes[name].expression for name in old.order]
    lengths[at] = count
    values = e.reshaped(e.arranged(value, old.with_axes(op.attrs.axis, *own)), lengths)
    if op.attrs.mode != "set":
        return OnnxValue(_combined(e, op, old.name, places.name, values, at), old.order)
    wrapped = (places < 0).where(places + e.number(size), places).name
    unset, numbers = (e.range(size) * 0 - 1).name, e.range(count).name
    last = e.expr(scattered(e, unset, wrapped, numbers, 0, 1, "max"), INT64)
    chosen = (last < 0).where(e.range(size) + e.number(count), last)
    both = OnnxValue(e.graph.node("Concat", [values, old.name], axis=at), old.order)
    return e.gathered(both, op.attrs.axis, chosen.name, op.attrs.axis)


def _combined(e: Exporter, op: Op, x: str, places: str, values: str, at: int) -> str:
    """Return a scatter that combines values; NaN is kept by maxima and minima."""
    mode, rank = op.attrs.mode, len(op.axes)
    wide = named_dtype("uint8") if op.dtype == BOOL else op.dtype
    wide = FLOAT32 if op.dtype.name in HALVES else wide
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
    number, x = op.args[-1], e.expr(value.name, op.dtype)
    index = e.operand(number, value.order)
    outside = (index < 0) | (index >= e.number(op.attrs.length).cast(number.dtype))
    one = OnnxValue(e.integers([0]), (WHOLE,))
    zero = e.expr(e.gathered(one, WHOLE, outside.cast(INT64).name).name, INT64)
    made = x + zero.cast(x.dtype) if len(op.args) == 1 else zero.equals(0).where(x, x)
    return OnnxValue(made.name, value.order)


ROWS: dict[str, Row] = {
    "checked": checked,
    "diagonal": diagonal,
    "gather": gather,
    "padded_windows": windows,
    "scatter": scatter,
    "unwindow": unwindow,
    "window": windows,
}
