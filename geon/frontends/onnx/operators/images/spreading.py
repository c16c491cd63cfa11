"""Transposes of convolutions and pools: elements are spread over the places that windows read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

from .....errors import ArgumentError, AxisError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import elementwise, expand
from ....positional.indexing import matched, scatter_tuples
from ....positional.movement import Part, pad, slices
from ....positional.reshaping import reshape, transpose, unsqueeze
from ....positional.values import Size, Value, array, as_array, host, known_list
from ...table import row
from ..common import channels
from .convolution import FILTERS, KERNEL, spatial_from


def transposed_convolution(
    x: Value,
    w: Value,
    bias: Value | None = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return images whose convolution with the filters has the gradient of ``x``, in groups."""
    n, c, *lengths = x.shape
    rank, kernel = len(lengths), [int(size) for size in w.shape[2:]]
    if rank < 1 or len(kernel) != rank or w.shape[0] != c:
        raise AxisError(f"a transposed convolution of {x} with filters {w}: they do not fit")
    if kernel_shape is not None and list(kernel_shape) != kernel:
        raise AxisError(f"kernel_shape is {list(kernel_shape)}, and the filters are {w}")
    ones = [1] * rank
    stride, dilation = list(strides or ones), list(dilations or ones)
    extra = list(output_padding or [0] * rank)
    both = list(pads or [0] * (2 * rank))
    made, borders = [], []
    for k, length in enumerate(lengths):
        reach = dilation[k] * (kernel[k] - 1) + 1
        before, after = both[k], both[k + rank]
        if output_shape is not None or auto_pad.startswith("SAME"):
            wanted = length * stride[k] if output_shape is None else output_shape[-rank:][k]
            total = stride[k] * (length - 1) + extra[k] + reach - wanted
            if not isinstance(total, int):
                raise AxisError(f"output_shape along the open length {length}; give the length")
            small = max(total, 0) // 2
            before = small if auto_pad == "SAME_UPPER" else max(total, 0) - small
            after = total - before
        after -= extra[k]
        made.append((stride[k], dilation[k], (max(before, 0), max(after, 0))))
        borders.append((max(-before, 0), max(-after, 0)))
    images = spatial_from(as_array(reshape(x, [n, group, c // group, *lengths])), 3)
    names = [images.dims[1], geon.Axis(FILTERS), *[geon.Axis(each) for each in KERNEL[:rank]]]
    given = reshape(as_array(w, names), [group, c // group, *w.shape[1:]])
    filters = spatial_from(as_array(given), 3)
    # Groups and channels are shared; filters and the positions inside of them are new.
    shared = matched(as_array(unsqueeze(filters, [0])), images, [1, 2])
    at = {
        images.dims[3 + k]: geon.Window(shared.dims[4 + k], *each)  # type: ignore[arg-type]  # spatial_from gave them axes
        for k, each in enumerate(made)
    }
    over = [dim for dim in images.dims[2:3] if dim is not None]
    result: Any = geon.transposed_convolution(images.tensor, shared.tensor, at, over)  # type: ignore[arg-type]  # likewise
    whole = array(result, [images.dims[0], images.dims[1], shared.dims[3], *images.dims[3:]])
    spread = reshape(whole, [n, group * w.shape[1], *whole.shape[3:]])
    if any(border != (0, 0) for border in borders):
        spread = pad(spread, [(0, 0), (0, 0), *borders], "constant", 0)
    return spread if bias is None else elementwise(geon.add, spread, channels(bias, rank + 2))


def columns_to_images(
    x: Value,
    image_shape: Value,
    block_shape: Value,
    /,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return images that are sums of blocks, the columns of ``x``."""
    image = [int(n) for n in known_list(image_shape, "image_shape")]
    block = [int(n) for n in known_list(block_shape, "block_shape")]
    rank = len(image)
    stride, dilation = list(strides or [1] * rank), list(dilations or [1] * rank)
    edge = list(pads or [0] * (2 * rank))
    flat, inside = np.zeros((), np.int64), np.ones((), bool)
    for k in range(rank):
        reach = dilation[k] * (block[k] - 1) + 1
        count = (image[k] + edge[k] + edge[k + rank] - reach) // stride[k] + 1
        place = stride[k] * np.arange(count) + dilation[k] * np.arange(block[k])[:, None] - edge[k]
        # Positions: those inside of a block, then the blocks.
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = place.shape
        place = place.reshape(shape)
        inside = inside & (place >= 0) & (place < image[k])
        flat = flat * image[k] + place
    n, c = x.shape[0], x.shape[1] // int(np.prod(block))
    size = int(np.prod(image))
    index = np.where(inside, flat, size).reshape(-1, 1)
    elements = transpose(reshape(x, [n * c, len(index)]), [1, 0])
    zeros = expand(host(np.zeros((), x.dtype)), [size + 1, n * c])
    sums = scatter_tuples(zeros, host(index), elements, "add")
    return reshape(transpose(slices(sums, {0: Part(0, size)}), [1, 0]), [n, c, *image])


def max_unpool(
    x: Value,
    index: Value,
    output_shape: Value | None = None,
    /,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Return zeros with the elements of ``x`` at the indices that a max pool returned."""
    rank = len(kernel_shape)
    stride, edge = list(strides or [1] * rank), list(pads or [0] * (2 * rank))
    shape: list[Size] = list(x.shape[:2])
    for k, length in enumerate(x.shape[2:]):
        shape.append((length - 1) * stride[k] - edge[k] - edge[k + rank] + kernel_shape[k])
    zeros = expand(host(np.zeros((), x.dtype)), [product(shape)])
    flat = unsqueeze(reshape(index, [-1]), [1])
    result = reshape(scatter_tuples(zeros, flat, reshape(x, [-1])), shape)
    if output_shape is None:
        return result
    wanted = known_list(output_shape, "output_shape")
    if len(wanted) != len(shape):
        raise ArgumentError(f"output_shape has {len(wanted)} lengths for {len(shape)} dimensions")
    return pad(result, [(0, a - b) for a, b in zip(wanted, shape, strict=True)], "constant", 0)


ROWS = [
    row("ConvTranspose", transposed_convolution),
    row("Col2Im", columns_to_images),
    row("MaxUnpool", max_unpool),
]
