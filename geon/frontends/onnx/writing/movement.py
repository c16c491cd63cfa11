"""Rows of leaves and movement: Reshape, Slice, Concat, Pad; most names of axes write nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....op_graph.axes.lengths import product
from ....op_graph.building.constants import constant_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import INT64
from .exporter import Exporter, OnnxValue

END = np.iinfo(np.int64).max  # beyond the end of every axis
Row = Callable[[Exporter, Op], Any]


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
    value = same(e, op)
    names = dict(zip(op.args[0].axes.names, op.axes.names, strict=True))
    return OnnxValue(value.name, tuple([names[name] for name in value.order]))


def flip(e: Exporter, op: Op) -> OnnxValue:
    """Write a Slice with steps of -1."""
    value = same(e, op)
    axes = [k for k, name in enumerate(value.order) if name in op.attrs.flipped]
    if not axes:
        return value
    first, last, step = (e.integers([end] * len(axes)) for end in (-1, -END, -1))
    made = e.graph.node("Slice", [value.name, first, last, e.integers(axes), step])
    return OnnxValue(made, value.order)


def flatten(e: Exporter, op: Op) -> OnnxValue:
    """Write a Reshape that merges dimensions."""
    value = same(e, op)
    if not any(name in value.order for name in op.attrs.merged):
        return value
    return merged(e, op.args[0], op.attrs.merged, op.attrs.axis.name)


def merged(e: Exporter, x: Op, names: Sequence[str], into: str) -> OnnxValue:
    """Return the value of ``x`` with dimensions merged, at the place of the first of them."""
    value = e.complete(x, names)
    rest = [name for name in value.order if name == names[0] or name not in names]
    order = OnnxValue("", tuple(rest)).with_axes(names[0], *names)
    lengths = [
        product([x.axes[n].expression for n in (names if name == names[0] else [name])])
        for name in rest
    ]
    made = e.transposed(value, order)
    made = made if len(names) == 1 else e.reshaped(made, lengths)
    return OnnxValue(made, tuple([into if name == names[0] else name for name in rest]))


def unflatten(e: Exporter, op: Op) -> OnnxValue:
    """Write a Reshape that splits a dimension."""
    value = same(e, op)
    if op.attrs.split not in value.order:
        return value
    order = value.with_axes(op.attrs.split, *op.attrs.axes.names)
    return OnnxValue(e.reshaped(value.name, [op.axes[name].expression for name in order]), order)


def concat(e: Exporter, op: Op) -> OnnxValue:
    """Write a Concat in the order of the first argument."""
    order = e.complete(op.args[0], op.axes.names).order
    parts = [e.arranged(arg, order) for arg in op.args]
    return OnnxValue(e.graph.node("Concat", parts, axis=order.index(op.attrs.axis)), order)


def pad(e: Exporter, op: Op) -> OnnxValue:
    """Write a Pad along the padded axes."""
    x, fill = op.args
    pairs = zip(x.axes.names, op.attrs.widths, strict=True)
    widths = {name: width for name, width in pairs if width is not None}
    return padded(e, e.complete(x, list(widths)), widths, fill)


def padded(e: Exporter, value: OnnxValue, widths: dict[str, Any], fill: Op) -> OnnxValue:
    """Return a value with elements ``fill`` before and after some axes; negative numbers crop.

    All axes have widths: ONNX Runtime 1.32 moves a Transpose past a Pad as if it had no input of
    axes, and permutes the wrong numbers.
    """
    pads = [widths.get(name, (0, 0))[k] for k in (0, 1) for name in value.order]
    if all(isinstance(width, int) and width == 0 for width in pads):
        return value
    x, filling = (e.expr(name, fill.dtype) for name in (value.name, e.values[fill].name))
    return OnnxValue(x.run("Pad", e.lengths.listed(pads), filling).name, value.order)


# Parts ------------------------------------------------------------------------------------------


def slice_part(e: Exporter, op: Op) -> OnnxValue:
    """Write ranges as one Slice, and positions as Gather."""
    value = same(e, op)
    pairs = zip(op.args[0].axes.names, op.attrs.items, strict=True)
    items = {name: item for name, item in pairs if item is not None and name in value.order}
    ranges = {name: item for name, item in items.items() if item[0] == "range"}
    if ranges:
        starts, stops, steps = (
            e.lengths.listed([item[k] for item in ranges.values()]) for k in (1, 2, 3)
        )
        axes = e.integers([value.order.index(name) for name in ranges])
        made = e.graph.node("Slice", [value.name, starts, stops, axes, steps])
        value = OnnxValue(made, value.order)
    for name, item in items.items():
        if name not in ranges:
            value = e.gathered(value, name, position_of(e, op, item))
    return value


def position_of(e: Exporter, op: Op, item: Any) -> str:
    """Return the index of one position, of a slice or update, as a scalar."""
    if item[0] == "at":
        return e.lengths.scalar(item[1])
    return e.expr(e.values[op.args[item[1]]].name, op.args[item[1]].dtype).cast(INT64).name


def update(e: Exporter, op: Op) -> OnnxValue:
    """Write x with a part replaced: pieces joined by Concat, along one axis in another."""
    x, value = op.args[:2]
    order = op.axes.names
    items = [(k, item) for k, item in enumerate(op.attrs.items) if item is not None]
    part = e.arranged(value, [n for n in order if n in value.axes])
    single = [k for k, item in items if item[0] != "range"]
    if single:
        part = e.graph.node("Unsqueeze", [part, e.integers(single)])
    return OnnxValue(_updated(e, op, e.arranged(x, order), part, items), order)


def _updated(e: Exporter, op: Op, x: str, value: str, items: list[tuple[int, Any]]) -> str:
    """Return ``x`` with the part that ``items`` select, by dimension, replaced by ``value``."""
    if not items:
        return value
    (at, item), rest = items[0], items[1:]
    axis, (start, stop, step) = e.integers([at]), _ends(e, op, at, item)
    if rest:
        part = e.graph.node("Slice", [x, start, stop, axis, e.integers([step])])
        value = _updated(e, op, part, value, rest)
    if step > 1:
        ends = [e.graph.node("Squeeze", [end]) for end in (start, stop, e.integers([step]))]
        return scattered(e, x, e.graph.node("Range", ends), value, at, len(op.axes))
    before = e.graph.node("Slice", [x, e.integers([0]), start, axis])
    after = e.graph.node("Slice", [x, stop, e.integers([END]), axis])
    return e.graph.node("Concat", [before, value, after], axis=at)


def _ends(e: Exporter, op: Op, at: int, item: Any) -> tuple[str, str, int]:
    """Return the first position of an item and the one after the last, as lists, and its step."""
    if item[0] != "dyn":
        first, last, step = item[1:] if item[0] == "range" else (item[1], item[1] + 1, 1)
        return e.lengths.listed([first]), e.lengths.listed([last]), step
    index = e.expr(position_of(e, op, item), INT64)
    wrapped = (index < 0).where(index + e.number(op.axes[at].expression), index)
    vector = e.graph.node("Reshape", [wrapped.name, e.integers([1])])
    return vector, (e.expr(vector, INT64) + 1).name, 1


def scattered(
    e: Exporter, x: str, index: str, value: str, at: int, rank: int, reduction: str = "none"
) -> str:
    """Return ``x`` with ``value`` put at a list of positions along a dimension."""
    others = [k for k in range(rank) if k != at]
    if others:
        index = e.graph.node("Unsqueeze", [index, e.integers(others)])
    full = e.graph.node("Expand", [index, e.graph.node("Shape", [value])])
    return e.graph.node("ScatterElements", [x, full, value], axis=at, reduction=reduction)


ROWS: dict[str, Row] = {
    "after": same,
    "broadcast": same,
    "concat": concat,
    "constant": constant,
    "flatten": flatten,
    "flip": flip,
    "iota": iota,
    "length": length,
    "pad": pad,
    "rename": rename,
    "reorder": same,
    "slice": slice_part,
    "unflatten": unflatten,
    "update": update,
}
