"""Contractions and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...positional.movement import pad
from ...positional.products import contract
from ...positional.programs import cast
from ...positional.reshaping import reshape, transpose
from ...positional.sliding import Slide, convolve, spread
from ...positional.values import Value, as_array


def dot_general(
    x: Value, y: Value, *, dimension_numbers: Any, preferred_element_type: Any
) -> Value:
    """Return the contraction of operands: batch positions, then the rest of each."""
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    if preferred_element_type is not None and preferred_element_type != x.dtype:
        x, y = cast(x, preferred_element_type), cast(y, preferred_element_type)
    left = as_array(x)
    like = [None] * len(y.shape)
    mine, theirs = list(range(len(x.shape))), [("y", k) for k in range(len(y.shape))]
    for a, b in zip([*over_x, *batch_x], [*over_y, *batch_y], strict=True):
        like[b], theirs[b] = left.dims[a], a
    rest = [k for k in mine if k not in (*over_x, *batch_x)]
    wanted = [*batch_x, *rest, *[label for label in theirs if label not in mine]]
    return contract([left, as_array(y, like)], [mine, theirs], wanted)


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
