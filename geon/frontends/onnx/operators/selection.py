"""Selection, order and running sums along a position; results whose length depends on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ...positional.elementwise import elementwise, expand
from ...positional.functions import running, top_k
from ...positional.indexing import gather, gather_elements
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reshaping import flatten_to, reshape, unsqueeze
from ...positional.values import Value, host, known, position
from ..table import row


def compress(x: Value, condition: Value, /, *, axis: int | None = None) -> Value:
    """Return the elements along ``axis``, or of all in one row, where a known condition holds."""
    kept = np.flatnonzero(known(condition, "the condition"))
    if axis is None:
        return gather(flatten_to(x, 0, len(x.shape)), host(kept), 0)
    return gather(x, host(kept), axis)


def nonzero(x: Value, /) -> Value:
    """Return the indices of elements of a known tensor that are not 0, a row per position."""
    return host(np.array(np.nonzero(known(x, "the tensor"))), "int64")


def unique(x: Value, /, *, axis: int | None = None, sorted: int = 1) -> tuple[Value, ...]:
    """Return the different parts of a known tensor, first indices, inverse indices and counts."""
    data = known(x, "the tensor")
    data = data.reshape(-1) if axis is None else data
    at = position(axis or 0, data.ndim)
    found, first, inverse, counts = np.unique(data, True, True, True, at if data.ndim > 1 else None)
    if not sorted:
        order = np.argsort(first)
        found, first, counts = found.take(order, at), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    numbers = [host(each.reshape(-1), "int64") for each in (first, inverse, counts)]
    return (host(found), *numbers)


def reverse_sequence(
    x: Value, lengths: Value, /, *, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    """Return ``x`` with the first elements along time in reverse order, as many as ``lengths``."""
    rank = len(x.shape)
    steps = numbers(x.shape[time_axis], rank, time_axis)
    ends = unsqueeze(lengths, [k for k in range(rank) if k != batch_axis])
    index = elementwise(lambda i, n: geon.where(i < n, n - 1 - i, i), steps, cast(ends, "int64"))
    return gather_elements(x, expand(index, x.shape), time_axis)


def triangle(x: Value, k: Value | None = None, /, *, upper: int = 1) -> Value:
    """Return ``x`` with zeros below its diagonal number ``k``, or above it."""
    rows, columns = [numbers(n, 2, at) for at, n in enumerate(x.shape[-2:])]

    def build(t: geon.Tensor, i: geon.Tensor, j: geon.Tensor, d: geon.Tensor) -> geon.Tensor:
        return geon.where(j - i >= d if upper else j - i <= d, t, geon.constant(0, dtype=t.dtype))

    diagonal = host(0, "int64") if k is None else reshape(k, [])
    return elementwise(build, x, rows, columns, diagonal)


def cumulative(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the builder of a running sum or product along a known axis."""

    def build(x: Value, axis: int, /, *, exclusive: int = 0, reverse: int = 0) -> Value:
        options = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
        return cast(running(f, x, axis, **options), x.dtype)

    return build


def suppress(
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float = -np.inf,
    /,
    *,
    center_point_box: int = 0,
) -> Value:
    """Return (image, class, box) of known boxes by decreasing score, without those that overlap.

    Boxes are two opposite corners, or a centre with width and height.
    """
    corners = known(boxes, "the boxes").astype(np.float64)
    points = known(scores, "the scores")
    if center_point_box:
        middle, half = corners[..., :2], corners[..., 2:] / 2
        corners = np.concatenate([middle - half, middle + half], -1)
    low = np.minimum(corners[..., :2], corners[..., 2:])
    high = np.maximum(corners[..., :2], corners[..., 2:])
    area = np.prod(high - low, -1)
    found: list[tuple[int, int, int]] = []
    for image, kind in np.ndindex(*points.shape[:2]):
        line, kept = points[image, kind], np.zeros(0, np.int64)
        order = np.argsort(-line, kind="stable")
        for box in order[line[order] > score_threshold]:
            if len(kept) >= max_output_boxes_per_class:
                break
            sides = np.minimum(high[image, kept], high[image, box])
            sides = np.maximum(sides - np.maximum(low[image, kept], low[image, box]), 0)
            common = np.prod(sides, -1)
            whole = area[image, kept] + area[image, box] - common
            if np.all(common <= iou_threshold * whole):
                kept = np.append(kept, box)
        found += [(image, kind, int(box)) for box in kept]
    return host(np.array(found, np.int64).reshape(-1, 3))


ROWS = [
    row("NonMaxSuppression", suppress),
    row("Compress", compress),
    row("NonZero", nonzero),
    row("Unique", unique),
    row("TopK", top_k, attributes={"k": 1}),
    row("ReverseSequence", reverse_sequence),
    row("Trilu", triangle),
    row("CumSum", cumulative(geon.cumsum)),
    row("CumProd", cumulative(geon.cumprod)),
]
