"""Transposes of columns and pools: elements are spread over the places that windows read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....errors import ArgumentError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import expand
from ....positional.indexing import scatter_tuples
from ....positional.movement import Part, pad, slices
from ....positional.reshaping import reshape, transpose, unsqueeze
from ....positional.values import Size, Value, host, known_list
from ...table import row


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
    row("Col2Im", columns_to_images),
    row("MaxUnpool", max_unpool),
]
