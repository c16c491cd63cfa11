"""Transposes of columns and pools: elements are spread over the places that windows read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....errors import ArgumentError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import expand
from ....positional.indexing import scatter_tuples
from ....positional.movement import pad
from ....positional.reshaping import reshape, unsqueeze
from ....positional.sliding import Slide, summed_columns
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
    edge = list(pads or [0] * (2 * rank))
    slides = [
        Slide(n, s, d, (edge[k], edge[k + rank]))
        for k, (n, s, d) in enumerate(
            zip(block, strides or [1] * rank, dilations or [1] * rank, strict=True)
        )
    ]
    return summed_columns(x, image, slides)


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
