"""Samples of images at computed coordinates: each is a weighted sum of gathered elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import elementwise
from ....positional.indexing import gather, select
from ....positional.products import matmul
from ....positional.programs import cast
from ....positional.reductions import reduce
from ....positional.reshaping import by_channel, reshape, squeeze, transpose, unsqueeze
from ....positional.sampling import Tap, grid_sample, linear, sampled, taps_of
from ....positional.values import Size, Value, host, known
from ...table import row
from .convolution import fitting_kernel, slides_of


def deformable_convolution(
    x: Value,
    w: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    /,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    **attributes: Any,
) -> Value:
    """Return a convolution whose filters read at places that are moved by offsets."""
    n, c, *lengths = x.shape
    m, inner, *kernel = w.shape
    out = list(offset.shape[2:])
    rank = len(lengths)
    slides = slides_of(lengths, fitting_kernel(w, kernel_shape), **attributes)
    images = reshape(x, [n * offset_group, c // offset_group, *lengths])
    moves = reshape(offset, [n * offset_group, *kernel, rank, *out])
    taps = []
    for k, (s, count) in enumerate(zip(slides.values(), out, strict=True)):
        if not isinstance(count, int):
            raise ArgumentError(f"a deformable convolution of {x}: its lengths must be known")
        steps = s.dilation * np.arange(s.length)[:, None]
        base = s.stride * np.arange(count) + steps - s.pad[0]
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = base.shape
        place = elementwise(
            geon.add, select(moves, 1 + rank, k), host(base.reshape(shape), x.dtype)
        )
        taps.append(taps_of(place, lengths[k], "linear", "zeros", (0.0, 0.0)))
    columns = sampled(images, taps)
    if mask is not None:
        factors = reshape(mask, [n * offset_group, 1, *kernel, *out])
        columns = elementwise(geon.multiply, columns, factors)
    depth = inner * product(kernel)
    filters = reshape(w, [group, m // group, depth])
    result = matmul(filters, reshape(columns, [n, group, depth, product(out)]))
    spread = reshape(result, [n, m, *out])
    return spread if bias is None else elementwise(geon.add, spread, by_channel(bias, rank + 2))


def _region_taps(place: Value, length: Size) -> list[Tap]:
    """Return the two neighbours of coordinates, with weights 0 beyond the elements around."""

    def edge(x: geon.Tensor, last: Any) -> geon.Tensor:
        return geon.minimum(geon.maximum(x, 0), last)

    def low(x: geon.Tensor, n: geon.Tensor) -> geon.Tensor:
        return geon.cast(edge(x, n - 1), "int64")

    def high(x: geon.Tensor, n: geon.Tensor) -> geon.Tensor:
        return geon.cast(geon.minimum(edge(x, n - 1) + 1, n - 1), "int64")

    def weight(number: int) -> Callable[[geon.Tensor, geon.Tensor], geon.Tensor]:
        def build(x: geon.Tensor, n: geon.Tensor) -> geon.Tensor:
            inner = edge(x, n - 1)
            inside = geon.logical_and(x >= -1, x <= n)
            return geon.where(inside, linear(inner - geon.floor(inner))[number], 0)

        return build

    size = host(length, place.dtype)
    return [
        (elementwise(f, place, size), elementwise(weight(k), place, size))
        for k, f in enumerate((low, high))
    ]


def roi_align(
    x: Value,
    rois: Value,
    batch: Value,
    /,
    *,
    coordinate_transformation_mode: str = "output_half_pixel",  # of versions before 16
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Value:
    """Return means or maxima of samples in the bins of regions (x1, y1, x2, y2) of images.

    Samples have the positions region, bin and sample along the height, bin and sample along the
    width. Without a ``sampling_ratio`` the regions must be known.
    """
    half = coordinate_transformation_mode == "half_pixel"
    taps: list[list[Tap]] = [[(unsqueeze(cast(batch, "int64"), [0, 2, 3, 4, 5]), None)]]
    used, totals = [], []
    for k, bins in enumerate((output_height, output_width)):
        start, end = [
            elementwise(lambda t: t * spatial_scale - (0.5 if half else 0.0), select(rois, 1, c))
            for c in (1 - k, 3 - k)
        ]
        size = elementwise(geon.subtract, end, start)
        if not half:
            size = elementwise(lambda t: geon.maximum(t, 1.0), size)
        width = elementwise(lambda t, b=bins: t / b, size)
        counts = np.full(1, sampling_ratio)
        if sampling_ratio <= 0:  # one for each element, so regions differ
            counts = np.ceil(known(width, "the regions, without a sampling_ratio,"))
        most = max(int(counts.max(initial=0)), 1)
        line = 2 * k + 1  # the position of bins
        cell, step = [
            unsqueeze(host(np.arange(n), x.dtype), [p for p in range(5) if p != at])
            for n, at in ((bins, line), (most, line + 1))
        ]
        low, each, number = [
            unsqueeze(v, range(1, 5)) for v in (start, width, host(counts, x.dtype))
        ]
        place = elementwise(
            lambda s, b, n, c, i: s + b * (c + (i + 0.5) / n), low, each, number, cell, step
        )
        taps.append(_region_taps(unsqueeze(place, [0]), x.shape[2 + k]))
        used.append(elementwise(geon.less, step, number))
        totals.append(elementwise(lambda n: geon.maximum(n, 1.0), number))
    maximum = mode == "max"
    volume = unsqueeze(transpose(x, [1, 0, 2, 3]), [0])
    values = sampled(volume, taps, geon.maximum if maximum else geon.add)
    rest = -np.inf if maximum else 0.0
    inside = unsqueeze(elementwise(geon.logical_and, *used), [0, 1])
    values = elementwise(lambda t, c: geon.where(c, t, rest), values, inside)
    bins_of = reduce(geon.max if maximum else geon.sum, squeeze(values, [0]), [3, 5], keep=False)
    result = transpose(bins_of, [1, 0, 2, 3])
    if not maximum:
        for total in totals:
            result = elementwise(geon.divide, result, squeeze(total, [4]))
    return cast(result, x.dtype)


def max_roi_pool(
    x: Value, rois: Value, /, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Value:
    """Return the maxima of the bins of regions (image, x1, y1, x2, y2); 0 for an empty bin."""
    # Positions: region, channel, height, width; then the bins of each in place of it.
    found = gather(x, cast(select(rois, 1, 0), "int64"), 0)
    for k, bins in enumerate(pooled_shape):
        start, end = [
            elementwise(lambda t: geon.floor(t * spatial_scale + 0.5), select(rois, 1, c))
            for c in (2 - k, 4 - k)
        ]
        length = x.shape[2 + k]
        if not isinstance(length, int):
            raise ArgumentError(f"a pool of regions of {x}: its lengths must be known")

        def inside(
            a: geon.Tensor, b: geon.Tensor, i: geon.Tensor, h: geon.Tensor, bins: int = bins
        ) -> geon.Tensor:
            width = geon.maximum(b - a + 1, 1) / bins
            first, last = a + geon.floor(i * width), a + geon.ceil((i + 1) * width)
            return geon.logical_and(h >= first, h < last)

        # Positions of these: region, channel, other, bin, element.
        ends = [unsqueeze(v, [1, 2, 3, 4]) for v in (start, end)]
        cell = unsqueeze(host(np.arange(bins), x.dtype), [1])
        chosen = elementwise(inside, *ends, cell, host(np.arange(length), x.dtype))
        turned = unsqueeze(transpose(found, [0, 1, 3, 2]), [3])
        kept = elementwise(lambda t, c: geon.where(c, t, -np.inf), turned, chosen)
        found = reduce(geon.max, kept, [4], keep=False)
    # Each turn exchanges height and width, so that the second one is along the width.
    return elementwise(lambda t: geon.where(geon.isinf(t), 0, t), found)


ROWS = [
    row("GridSample", grid_sample),
    row("DeformConv", deformable_convolution),
    row("RoiAlign", roi_align),
    row("MaxRoiPool", max_roi_pool),
]
