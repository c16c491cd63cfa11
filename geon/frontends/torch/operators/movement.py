"""Reshape, transpose, join, slice, pad and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import Length, product
from ...positional import movement
from ...positional.elementwise import elementwise, expand
from ...positional.indexing import select
from ...positional.movement import Part, concat, flip, slices, tile
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast, value_of
from ...positional.reductions import along_axis
from ...positional.reshaping import reshape, squeeze, transpose, unsqueeze
from ...positional.sampling import COORDINATES, grid_sample, interpolated_along, scaled_length
from ...positional.values import Size, Value, host, position
from .common import Builder, Rows, positions

SAMPLES = ("linear", "nearest", "cubic")
PADDINGS = ("zeros", "border", "reflection")
LARGE = 2**31 - 1  # bounds from here on stand for the end


def expand_to(x: Value, shape: Sequence[Any], implicit: bool = False) -> Value:
    """Return ``x`` broadcast to a shape, in which -1 stands for its own length."""
    own = [1] * (len(shape) - len(x.shape)) + list(x.shape)
    kept = [n if isinstance(m, int) and m == -1 else m for m, n in zip(shape, own, strict=True)]
    return expand(x, kept)


def squeeze_dims(x: Value, dims: Any) -> Value:
    """Return ``x`` without those of some dimensions whose length is 1."""
    at = positions(dims, len(x.shape)) if dims != [] else []
    return squeeze(x, [k for k in at if x.shape[k] == 1])


def cat(tensors: Sequence[Value], dim: int = 0, *, result: Any) -> Value:
    """Return tensors joined along a dimension; empty vectors count as nothing."""
    parts = [cast(t, result.dtype) for t in tensors if t.shape != (0,) or len(result.shape) == 1]
    return concat(parts, dim)


def part(x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    """Return a slice along a dimension, with bounds clamped."""
    last = None if isinstance(end, int) and end >= LARGE else end
    return slices(x, {dim: Part(start, last, step)})


def picked(x: Value, dim: int, index: Any) -> Value:
    """Return the elements at one index, without the dimension."""
    at = position(dim, len(x.shape))
    if isinstance(index, int):
        return select(x, at, index)
    return gather_at(x, {at: value_of(index, "int64")})


def put_part(x: Value, source: Value, dim: int = 0, *bounds: Any) -> Value:
    """Return ``x`` with a slice along a dimension replaced."""
    at = position(dim, len(x.shape))
    order = [at, *[k for k in range(len(x.shape)) if k != at]]
    index = part(numbers(x.shape[at]), 0, *bounds)
    return scatter_at(x, {at: index}, transpose(source, order), "set")


def put_one(x: Value, source: Value, dim: int, index: Any) -> Value:
    """Return ``x`` with the elements at one index replaced."""
    at = position(dim, len(x.shape))
    return scatter_at(x, {at: value_of(index, "int64")}, source, "set")


def padded(mode: str) -> Builder:
    """Return the builder of a border; widths begin with those of the last dimension."""

    def build(x: Value, widths: Sequence[Any], number: Any = 0) -> Value:
        both: list[tuple[Size, Size]] = [(0, 0)] * len(x.shape)
        for k in range(len(widths) // 2):
            both[-1 - k] = (widths[2 * k], widths[2 * k + 1])
        return movement.pad(x, both, mode, geon.constant(number, dtype=x.dtype))

    return build


def diagonal(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Return the elements whose index along ``dim2`` is that along ``dim1`` plus ``offset``."""
    i, j = positions([dim1, dim2], len(x.shape))
    rows, columns = x.shape[i], x.shape[j]
    if isinstance(rows, int) and isinstance(columns, int):
        count: Size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    elif offset == 0 and rows == columns:
        count = rows
    else:
        raise ArgumentError(f"a diagonal of {x}, whose length depends on which side is longer")
    line = numbers(count)
    at = {k: elementwise(geon.add, line, host(n, "int64"))
          for k, n in ((i, max(-offset, 0)), (j, max(offset, 0)))}  # fmt: skip
    found = gather_at(x, at)
    return transpose(found, [*range(1, len(found.shape)), 0])


