"""Contractions and reductions of windows: Conv, MatMul, Gemm, MaxPool, AveragePool.

The windows themselves are written before, and removed again if nothing else reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....op_graph.axes.lengths import product
from ....op_graph.building.constants import scalar_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOAT32, kind
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import Row

MAX_SPATIAL_AXES = 3  # of the kernels of ONNX Runtime


def dot(e: Exporter, op: Op) -> OnnxValue:
    """Write a contraction by the first operator that fits."""
    for form in (convolution, _two_dimensional):
        made = form(e, op)
        if made is not None:
            return made
    return _stacked(e, op)


class ContractedAxes(NamedTuple):
    """The axes of a contraction of x and y by their role: batch, of x alone, of y alone, summed."""

    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]


def _parts(e: Exporter, op: Op) -> ContractedAxes:
    """Return the roles of axes, each in the order of the values' dimensions."""
    (x, y), over = op.args, op.attrs.over
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
    both = (op.args, p.rows, p.columns), (op.args[::-1], p.columns, p.rows)
    for operands, rows, columns in both:
        wanted = [(*rows, *p.summed), (*p.summed, *columns)]
        have = [e.complete(arg, arg.axes.names).order for arg in operands]
        turned = [order != want for order, want in zip(have, wanted, strict=True)]
        if len(columns) <= 1:
            ways.append((operands, rows, columns, turned, wanted))
    if not ways:
        return None
    operands, rows, columns, turned, wanted = min(ways, key=lambda way: sum(way[3]))
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


# Windows ----------------------------------------------------------------------------------------


class WindowedImages(NamedTuple):
    """Windows along axes of ``images``: a chain of window ops, the outermost first.

    ``options`` are the strides, dilations and pads of an operator along the axes ``spatial``;
    ``inside`` are the axes of positions in windows.
    """

    images: Op
    spatial: tuple[str, ...]
    inside: tuple[str, ...]
    sizes: tuple[int, ...]
    options: dict[str, Any]

    def others(self) -> list[str]:
        """Return the axes of the images that have no windows."""
        return [name for name in self.images.axes.names if name not in self.spatial]


def windowed(op: Op, padding: float) -> WindowedImages | None:
    """Return the windows that ``op`` consists of, if they are padded with ``padding``.

    None is returned if there are none, or if their number is not one that an operator computes.
    """
    found: list[Op] = []
    while op.primitive.name in ("window", "padded_windows", "reorder"):
        if op.primitive.name != "reorder":
            given = padding if len(op.args) == 1 else scalar_value(op.args[1])
            if op.attrs.window.name in op.args[0].axes or given != padding:
                return None
            found.append(op)
        op = op.args[0]
    spatial = tuple([each.attrs.axis for each in found])
    sizes = tuple([each.attrs.window.expression for each in found])
    fits = 0 < len(spatial) <= MAX_SPATIAL_AXES and len(set(spatial)) == len(spatial)
    pads = [_pads(op, each) for each in found] if fits else [None]
    if None in pads:
        return None
    options = {
        "strides": [each.attrs.stride for each in found],
        "dilations": [each.attrs.dilation for each in found],
        "pads": [pair[k] for k in (0, 1) for pair in pads if pair is not None],
    }
    inside = tuple([each.attrs.window.name for each in found])
    return WindowedImages(op, spatial, inside, sizes, options)


def _pads(images: Op, windows: Op) -> tuple[int, int] | None:
    """Return the padding with which an operator has as many windows; None if lengths are open.

    An operator has all windows that fit into the padded axis.
    """
    a, length = windows.attrs, images.axes[windows.attrs.axis].expression
    reach = (a.window.expression - 1) * a.dilation + 1
    if not isinstance(reach, int) or not isinstance(a.before, int) or a.before < 0:
        return None
    for after in range(reach + a.stride):
        if (length + a.before + after - reach) // a.stride + 1 == a.length:
            return a.before, after
    return None


# Convolution ------------------------------------------------------------------------------------


