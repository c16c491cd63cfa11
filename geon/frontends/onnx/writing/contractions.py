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
    ways = [_Product.of(e, op.args, p.rows, p.columns, p.summed)]
    ways.append(_Product.of(e, op.args[::-1], p.columns, p.rows, p.summed))
    fitting = [way for way in ways if len(way.columns) <= 1]
    return min(fitting, key=lambda way: sum(way.turned)).written(e, op) if fitting else None


@dataclass(frozen=True)
class _Product:
    """A product x @ y whose second operand has the axis ``summed`` and at most one more."""

    operands: tuple[Op, ...]
    orders: tuple[tuple[str, ...], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]

    @staticmethod
    def of(
        e: Exporter,
        operands: tuple[Op, ...],
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        summed: tuple[str, ...],
    ) -> _Product:
        """Return the product of operands whose dimensions lie as they were written."""
        orders = tuple([e.complete(arg, arg.axes.names).order for arg in operands])
        return _Product(operands, orders, rows, columns, summed)

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """The orders of dimensions that a MatMul takes."""
        return (*self.rows, *self.summed), (*self.summed, *self.columns)

    @property
    def turned(self) -> tuple[bool, ...]:
        """True for operands that lie in another order."""
        return tuple([a != b for a, b in zip(self.orders, self.wanted, strict=True)])

    def written(self, e: Exporter, op: Op) -> OnnxValue:
        """Write the product."""
        matrices = len(self.rows) == len(self.columns) == 1
        gemm = matrices and any(self.turned) and kind(op.dtype) == "f"
        orders = self.orders if gemm else self.wanted
        x, y = (
            e.expr(e.arranged(arg, order), op.dtype)
            for arg, order in zip(self.operands, orders, strict=True)
        )
        if gemm:
            made = x.run("Gemm", y, transA=int(self.turned[0]), transB=int(self.turned[1]))
        else:
            made = x.run("MatMul", y)
        return OnnxValue(made.name, (*self.rows, *self.columns))


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
