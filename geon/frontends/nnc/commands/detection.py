"""Boxes, regions of images, histograms, and the compression of halves."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError, AxisError, DTypeError
from ...positional.control import scan_rows
from ...positional.functions import order_along
from ...positional.indexing import gather, select
from ...positional.movement import Part, concat, pad, slices
from ...positional.picking import numbers
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import reshape, transpose, unsqueeze
from ...positional.values import Value, array, as_array
from .command import CommandRow
from .common import constant, ew, pair
from .losses import INDEX

SUPPRESSED = -3.4028234663852886e38  # score of a box that is suppressed: least float32
TILE = 4  # rows and columns of a tile that is compressed to 8 bytes


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


def histogram(
    x: Value, *, bins: int = 10, min: float = 0.0, max: float = 1.0, edges: Any = None
) -> tuple[Value, Value]:
    """Return counts below, in each part, and above; and least, largest, sum and sum of squares.

    Parts are equally wide from ``min`` to ``max``, or between the ascending ``edges``. Each has its
    lower edge; the last one does not have its upper edge.
    """
    bounds = list(edges) if edges is not None else [
        min + (max - min) * k / bins for k in range(bins + 1)
    ]  # fmt: skip
    if sorted(bounds) != bounds or len(bounds) < 2:
        raise ArgumentError(f"the edges {bounds} do not rise; give min < max, or rising edges")
    axis = geon.Axis("bin", len(bounds) + 1)
    given = as_array(x).tensor
    edge = geon.constant(bounds, [geon.Axis("edge", len(bounds))], x.dtype)
    place = geon.searchsorted(edge, given, side="right")
    counts = geon.bincount(place, axis) if len(given.axes) else geon.cast(
        geon.equal(geon.iota(axis), place), "int64"
    )  # fmt: skip
    sums = [geon.min(given), geon.max(given), geon.sum(given), geon.sum(geon.square(given))]
    whole = geon.stack([geon.cast(s, "float32") for s in sums], geon.Axis("statistic", 4))
    return cast(array(counts, [axis]), INDEX), array(whole, ["statistic"])


# Compression --------------------------------------------------------------------------------------


def _tiles(x: Value) -> Value:
    """Return (..., rows, columns) as (..., tiles down, tiles across, 16)."""
    *rest, rows, columns = (int(n) for n in x.shape)
    down, across = -(-rows // TILE), -(-columns // TILE)
    wide = [(0, 0)] * len(rest) + [(0, down * TILE - rows), (0, across * TILE - columns)]
    whole = reshape(pad(x, wide, "edge", 0), [*rest, down, TILE, across, TILE])
    n = len(rest)
    order = [*range(n), n, n + 2, n + 1, n + 3]
    return reshape(transpose(whole, order), [*rest, down, across, TILE * TILE])


def compress(x: Value, *, shape: Any = None) -> Value:
    """Return tiles of 4 by 4 halves as 4 integers each: least, largest, and 16 numbers of 2 bits.

    Each half becomes the nearest of 4 equally spaced values. ``x`` is float16, of at least 2
    dimensions; ``shape`` is the shape that the backward command gives back.
    """
    if x.dtype != "float16" or len(x.shape) < 2:
        raise DTypeError(f"{x} cannot be compressed; give float16 of at least 2 dimensions")
    tiles = _tiles(x)
    last = [len(tiles.shape) - 1]
    low, high = (reduce(f, tiles, last) for f in (geon.min, geon.max))

    def level(t: geon.Tensor, a: geon.Tensor, b: geon.Tensor) -> geon.Tensor:
        t, a, b = (geon.cast(each, "float32") for each in (t, a, b))
        span = geon.where(b > a, b - a, 1)
        return geon.cast(geon.round((t - a) / span * 3), "int64")

    levels = ew(level, tiles, low, high)
    halves = reshape(levels, [*levels.shape[:-1], 2, 8])
    digit = reshape(constant([4**k for k in range(8)], "int64"), [8])
    bits = reduce(geon.sum, ew(geon.multiply, halves, digit), [len(halves.shape) - 1], keep=False)
    ends = [ew(lambda t: geon.bitcast(t, "uint16"), end) for end in (low, high)]
    return concat([*ends, cast(bits, "uint16")], len(bits.shape) - 1)


def decompress(packed: Value, *, shape: Any = None) -> Value:
    """Return the halves of compressed tiles, in ``shape``."""
    if shape is None or len(shape) != len(packed.shape) - 1:
        raise ArgumentError(f"{packed} becomes halves of a shape; give shape= to the command")
    at = len(packed.shape) - 1
    low, high = (
        ew(lambda t: geon.cast(geon.bitcast(t, "float16"), "float32"), unsqueeze(
            select(packed, at, k), [at])) for k in (0, 1)
    )  # fmt: skip
    bits = [unsqueeze(cast(select(packed, at, k), "int64"), [at]) for k in (2, 3)]
    digit = reshape(constant([4**k for k in range(8)], "int64"), [8])
    levels = concat([ew(lambda b, d: geon.mod(geon.floordivide(b, d), 4), each, digit) for each in
                     bits], at)  # fmt: skip
    values = ew(lambda n, a, b: a + (b - a) * (geon.cast(n, "float32") / 3), levels, low, high)
    *rest, down, across, _ = values.shape
    n = len(rest)
    order = [*range(n), n, n + 2, n + 1, n + 3]
    whole = transpose(reshape(values, [*rest, down, across, TILE, TILE]), order)
    whole = reshape(whole, [*rest, down * TILE, across * TILE])
    parts = {n: Part(0, int(shape[-2])), n + 1: Part(0, int(shape[-1]))}
    return cast(slices(whole, parts), "float16")


ROWS = [
    CommandRow("nms", nms, ("y", "index")),
    CommandRow("roi_align", roi_align),
    CommandRow("histogram", histogram, ("counts", "statistics")),
    CommandRow("compression_lssc", compress, ("y",), decompress),
]