def strided(x: Value, shape: Sequence[Any], strides: Sequence[Any], offset: Any = None) -> Value:
    """Return the elements at these strides of the memory of ``x``, taken as contiguous."""
    lengths = list(shape)
    contiguous = [product(lengths[k + 1 :]) for k in range(len(lengths))]
    if list(strides) == contiguous and not offset and product(lengths) == product(x.shape):
        return reshape(x, lengths)
    if any(isinstance(n, Length) for n in [*lengths, *strides]):
        raise ArgumentError(f"as_strided of {x} with open lengths or strides")
    at: Value = host(offset or 0, "int64")
    for k, (length, step) in enumerate(zip(lengths, strides, strict=True)):
        line = numbers(length, len(lengths), k)
        at = elementwise(geon.add, at, elementwise(geon.multiply, line, host(step, "int64")))
    return gather_at(reshape(x, [product(x.shape)]), {0: at})


def unfolded(x: Value, dim: int, size: int, step: int) -> Value:
    """Return windows along a dimension, with a new last dimension for their elements."""
    if not x.shape:
        return unsqueeze(x, [0])
    rank, at = len(x.shape), position(dim, len(x.shape))
    count = (x.shape[at] - size) // step + 1
    starts = elementwise(geon.multiply, numbers(count, 2, 0), host(step, "int64"))
    found = gather_at(x, {at: elementwise(geon.add, starts, numbers(size, 2, 1))})
    order = [*range(2, 2 + at), 0, *range(2 + at, rank + 1), 1]
    return transpose(found, order)


def resized(mode: str) -> Builder:
    """Return the builder of images with other lengths after the second dimension."""

    def build(x: Value, size: Any, *options: Any) -> Value:
        align = "starts" if mode == "nearest" else "corners" if options[0] else "centers"
        wanted = size if size is not None else [
            scaled_length(n, f) for n, f in zip(x.shape[2:], options[-1], strict=True)
        ]  # fmt: skip
        for k, length in enumerate(wanted, 2):
            x = along_axis(lambda t, a, to=length: geon.resize(t, {a: to}, mode, align), x, k)
        return x

    return build


def resized_cubic(x: Value, size: Any, align_corners: bool, factors: Any = None) -> Value:
    """Return images with other lengths after the second dimension, by cubic convolution."""
    for k, n in enumerate(x.shape[2:], 2):
        length = scaled_length(n, factors[k - 2]) if size is None else size[k - 2]
        if not isinstance(n, int) or not isinstance(length, int):
            raise ArgumentError(f"{x} is resized to {length} by cubic convolution; give lengths")
        name = "align_corners" if align_corners else "half_pixel"
        place = COORDINATES[name](np.arange(length, dtype=np.float64), length / n, n, length)
        x = interpolated_along(x, k, place, "cubic")
    return x


ROWS: Rows = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape"), reshape),
    "permute": transpose,
    "expand": expand_to,
    "squeeze.dim": squeeze_dims,
    "squeeze.dims": squeeze_dims,
    "unsqueeze": lambda x, dim: unsqueeze(x, [dim]),
    "cat": cat,
    "slice.Tensor": part,
    "select.int": picked,
    "split_with_sizes": lambda x, lengths, dim=0: tuple(movement.split(x, dim, lengths)),
    "slice_scatter": put_part,
    "select_scatter": put_one,
    "repeat": lambda x, counts: tile(unsqueeze(x, range(len(counts) - len(x.shape))), counts),
    "flip": flip,
    "constant_pad_nd": padded("constant"),
    **{f"reflection_pad{n}d": padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": padded("edge") for n in (1, 2, 3)},
    "diagonal": diagonal,
    "as_strided": strided,
    "unfold": unfolded,
    "upsample_nearest2d.vec": resized("nearest"),
    "upsample_bilinear2d.vec": resized("linear"),
    "upsample_bicubic2d.vec": resized_cubic,
    "grid_sampler_2d": lambda x, grid, mode, padding, align_corners: grid_sample(
        x, grid, SAMPLES[mode], PADDINGS[padding], align_corners
    ),
}
