"""The row of contractions: Conv where it fits, else MatMul or Gemm."""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import kind
from .convolutions import convolution
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import Row


def dot(e: Exporter, op: Op) -> OnnxValue:
    """Write a contraction by the first operator that fits."""
    for form in (convolution, _two_dimensional):
        made = form(e, op)
        if made is not None:
            return made
    return _stacked(e, op)


@dataclass(frozen=True)
class ContractedAxes:
    """The axes of a contraction of x and y by their role: batch, of x alone, of y alone, summed."""

    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]


def _parts(e: Exporter, op: Op) -> ContractedAxes:
    """Return the roles of axes, each in the order of the values' dimensions."""
    x, y = op.args
    over = op.attrs.over
    own, other = (e.complete(arg, arg.axes.names).order for arg in op.args)
    shared = [name for name in own if name in y.axes]
    return ContractedAxes(
        tuple([name for name in shared if name not in over]),
        tuple([name for name in own if name not in y.axes]),
        tuple([name for name in other if name not in x.axes]),
        tuple([name for name in shared if name in over]),
    )


def _two_dimensional(e: Exporter, op: Op) -> OnnxValue | None:
    """Write a MatMul of matrices or vectors, or a Gemm where a matrix lies transposed.

    The order of the operands is the one that transposes fewer: no vector meets a transposed matrix
    on its left, which ONNX Runtime 1.32 fuses to a wrong product.
    """
    p = _parts(e, op)
    if p.batch or len(p.summed) != 1:
        return None
    ways = []
    for operands, rows, columns in (
        (op.args, p.rows, p.columns),
        (op.args[::-1], p.columns, p.rows),
    ):
        wanted = [(*rows, *p.summed), (*p.summed, *columns)]
        have = [e.complete(arg, arg.axes.names).order for arg in operands]
        turned = [order != want for order, want in zip(have, wanted, strict=True)]
        if len(columns) <= 1:
            ways.append((sum(turned), operands, rows, columns, turned))
    if not ways:
        return None
    _, operands, rows, columns, turned = min(ways, key=lambda way: way[0])
    wanted = [(*rows, *p.summed), (*p.summed, *columns)]
    options: dict[str, Any] = {}
    if len(rows) == len(columns) == 1 and any(turned) and kind(op.dtype) == "f":
        options = {"transA": int(turned[0]), "transB": int(turned[1])}
        wanted = [order[::-1] if t else order for order, t in zip(wanted, turned, strict=True)]
    names = [e.arranged(arg, order) for arg, order in zip(operands, wanted, strict=True)]
    x, y = (e.expr(name, op.dtype) for name in names)
    made = x.run("Gemm" if options else "MatMul", y, **options)
    return OnnxValue(made.name, (*rows, *columns))


def _stacked(e: Exporter, op: Op) -> OnnxValue:
    """Write a MatMul of stacks of matrices, whose rows, columns and sums may merge several axes."""
    p = _parts(e, op)
    axes = {axis.name: axis.expression for arg in op.args for axis in arg.axes}

    def shaped(arg: Op, *groups: tuple[str, ...]) -> Expr:
        """Return an operand with a dimension for each batch axis, and one for each group."""
        name = e.arranged(arg, [*p.batch, *[n for group in groups for n in group]])
        if any(len(group) != 1 for group in groups):
            sizes = [product([axes[n] for n in group]) for group in groups]
            name = e.reshaped(name, [*[axes[n] for n in p.batch], *sizes])
        return e.expr(name, op.dtype)

    rows = (p.rows,) if p.batch else tuple([(name,) for name in p.rows])
    x, y = shaped(op.args[0], *rows, p.summed), shaped(op.args[1], p.summed, p.columns)
    made, order = x.run("MatMul", y).name, (*p.batch, *p.rows, *p.columns)
    if any(len(group) != 1 for group in (*rows, p.columns)):
        made = e.reshaped(made, [axes[name] for name in order])
    return OnnxValue(made, order)


ROWS: dict[str, Row] = {"dot": dot}
