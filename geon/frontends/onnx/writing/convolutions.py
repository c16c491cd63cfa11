"""Conv, MaxPool and AveragePool for products, maxima and sums over the positions in windows.

The windows themselves are written before, and removed again if nothing else reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....op_graph.axes.lengths import product
from ....op_graph.building.constants import scalar_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import FLOAT32, kind
from .exporter import Exporter, OnnxValue
from .movement import Row

MAX_SPATIAL_AXES = 3  # of the kernels of ONNX Runtime


@dataclass(frozen=True)
class WindowedImages:
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
    if not isinstance(reach, int) or not isinstance(a.before, int):
        return None
    if a.before < 0:
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
        if windows is None:
            continue
        summed = all(name in op.attrs.over and name in filters.axes for name in windows.inside)
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
    if any(len(each) > 1 for each in (batch, channels, groups, kernels)):
        return None
    if not isinstance(count, int):
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
    if any(not isinstance(size, int) for size in windows.sizes):
        return None
    pads = windows.options["pads"]
    if any(pad >= size for pad, size in zip(pads, windows.sizes * 2, strict=True)):
        return None
    others = windows.others()
    groups = (others[:-1], others[-1:])
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
