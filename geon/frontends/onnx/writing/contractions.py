"""The row of contractions: Conv where it fits, else MatMul or Gemm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....op_graph.axes.lengths import product
from ....op_graph.building.constants import scalar_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOAT32, kind
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import Row


def dot(e: Exporter, op: Op) -> OnnxValue:
    """Write a contraction by the first operator that fits."""
    for form in (_conv, _two_dimensional):
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


# Convolution ------------------------------------------------------------------------------------


def _conv(e: Exporter, op: Op) -> OnnxValue | None:
    """Write a Conv for a product of windows and filters, which sums the positions in windows.

    Axes that both have are summed (channels, one at most) or matched (groups, one at most); the
    images may have one further axis, and so may the filters.
    """
    for k in (0, 1):
        windows = _windows_of(e, op.args[k])
        if windows is not None and op.dtype == FLOAT32:
            made = _convolved(e, op, *windows, op.args[1 - k])
            if made is not None:
                return made
    return None


def _windows_of(e: Exporter, op: Op) -> tuple[Op, list[Op]] | None:
    """Return the images that an operand has windows of, and its window ops; None without any."""
    found: list[Op] = []
    while op.primitive.name in ("window", "padded_windows", "reorder"):
        if op.primitive.name != "reorder":
            if op.attrs.window.name in op.args[0].axes or not _pads_with_zero(op):
                return None
            found.append(op)
        op = op.args[0]
    return (op, found) if found else None


def _pads_with_zero(op: Op) -> bool:
    return len(op.args) == 1 or scalar_value(op.args[1]) == 0


def _convolved(e: Exporter, op: Op, images: Op, windows: list[Op], filters: Op) -> OnnxValue | None:
    spatial = [each.attrs.axis for each in windows]
    inside = [each.attrs.window.name for each in windows]
    over = op.attrs.over
    if len(set(spatial)) < len(spatial) or not all(n in over and n in filters.axes for n in inside):
        return None
    if any(name in filters.axes for name in spatial):
        return None
    plain = [name for name in images.axes.names if name not in spatial]
    batch = [name for name in plain if name not in filters.axes]
    channels = [name for name in plain if name in over]
    groups = [name for name in plain if name in filters.axes and name not in over]
    kernels = [n for n in filters.axes.names if n not in inside and n not in plain]
    if any(len(each) > 1 for each in (batch, channels, groups, kernels)):
        return None
    options = _placement(images, windows)
    group = images.axes[groups[0]].expression if groups else 1
    if options is None or not isinstance(group, int):
        return None
    return _written_conv(e, op, (images, filters), (batch, groups, channels, kernels),
                         (spatial, inside), {**options, "group": group})  # fmt: skip


def _placement(images: Op, windows: list[Op]) -> dict[str, Any] | None:
    """Return strides, dilations and pads of a Conv; None if lengths leave them open."""
    before, after = [], []
    for each in windows:
        a = each.attrs
        reach = (a.window.expression - 1) * a.dilation + 1
        behind = (a.length - 1) * a.stride + reach - a.before - images.axes[a.axis].expression
        if not isinstance(behind, int) and len(each.args) == 1:
            behind = 0  # all windows lie inside
        if not isinstance(behind, int):
            behind = _rounded_up(a, reach, images)
        if not isinstance(behind, int) or not isinstance(a.before, int):
            return None
        before.append(a.before)
        after.append(max(behind, 0))
    return {
        "strides": [each.attrs.stride for each in windows],
        "dilations": [each.attrs.dilation for each in windows],
        "pads": [*before, *after],
    }


def _rounded_up(a: Any, reach: Any, images: Op) -> int | None:
    """Return a padding that gives as many windows as the stride rounds to, for an open length."""
    length = images.axes[a.axis].expression
    for after in range(4096 if isinstance(reach, int) else 0):
        if (length + a.before + after - reach) // a.stride + 1 == a.length:
            return after
        if after > 2 * reach + a.stride:
            break
    return None


def _written_conv(
    e: Exporter,
    op: Op,
    operands: tuple[Op, Op],
    roles: tuple[list[str], ...],
    windows: tuple[list[str], list[str]],
    options: dict[str, Any],
) -> OnnxValue:
    """Write the Conv: images [N, G*C, H, W], filters [G*K, C, R, S], result [N, G*K, H, W]."""
    images, filters = operands
    batch, groups, channels, kernels = roles
    spatial, inside = windows
    axes = {axis.name: axis.expression for op in operands for axis in op.axes}
    size = {name: axes[name] for name in (*batch, *groups, *channels, *kernels)}

    def lengths(names: list[str]) -> Any:
        made: Any = 1
        for name in names:
            made = made * size[name]
        return made

    x = e.arranged(images, [*batch, *groups, *channels, *spatial])
    if len(batch) != 1 or len(groups) + len(channels) != 1:
        shape = [lengths(batch), lengths([*groups, *channels]), *[axes[n] for n in spatial]]
        x = e.reshaped(x, shape)
    w = e.arranged(filters, [*groups, *kernels, *channels, *inside])
    if len(groups) + len(kernels) != 1 or len(channels) != 1:
        shape = [lengths([*groups, *kernels]), lengths(channels), *[axes[n] for n in inside]]
        w = e.reshaped(w, shape)
    made = e.graph.node("Conv", [x, w], **options)
    order = (*batch, *groups, *kernels, *spatial)
    if len(batch) != 1 or len(groups) + len(kernels) != 1:
        made = e.reshaped(made, [op.axes[name].expression for name in order])
    return OnnxValue(made, order)


ROWS: dict[str, Row] = {"dot": dot}
