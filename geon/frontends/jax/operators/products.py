"""Contractions and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...positional.movement import pad
from ...positional.programs import cast
from ...positional.reshaping import reshape, transpose
from ...positional.sliding import Slide, convolve, spread
from ...positional.values import Value, array, as_array, fresh, renamed


def dot_general(
    x: Value, y: Value, *, dimension_numbers: Any, preferred_element_type: Any
) -> Value:
    """Return the contraction of operands: batch positions, then the rest of each."""
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    if preferred_element_type is not None and preferred_element_type != x.dtype:
        x, y = cast(x, preferred_element_type), cast(y, preferred_element_type)
    left = as_array(x)
    like = [None] * len(y.shape)
    for pair in (zip(over_x, over_y, strict=True), zip(batch_x, batch_y, strict=True)):
        for a, b in pair:
            like[b] = left.dims[a]
    right = as_array(y, like)
    taken = [dim.name for dim in left.dims if dim is not None]
    shared = dict(zip([*over_y, *batch_y], [*over_x, *batch_x], strict=True))
    names: list[str | None] = []
    for k, dim in enumerate(right.dims):
        name = None
        if dim is not None:
            same = left.dims[shared[k]] if k in shared else None
            name = same.name if same is not None else fresh(dim.name, taken)
            taken.append(name)
        names.append(name)
    right = renamed(right, names)
    rest_x = [k for k in range(len(left.dims)) if k not in (*over_x, *batch_x)]
    rest_y = [k for k in range(len(right.dims)) if k not in shared]
    dims = [
        *[left.dims[a] or right.dims[b] for a, b in zip(batch_x, batch_y, strict=True)],
        *[left.dims[k] for k in rest_x],
        *[right.dims[k] for k in rest_y],
    ]
    out = [dim.name for dim in dims if dim is not None]
    found = geon.contract([left.tensor, right.tensor], out)
    return cast(array(found, dims), x.dtype)


def convolution(
    x: Value,
    w: Value,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any,
) -> Value:
    """Return the convolution of images with filters, with dilated images and groups of either."""
    x_order, w_order, out_order = (
        dimension_numbers.lhs_spec, dimension_numbers.rhs_spec, dimension_numbers.out_spec
    )  # fmt: skip
    dtype = preferred_element_type or x.dtype
    images, filters = transpose(cast(x, dtype), x_order), transpose(cast(w, dtype), w_order)
    borders = [(0, 0), (0, 0)]
    slides = []
    for k, step in enumerate(lhs_dilation):
        images = spread(images, k + 2, step)
        low, high = (int(n) for n in padding[k])
        borders.append((min(low, 0), min(high, 0)))
        length = int(filters.shape[k + 2])
        slides.append(
            Slide(length, window_strides[k], rhs_dilation[k], (max(low, 0), max(high, 0)))
        )
    images = pad(images, borders, "constant", geon.constant(0, dtype=dtype))
    groups = feature_group_count
    if batch_group_count > 1:  # groups of examples meet groups of filters: channels in groups
        n, c, *spatial = images.shape
        parts = reshape(images, [batch_group_count, n // batch_group_count, c, *spatial])
        order = [1, 0, 2, *range(3, 3 + len(spatial))]
        images = reshape(
            transpose(parts, order), [n // batch_group_count, batch_group_count * c, *spatial]
        )
        groups = batch_group_count
    found = convolve(images, filters, slides, groups)
    place = {position: k for k, position in enumerate(out_order)}
    return transpose(found, [place[k] for k in range(len(out_order))])


ROWS: dict[str, Callable[..., Any]] = {
    "dot_general": dot_general,
    "conv_general_dilated": convolution,
}