def convolution(e: Exporter, op: Op) -> OnnxValue | None:
    """Write a Conv for a product of windows and filters, which sums the positions in windows.

    Axes that both have are summed (channels, one at most) or matched (groups, one at most); the
    images may have one further axis, and so may the filters.
    """
    if op.dtype != FLOAT32:
        return None
    for k in (0, 1):
        windows, filters = windowed(op.args[k], 0.0), op.args[1 - k]
        if windows is not None:
            summed = all(name in op.attrs.over for name in windows.inside)
            if summed and not any(name in filters.axes for name in windows.spatial):
                return _convolved(e, op, windows, filters)
    return None


def _convolved(e: Exporter, op: Op, windows: WindowedImages, filters: Op) -> OnnxValue | None:
    """Write the Conv: images [N, G*C, H, W], filters [G*K, C, R, S], result [N, G*K, H, W]."""
    images, plain = windows.images, windows.others()
    batch = [name for name in plain if name not in filters.axes]
    channels = [name for name in plain if name in op.attrs.over]
    groups = [name for name in plain if name in filters.axes and name not in op.attrs.over]
    kernels = [n for n in filters.axes.names if n not in windows.inside and n not in plain]
    count = product([images.axes[name].expression for name in groups])
    many = any(len(each) > 1 for each in (batch, channels, groups, kernels))
    if many or not isinstance(count, int):
        return None
    x = _grouped(e, images, (batch, [*groups, *channels]), windows.spatial)
    w = _grouped(e, filters, ([*groups, *kernels], channels), windows.inside)
    made = e.graph.node("Conv", [x, w], group=count, **windows.options)
    return _ungrouped(e, op, made, (batch, [*groups, *kernels]), windows.spatial)


def _grouped(e: Exporter, op: Op, groups: tuple[list[str], list[str]], rest: Sequence[str]) -> str:
    """Return a value with one dimension for each of two groups of axes, then those of ``rest``."""
    name = e.arranged(op, [*groups[0], *groups[1], *rest])
    if all(len(group) == 1 for group in groups):
        return name
    lengths = [product([op.axes[n].expression for n in group]) for group in groups]
    return e.reshaped(name, [*lengths, *[op.axes[n].expression for n in rest]])


def _ungrouped(
    e: Exporter, op: Op, name: str, groups: tuple[list[str], list[str]], rest: Sequence[str]
) -> OnnxValue:
    """Return a result whose first two dimensions are groups of axes as one with all its axes."""
    order = (*groups[0], *groups[1], *rest)
    if not all(len(group) == 1 for group in groups):
        name = e.reshaped(name, [op.axes[n].expression for n in order])
    return OnnxValue(name, order)


# Pooling ----------------------------------------------------------------------------------------


def _pooled(e: Exporter, op: Op, operator: str, padding: float) -> OnnxValue | None:
    """Write a pooling operator for a reduction over all positions in windows, and nothing else."""
    windows = windowed(op.args[0], padding)
    if windows is None or kind(op.dtype) != "f" or set(windows.inside) != set(op.attrs.reduced):
        return None
    pads = zip(windows.options["pads"], windows.sizes * 2, strict=True)
    if any(pad >= size for pad, size in pads):
        return None
    groups = (windows.others()[:-1], windows.others()[-1:])
    x = _grouped(e, windows.images, groups, windows.spatial)
    extra = {"count_include_pad": 1} if operator == "AveragePool" else {}
    options = {**windows.options, **extra, "kernel_shape": list(windows.sizes)}
    image = e.expr(x, op.dtype)
    made = image.run(operator, **options)
    if operator == "AveragePool":
        made = made * math.prod(windows.sizes)
    else:  # the kernel passes over NaN
        wrong = image.run("IsNaN").cast(op.dtype).run(operator, **options)
        made = (wrong > 0).where(math.nan, made)
    return _ungrouped(e, op, made.name, groups, windows.spatial)


def or_pooled(row: Row, operator: str, padding: float) -> Row:
    """Return the row of a reduction that is a pooling operator where it reduces windows."""

    def either(e: Exporter, op: Op) -> OnnxValue:
        made = _pooled(e, op, operator, padding)
        found: OnnxValue = row(e, op) if made is None else made
        return found

    return either


ROWS: dict[str, Row] = {"dot": dot}
