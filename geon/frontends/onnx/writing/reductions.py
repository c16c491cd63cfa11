"""Rows of reductions, running sums and sorting: the Reduce operators, CumSum, Scan, TopK."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import BOOL, INT64, kind
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .kernels import carrier
from .movement import Row


def _reduced(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write one of the Reduce operators; sums and products accumulate in the result's dtype."""
    x, names = op.args[0], op.attrs.reduced
    value = e.complete(x, names)
    operand = e.expr(value.name, x.dtype).cast(op.dtype)
    axes = e.graph.constant([value.order.index(name) for name in names], np.int64)
    made = operand.with_inputs(operator, axes, keepdims=0, noop_with_empty_axes=1)
    return OnnxValue(made.name, tuple([name for name in value.order if name not in names]))


def _truth(e: Exporter, op: Op, every: bool) -> OnnxValue:
    """Write whether all or any elements are true; without elements, by their number."""
    x, names = op.args[0], op.attrs.reduced
    if all(isinstance(x.axes[name].expression, int) and x.axes[name].expression for name in names):
        return _reduced(e, op, "ReduceMin" if every else "ReduceMax")
    value = e.complete(x, names)
    operand = e.expr(value.name, x.dtype)
    axes = e.graph.constant([value.order.index(name) for name in names], np.int64)
    counted = (~operand if every else operand).cast(INT64)
    count = counted.with_inputs("ReduceSum", axes, keepdims=0)
    made = count.equals(0) if every else count > 0
    return OnnxValue(made.name, tuple([name for name in value.order if name not in names]))


def _extreme(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write ReduceMax or ReduceMin; NaN among the elements is the result, as the kernels have it
    only in the first place.
    """
    made = _reduced(e, op, operator)
    if kind(op.dtype) != "f":
        return made
    x = op.args[0]
    value = e.complete(x, op.attrs.reduced)
    wrong = e.expr(value.name, x.dtype).run("IsNaN")
    axes = e.graph.constant([value.order.index(n) for n in op.attrs.reduced], np.int64)
    found = wrong.with_inputs("ReduceMax", axes, keepdims=0, noop_with_empty_axes=1)
    extreme = e.expr(made.name, op.dtype)
    return OnnxValue(found.where(float("nan"), extreme).name, made.order)


def _position(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write ArgMax or ArgMin along one axis; the first NaN counts as the extreme."""
    x, (axis,) = op.args[0], op.attrs.reduced
    value = e.complete(x, (axis,))
    at = value.order.index(axis)
    operand = e.expr(value.name, x.dtype)
    made = operand.run(operator, dtype=INT64, axis=at, keepdims=0)
    if kind(x.dtype) == "f":
        wrong = operand.run("IsNaN").cast(np.dtype("uint8"))
        first = wrong.run("ArgMax", dtype=INT64, axis=at, keepdims=0)
        axes = e.graph.constant([at], np.int64)
        found = wrong.cast(BOOL).with_inputs("ReduceMax", axes, keepdims=0)
        made = found.where(first, made)
    return OnnxValue(made.name, tuple([name for name in value.order if name != axis]))


def cumsum(e: Exporter, op: Op) -> OnnxValue:
    """Write a CumSum."""
    a, x = op.attrs, op.args[0]
    value = e.complete(x, (a.axis,))
    axis = e.graph.constant(value.order.index(a.axis), np.int64)
    operand = e.expr(value.name, x.dtype).cast(op.dtype)
    options = {"exclusive": int(a.exclusive), "reverse": int(a.reverse)}
    return OnnxValue(operand.with_inputs("CumSum", axis, **options).name, value.order)


# Sorting ----------------------------------------------------------------------------------------


def _sorted(e: Exporter, op: Op, largest: bool, k: Any) -> tuple[Expr, Expr, int, OnnxValue]:
    """Return sorted values, their positions, the dimension, and the operand.

    Equal elements keep their order. NaN, which the kernel does not order, stands above infinity: a
    second sort, by whether an element is NaN, moves it to the end where it belongs.
    """
    x, axis, graph = op.args[0], op.attrs.axis, e.graph
    value = e.complete(x, (axis,))
    at = value.order.index(axis)
    operand = e.expr(value.name, x.dtype)
    length = e.lengths.listed([x.axes[axis].expression])
    count = length if k is None else graph.constant([k], np.int64)
    if kind(x.dtype) != "f":
        values, index = top_k(operand, count, at, largest)
        return values, index, at, value
    wrong = operand.run("IsNaN")
    _, index = top_k(wrong.where(np.inf, operand), length, at, largest)
    marks = wrong.cast(np.dtype("uint8")).with_inputs("GatherElements", index.name, axis=at)
    _, order = top_k(marks, count, at, largest)
    index = index.with_inputs("GatherElements", order.name, axis=at)
    return operand.with_inputs("GatherElements", index.name, axis=at), index, at, value


def top_k(x: Expr, count: str, at: int, largest: bool) -> tuple[Expr, Expr]:
    """Write a TopK; return values and positions."""
    wide = carrier("TopK", x.dtype)
    options = {"axis": at, "largest": int(largest), "sorted": 1}
    operand = x.carried(wide, True).name
    values, index = x.graph.nodes_of("TopK", [operand, count], 2, **options)
    return Expr(x.graph, values, wide).uncarried(x.dtype, True), Expr(x.graph, index, INT64)


def sort(e: Exporter, op: Op) -> OnnxValue:
    """Write the values of a sort."""
    values, _, _, value = _sorted(e, op, False, None)
    return OnnxValue(values.name, value.order)


def argsort(e: Exporter, op: Op) -> OnnxValue:
    """Write the positions of a sort."""
    _, index, _, value = _sorted(e, op, False, None)
    return OnnxValue(index.name, value.order)


def top_k_positions(e: Exporter, op: Op) -> OnnxValue:
    """Write the positions of the largest elements."""
    _, index, _, value = _sorted(e, op, True, op.attrs.k)
    return OnnxValue(index.name, value.order)


ROWS: dict[str, Row] = {
    "all": partial(_truth, every=True),
    "any": partial(_truth, every=False),
    "argmax": partial(_position, operator="ArgMax"),
    "argmin": partial(_position, operator="ArgMin"),
    "argsort": argsort,
    "cumsum": cumsum,
    "first_max": partial(_extreme, operator="ReduceMax"),
    "max": partial(_extreme, operator="ReduceMax"),
    "min": partial(_extreme, operator="ReduceMin"),
    "prod": partial(_reduced, operator="ReduceProd"),
    "sort": sort,
    "sum": partial(_reduced, operator="ReduceSum"),
    "top_k": top_k_positions,
}
