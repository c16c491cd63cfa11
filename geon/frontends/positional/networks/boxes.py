"""Boxes and regions of images: suppression of overlaps, and resampling."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import AxisError
from ..control import scan_rows
from ..functions import order_along
from ..indexing import gather, select
from ..picking import numbers
from ..products import matmul
from ..programs import cast
from ..reductions import reduce
from ..reshaping import reshape, unsqueeze
from ..values import Value
from .common import INDEX, constant, ew, pair

SUPPRESSED = -3.4028234663852886e38  # score of a box that is suppressed: least float32


def nms(boxes: Value, *, iou_threshold: float = 0.5) -> tuple[Value, Value]:
    """Return boxes by falling score, suppressed ones last, and their indices, -1 if suppressed.

    A row is (score, x, y, width, height). A box is suppressed if its intersection with a better
    one, over their union, is above the threshold.
    """
    if len(boxes.shape) != 2 or boxes.shape[1] != 5:
        raise AxisError(f"boxes {boxes} are rows of 5 numbers: score, x, y, width, height")
    count = int(boxes.shape[0])
    order = order_along(ew(geon.negative, select(boxes, 1, 0)), 0)
    ranked = gather(boxes, order, 0)
    columns = [select(ranked, 1, k) for k in range(1, 5)]
    x, y, w, h = ([unsqueeze(c, [at]) for at in (1, 0)] for c in columns)

    def overlap(p: list[Value], size: list[Value]) -> Value:
        return ew(
            lambda p, q, m, n: geon.maximum(
                geon.minimum(p + m, q + n) - geon.maximum(p, q), 0
            ),
            *p, *size,
        )  # fmt: skip

    shared = ew(geon.multiply, overlap(x, w), overlap(y, h))
    area = [ew(geon.multiply, p, q) for p, q in zip(w, h, strict=True)]
    iou = ew(lambda s, a, b: s / (a + b - s), shared, *area)
    later = ew(geon.greater, numbers(count, 2, 1), numbers(count, 2, 0))
    hides = ew(lambda i, z: geon.logical_and(i > iou_threshold, z), iou, later)

    def body(old: list[Value], slices: list[Value]) -> tuple[list[Value], list[Value]]:
        (gone,) = old
        row, own = slices
        is_gone = reduce(geon.any, ew(geon.logical_and, gone, own), [0])
        hidden = ew(lambda r, g: geon.logical_and(r, geon.logical_not(g)), row, is_gone)
        return [ew(geon.logical_or, gone, hidden)], []

    first = ew(lambda c: geon.less(c, 0), numbers(count))
    own = ew(geon.equal, numbers(count, 2, 1), numbers(count, 2, 0))
    (gone,), _ = scan_rows(body, [first], [hides, own], count)
    last = order_along(gone, 0)
    final, out = gather(ranked, last, 0), gather(gone, last, 0)
    score = ew(geon.equal, numbers(5, 2, 1), constant([[0]], "int64"))
    low = constant(SUPPRESSED, boxes.dtype)
    marked = ew(lambda s, g: geon.logical_and(s, g), score, unsqueeze(out, [1]))
    index = ew(geon.where, out, constant(-1, "int64"), gather(order, last, 0))
    return ew(geon.where, marked, low, final), cast(index, INDEX)


def roi_align(x: Value, rois: Value, *, size: Any = 7, samples: int = 2) -> Value:
    """Return regions of an image resampled to ``size`` rows and columns by bilinear samples.

    ``x`` is (rows, columns, channels), ``rois`` are rows (x, y, width, height) as shares of the
    image. Each element of the result (regions, rows, columns, channels) is the mean of ``samples``
    by ``samples`` points, equally far apart.
    """
    image = reshape(x, x.shape[1:]) if len(x.shape) == 4 and x.shape[0] == 1 else x
    if len(image.shape) != 3 or len(rois.shape) != 2 or rois.shape[1] != 4:
        raise AxisError(
            f"an image {x} and regions {rois}: give one image (rows, columns, channels) and rows "
            "(x, y, width, height)"
        )
    rows, columns, channels = image.shape
    high, wide = pair(size)
    by_row = _weights(rois, 1, rows, high, samples)
    by_column = _weights(rois, 0, columns, wide, samples)
    flat = reshape(image, [rows, columns * channels])
    lines = reshape(matmul(by_row, flat), [-1, high, columns, channels])
    return matmul(unsqueeze(by_column, [1]), lines)


def _weights(rois: Value, k: int, length: Any, count: int, samples: int) -> Value:
    """Return the weights (regions, count, length) of the elements along one dimension."""
    start, extent = (
        reshape(ew(lambda t: t * length, select(rois, 1, at)), [-1, 1, 1, 1]) for at in (k, k + 2)
    )
    cell, part = numbers(count, 4, 1), numbers(samples, 4, 2)

    def point(b: geon.Tensor, n: geon.Tensor, i: geon.Tensor, j: geon.Tensor) -> geon.Tensor:
        at = b + n * ((i + (j + 0.5) / samples) / count) - 0.5
        return geon.clip(at, 0, length - 1)

    def to_float(v: Value) -> Value:
        return cast(v, rois.dtype)

    at = ew(point, start, extent, to_float(cell), to_float(part))
    hats = ew(
        lambda t, m: geon.maximum(1 - geon.absolute(t - m), 0), at, to_float(numbers(length, 4, 3))
    )
    return reduce(geon.mean, hats, [2], keep=False)
