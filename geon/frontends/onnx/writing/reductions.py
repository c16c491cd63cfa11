"""Rows of reductions, running sums and sorting: the Reduce operators, ArgMax, CumSum, TopK."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import INT64, DType, kind
from .exporter import Exporter, OnnxValue
from .expressions import Expr, carrier
from .movement import Row

FLAG: DType = np.dtype("uint8")  # of bools where the kernels have no bool


def _operand(e: Exporter, op: Op) -> tuple[Expr, OnnxValue, tuple[str, ...]]:
    """Return the operand of a reduction, its dimensions, and the order of those that stay."""
    x, names = op.args[0], op.attrs.reduced
    value = e.complete(x, names)
    rest = tuple([name for name in value.order if name not in names])
    return e.expr(value.name, x.dtype), value, rest


def _folded(e: Exporter, op: Op, operator: str, x: Expr, value: OnnxValue) -> Expr:
    """Return one of the Reduce operators over the reduced axes."""
    axes = e.integers([value.order.index(name) for name in op.attrs.reduced])
    return x.run(operator, axes, keepdims=0, noop_with_empty_axes=1)


def _total(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write a sum or product, which accumulates in the result's dtype."""
    x, value, rest = _operand(e, op)
    return OnnxValue(_folded(e, op, operator, x.cast(op.dtype), value).name, rest)


def _truth(e: Exporter, op: Op, every: bool) -> OnnxValue:
    """Write whether all or any elements are true, by counting: kernels refuse empty maxima."""
    x, value, rest = _operand(e, op)
    count = _folded(e, op, "ReduceSum", (~x if every else x).cast(INT64), value)
    return OnnxValue((count.equals(0) if every else count > 0).name, rest)


def _extreme(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write ReduceMax or ReduceMin; the result is NaN if an element is, over which kernels pass."""
    x, value, rest = _operand(e, op)
    made = _folded(e, op, operator, x, value)
    if kind(op.dtype) == "f":
        made = _folded(e, op, "ReduceMax", x.run("IsNaN"), value).where(math.nan, made)
    return OnnxValue(made.name, rest)


def _position(e: Exporter, op: Op, operator: str) -> OnnxValue:
    """Write ArgMax or ArgMin along one axis; the first NaN counts as the extreme."""
    x, value, rest = _operand(e, op)
    options: Any = {"dtype": INT64, "axis": value.order.index(op.attrs.reduced[0]), "keepdims": 0}
    made = x.run(operator, **options)
    if kind(x.dtype) == "f":
        wrong = x.run("IsNaN")
        found = _folded(e, op, "ReduceMax", wrong, value)
        made = found.where(wrong.cast(FLAG).run("ArgMax", **options), made)
    return OnnxValue(made.name, rest)


def cumsum(e: Exporter, op: Op) -> OnnxValue:
    """Write a CumSum."""
    a, x = op.attrs, op.args[0]
    value = e.complete(x, (a.axis,))
    axis = e.graph.constant(value.order.index(a.axis), np.int64)
    operand = e.expr(value.name, x.dtype).cast(op.dtype)
    options: Any = {"exclusive": int(a.exclusive), "reverse": int(a.reverse)}
    return OnnxValue(operand.run("CumSum", axis, **options).name, value.order)


def _sorted(e: Exporter, op: Op, positions: bool) -> OnnxValue:
    """Write a TopK: the values of a sort or their positions, or those of the first ``k`` of them.

    Equal elements keep their order. NaN, which the kernel does not order, stands above infinity: a
    second TopK, by whether an element is NaN, moves it to the end where it belongs.
    """
    x, axis = op.args[0], op.attrs.axis
    value = e.complete(x, (axis,))
    at, operand = value.order.index(axis), e.expr(value.name, x.dtype)
    length = e.lengths.listed([x.axes[axis].expression])
    is_part = op.primitive.name == "top_k"
    largest = is_part and op.attrs.largest
    count = e.integers([op.attrs.k]) if is_part else length
    if kind(x.dtype) != "f":
        return OnnxValue(_top_k(operand, count, at, largest)[positions].name, value.order)
    wrong = operand.run("IsNaN")
    _, index = _top_k(wrong.where(np.inf, operand), length, at, largest)
    marks = wrong.cast(FLAG).run("GatherElements", index.name, axis=at)
    _, order = _top_k(marks, count, at, largest)
    made = index.run("GatherElements", order.name, axis=at)
    if not positions:
        made = operand.run("GatherElements", made.name, axis=at)
    return OnnxValue(made.name, value.order)


def _top_k(x: Expr, count: str, at: int, largest: bool) -> tuple[Expr, Expr]:
    """Write a TopK; return values and positions."""
    wide = carrier("TopK", x.dtype)
    inputs = [x.carried(wide, True).name, count]
    values, index = x.graph.nodes_of("TopK", inputs, 2, axis=at, largest=int(largest), sorted=1)
    return Expr(x.graph, values, wide).uncarried(x.dtype, True), Expr(x.graph, index, INT64)


ROWS: dict[str, Row] = {
    "all": partial(_truth, every=True),
    "any": partial(_truth, every=False),
    "argmax": partial(_position, operator="ArgMax"),
    "argmin": partial(_position, operator="ArgMin"),
    "argsort": partial(_sorted, positions=True),
    "cumsum": cumsum,
    "first_max": partial(_extreme, operator="ReduceMax"),
    "max": partial(_extreme, operator="ReduceMax"),
    "min": partial(_extreme, operator="ReduceMin"),
    "prod": partial(_total, operator="ReduceProd"),
    "sort": partial(_sorted, positions=False),
    "sum": partial(_total, operator="ReduceSum"),
    "top_k": partial(_sorted, positions=True),
}
