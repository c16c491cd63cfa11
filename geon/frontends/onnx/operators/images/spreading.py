"""Transposes of columns and pools: elements are spread over the places that windows read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import ArgumentError
from .....op_graph.axes.lengths import product
from ....positional.elementwise import expand
from ....positional.indexing import scatter_tuples
from ....positional.movement import pad
from ....positional.reshaping import reshape, unsqueeze
from ....positional.sliding import summed_columns
from ....positional.values import Size, Value, host
from ...table import row
from .convolution import slides_of


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
    row("Col2Im", columns_to_images),
    row("MaxUnpool", max_unpool),
]
