"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import Length
from ...positional.elementwise import elementwise
from ...positional.movement import Part, concat, slices
from ...positional.programs import backward
from ...positional.reductions import reduce
from ...positional.reshaping import by_channel, reshape, unsqueeze
from ...positional.sliding import (
    Slide,
    convolve,
    first_largest,
    folded_windows,
    pooled,
    summed_columns,
)
from ...positional.values import Value
from .common import Builder, Rows, pairs

Numbers = Sequence[int]


def convolution(
    x: Value,
    w: Value,
    bias: Value | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    is_transposed: bool,
    output_padding: Numbers,
    groups: int,
) -> Value:
    """Return the convolution of images with filters, or its transpose."""
    rank = len(x.shape) - 2
    numbers_of = [pairs(each, rank) for each in (stride, padding, dilation, output_padding)]
    strides, pads, dilations, extra = numbers_of
    slides = [
        Slide(int(w.shape[2 + k]), strides[k], dilations[k], (pads[k], pads[k]))
        for k in range(rank)
    ]
    lengths = None
    if is_transposed:
        lengths = [
            (n - 1) * s.stride + s.dilation * (s.length - 1) + 1 - 2 * pads[k] + extra[k]
            for k, (n, s) in enumerate(zip(x.shape[2:], slides, strict=True))
        ]
    found = convolve(x, w, slides, groups, lengths)
    if bias is None:
        return found
    return elementwise(geon.add, found, by_channel(bias, rank + 2))


def convolution_backward(
    gradient: Value,
    x: Value,
    w: Value,
    bias_sizes: Any,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    is_transposed: bool,
    output_padding: Numbers,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Value | None, ...]:
    """Return the derivatives of a convolution with respect to images, filters and bias."""
    options = (stride, padding, dilation, is_transposed, output_padding, groups)
    dx, dw = backward(lambda a, b: convolution(a, b, None, *options), [x, w], gradient)
    rest = [0, *range(2, len(x.shape))]
    return dx, dw, reduce(geon.sum, gradient, rest, keep=False) if wanted[2] else None


def _batched(x: Value, rank: int) -> Value:
    return x if len(x.shape) == rank + 2 else unsqueeze(x, [0])


def _unbatched(x: Value, like: Value) -> Value:
    return x if len(x.shape) == len(like.shape) else reshape(x, x.shape[1:])


def _slides(
    rank: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> dict[int, Slide]:
    sizes = pairs(kernel, rank)
    steps = pairs(stride, rank) if stride else sizes
    pads, gaps = pairs(padding, rank), pairs(dilation, rank)
    return {
        k + 2: Slide(sizes[k], steps[k], gaps[k], (pads[k], pads[k]), ceil) for k in range(rank)
    }


def max_pool(rank: int) -> Builder:
    """Return the builder of the largest elements of windows, and their indices in the image."""

    def build(
        x: Value,
        kernel: Numbers,
        stride: Numbers = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[Value, Value]:
        slides = _slides(rank, kernel, stride, padding, dilation, ceil_mode)
        images = _batched(x, rank)
        found = pooled(geon.max_pool, images, slides)
        return _unbatched(found, x), _unbatched(first_largest(images, slides), x)

    return build


def average_pool(rank: int) -> Builder:
    """Return the builder of the means of windows."""

    def build(
        x: Value,
        kernel: Numbers,
        stride: Numbers = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_pad: bool = True,
        divisor: int | None = None,
    ) -> Value:
        slides = _slides(rank, kernel, stride, padding, 1, ceil_mode)
        images = _batched(x, rank)
        if divisor is not None:
            found = folded_windows(geon.sum, images, slides, 0)
            return _unbatched(elementwise(lambda t: t / divisor, found), x)
        return _unbatched(
            pooled(lambda t, w: geon.average_pool(t, w, count_pad=count_pad), images, slides), x
        )

    return build


def adaptive(rank: int) -> Builder:
    """Return the builder of means over as many parts, of almost equal lengths, as are wanted."""

    def build(x: Value, wanted: Numbers) -> Value:
        first = len(x.shape) - rank
        for k, count in enumerate(pairs(wanted, rank), first):
            x = _means(x, k, count)
        return x

    return build


def _means(x: Value, k: int, count: int) -> Value:
    length = x.shape[k]
    if count == 1:
        return reduce(geon.mean, x, [k])
    if isinstance(length, Length):
        raise ArgumentError(f"an open length {length} is divided into {count} parts")
    parts = []
    for i in range(count):
        begin, end = i * length // count, -(-(i + 1) * length // count)
        parts.append(reduce(geon.mean, slices(x, {k: Part(begin, end)}), [k]))
    return concat(parts, k)


def columns_to_images(
    x: Value, size: Numbers, kernel: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers
) -> Value:
    """Return images that are sums of blocks, the columns of ``x``."""
    slides = _slides(2, kernel, stride, padding, dilation, False)
    columns = x if len(x.shape) == 3 else unsqueeze(x, [0])
    found = summed_columns(columns, [int(n) for n in size], list(slides.values()))
    return found if columns is x else reshape(found, found.shape[1:])


ROWS: Rows = {
    "col2im": columns_to_images,
    "convolution": convolution,
    "convolution_backward": convolution_backward,
    "max_pool2d_with_indices": max_pool(2),
    "max_pool3d_with_indices": max_pool(3),
    **{f"avg_pool{n}d": average_pool(n) for n in (1, 2, 3)},
    "avg_pool2d_backward": lambda gradient, x, *options: backward(
        lambda t: average_pool(2)(t, *options), [x], gradient
    )[0],
    "adaptive_avg_pool1d": adaptive(1),
    "_adaptive_avg_pool2d": adaptive(2),
    "_adaptive_avg_pool3d": adaptive(3),
    "_adaptive_avg_pool2d_backward": lambda gradient, x: backward(
        lambda t: adaptive(2)(t, list(gradient.shape[-2:])), [x], gradient
    )[0],
}
