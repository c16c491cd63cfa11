"""Convolution, pooling and columns of images, and the transposes of these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError, AxisError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import elementwise, expand
from ....positional.indexing import scatter_tuples
from ....positional.movement import pad
from ....positional.picking import numbers
from ....positional.reductions import reduce
from ....positional.reshaping import by_channel, reshape, unsqueeze
from ....positional.sliding import Slide, convolve, first_largest, pooled, summed_columns
from ....positional.values import PositionalArray, Size, Value, as_array, host
from ...table import NodeInfo, row

FILTERS = "K"
KERNEL = "RSTUV"  # names of the positions inside of a filter, in order


def slides_of(
    lengths: Sequence[Size],
    /,
    kernel_shape: Sequence[int],
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> dict[int, Slide]:
    """Return the windows along the spatial positions of images, by position: 2 and further ones."""
    rank = len(lengths)
    kernel = [int(n) for n in kernel_shape]
    stride, dilation = list(strides or [1] * rank), list(dilations or [1] * rank)
    edge = list(pads or [0] * (2 * rank))
    if not len(kernel) == len(stride) == len(dilation) == rank or len(edge) != 2 * rank:
        raise AxisError(
            f"windows over {rank} positions: kernel_shape {kernel}, strides {stride}, "
            f"dilations {dilation} and pads {edge} do not fit"
        )
    found = {}
    for k, length in enumerate(lengths):
        both: Any = (0, 0) if auto_pad == "VALID" else (edge[k], edge[k + rank])
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            both = _same(length, kernel[k], stride[k], dilation[k], auto_pad == "SAME_LOWER")
        found[k + 2] = Slide(kernel[k], stride[k], dilation[k], both, bool(ceil_mode))
    return found


def _same(length: Any, kernel: int, stride: int, dilation: int, lower: bool) -> Any:
    """Return the padding that gives one window for each ``stride`` elements."""
    reach = dilation * (kernel - 1) + 1
    if isinstance(length, int):
        total = max((-(-length // stride) - 1) * stride + reach - length, 0)
    elif stride == 1:
        total = reach - 1
    elif lower:
        raise ArgumentError("SAME_LOWER with a stride along an open length; give the length")
    else:
        return "same"
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def named_filters(w: Value, *first: Any) -> PositionalArray:
    """Return filters whose axes are called as ``first``, then K for new channels, and R, S, ..."""
    names = [geon.Axis(FILTERS) if dim == FILTERS else dim for dim in first]
    return as_array(w, [*names, *[geon.Axis(n) for n in KERNEL[: len(w.shape) - 2]]])


def fitting_kernel(w: Value, kernel_shape: Sequence[int] | None) -> list[int]:
    """Return the lengths of filters; raise ``AxisError`` if the attribute has others."""
    kernel = [int(n) for n in w.shape[2:]]
    if kernel_shape is not None and list(kernel_shape) != kernel:
        raise AxisError(f"kernel_shape is {list(kernel_shape)}, and the filters are {w}")
    return kernel


def convolution(
    x: Value,
    w: Value,
    bias: Value | None = None,
    /,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **attributes: Any,
) -> Value:
    """Return the convolution of images with filters, in groups of channels."""
    rank = len(x.shape)
    if len(w.shape) != rank or rank < 3:
        raise AxisError(
            f"a convolution of {x} with filters {w}: both need the same rank, 3 or more"
        )
    kernel = fitting_kernel(w, kernel_shape)
    if w.shape[1] * group != x.shape[1] and isinstance(x.shape[1], int):
        raise AxisError(
            f"a convolution of {x} with filters {w} in {group} groups: the filters read "
            f"{w.shape[1] * group} channels"
        )
    images = as_array(x)
    filters = named_filters(w, FILTERS, images.dims[1])
    slides = slides_of(x.shape[2:], kernel, **attributes)
    result = convolve(images, filters, list(slides.values()), group)
    return result if bias is None else elementwise(geon.add, result, by_channel(bias, rank))


def transposed_convolution(
    x: Value,
    w: Value,
    bias: Value | None = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    **attributes: Any,
) -> Value:
    """Return images whose convolution with the filters has the gradient of ``x``, in groups."""
    rank = len(x.shape) - 2
    if rank < 1 or len(w.shape) != rank + 2 or w.shape[0] != x.shape[1]:
        raise AxisError(f"a transposed convolution of {x} with filters {w}: they do not fit")
    slides, borders, lengths = [], [(0, 0), (0, 0)], []
    kernel = fitting_kernel(w, kernel_shape)
    for k, s in slides_of(x.shape[2:], kernel, **attributes).items():
        length, extra = x.shape[k], output_padding[k - 2] if output_padding else 0
        reach = s.dilation * (s.length - 1) + 1
        before, after = s.pad
        if output_shape is not None or auto_pad.startswith("SAME"):
            wanted = length * s.stride if output_shape is None else output_shape[-rank:][k - 2]
            total = s.stride * (length - 1) + extra + reach - wanted
            if not isinstance(total, int):
                raise AxisError(f"output_shape along the open length {length}; give the length")
            small = max(total, 0) // 2
            before = small if auto_pad == "SAME_UPPER" else max(total, 0) - small
            after = total - before
        after -= extra
        inside = max(before, 0), max(after, 0)
        slides.append(Slide(s.length, s.stride, s.dilation, inside))
        lengths.append((length - 1) * s.stride + reach - sum(inside))
        borders.append((max(-before, 0), max(-after, 0)))
    images = as_array(x)
    filters = named_filters(w, images.dims[1], FILTERS)
    result = pad(convolve(images, filters, slides, group, lengths), borders, "constant", 0)
    return result if bias is None else elementwise(geon.add, result, by_channel(bias, rank + 2))


def max_pool(
    x: Value, /, *, node: NodeInfo, storage_order: int = 0, **attributes: Any
) -> tuple[Value, ...]:
    """Return the largest element of each window, and its number in the whole tensor.

    Numbers are row-major, or with a ``storage_order`` column-major among spatial positions.
    """
    slides = slides_of(x.shape[2:], **attributes)
    result = pooled(geon.max_pool, x, slides)
    if not node.wants(1):
        return (result,)
    place = first_largest(x, slides, bool(storage_order))
    n, c, *lengths = x.shape
    image = reshape(numbers(n * c), [n, c, *[1] * len(lengths)])
    for length in lengths:
        image = elementwise(geon.multiply, image, host(length, "int64"))
    return result, elementwise(geon.add, place, image)


def average_pool(x: Value, /, *, count_include_pad: int = 0, **attributes: Any) -> Value:
    """Return the mean of each window."""
    f = partial(geon.average_pool, count_pad=bool(count_include_pad))
    return pooled(f, x, slides_of(x.shape[2:], **attributes))


def lp_pool(x: Value, /, *, p: float = 2, **attributes: Any) -> Value:
    """Return the p-norm of each window."""
    return pooled(partial(geon.lp_pool, p=p), x, slides_of(x.shape[2:], **attributes))


def global_lp_pool(x: Value, /, *, p: float = 2) -> Value:
    """Return the p-norm of whole images."""

    def norm(t: geon.Tensor, axes: Any) -> geon.Tensor:
        return geon.sum(geon.absolute(t) ** p, axes) ** (1 / p)

    return reduce(norm, x, range(2, len(x.shape)))


def global_pool(f: Any) -> Any:
    """Return the builder of a pool over whole images."""
    return lambda x, /: reduce(f, x, range(2, len(x.shape)))


def columns_to_images(
    x: Value,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    /,
    **attributes: Any,
) -> Value:
    """Return images that are sums of blocks, the columns of ``x``."""
    slides = slides_of(image_shape, block_shape, **attributes)
    return summed_columns(x, image_shape, list(slides.values()))


def max_unpool(
    x: Value,
    index: Value,
    output_shape: Sequence[Size] | None = None,
    /,
    **attributes: Any,
) -> Value:
    """Return zeros with the elements of ``x`` at the indices that a max pool returned."""
    shape: list[Size] = list(x.shape[:2])
    for k, s in slides_of(x.shape[2:], **attributes).items():
        shape.append((x.shape[k] - 1) * s.stride - sum(s.pad) + s.length)
    zeros = expand(host(np.zeros((), x.dtype)), [product(shape)])
    flat = unsqueeze(reshape(index, [-1]), [1])
    result = reshape(scatter_tuples(zeros, flat, reshape(x, [-1])), shape)
    if output_shape is None:
        return result
    if len(output_shape) != len(shape):
        raise ArgumentError(
            f"output_shape has {len(output_shape)} lengths for {len(shape)} dimensions"
        )
    widths = [(0, a - b) for a, b in zip(output_shape, shape, strict=True)]
    return pad(result, widths, "constant", 0)


ROWS = [
    row("Conv", convolution),
    row("ConvTranspose", transposed_convolution),
    row("MaxPool", max_pool),
    row("AveragePool", average_pool),
    row("LpPool", lp_pool),
    row("GlobalLpPool", global_lp_pool),
    row("GlobalAveragePool", global_pool(geon.mean)),
    row("GlobalMaxPool", global_pool(geon.max)),
    row("Col2Im", columns_to_images),
    row("MaxUnpool", max_unpool),
]
