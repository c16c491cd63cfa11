"""Reshape, transpose, join, slice, pad and repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import Length, product
from ...positional import movement
from ...positional.elementwise import elementwise, expand
from ...positional.indexing import select
from ...positional.movement import Part, concat, flip, slices, tile
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast
from ...positional.reshaping import reshape, squeeze, transpose, unsqueeze
from ...positional.values import Size, Value, array, as_array, host, position
from .common import positions, sizes, value_of


def view(x: Value, shape: Sequence[Any]) -> Value:
    """Return ``x`` in another shape."""
    return reshape(x, sizes(shape))


def permute(x: Value, dims: Sequence[int]) -> Value:
    """Return ``x`` with its dimensions in another order."""
    return transpose(x, positions(list(dims), len(x.shape)) if dims else [])


def swap(x: Value, first: int, second: int) -> Value:
    """Return ``x`` with two dimensions exchanged."""
    rank = len(x.shape)
    order = list(range(rank))
    if rank:
        i, j = position(first, rank), position(second, rank)
        order[i], order[j] = j, i
    return transpose(x, order)


def expand_to(x: Value, shape: Sequence[Any], implicit: bool = False) -> Value:
    """Return ``x`` broadcast to a shape, in which -1 stands for its own length."""
    own = [1] * (len(shape) - len(x.shape)) + list(x.shape)
    kept = [n if isinstance(m, int) and m == -1 else m for m, n in zip(shape, own, strict=True)]
    return expand(x, sizes(kept))


def squeeze_dims(x: Value, dims: Any) -> Value:
    """Return ``x`` without those of some dimensions whose length is 1."""
    at = positions(dims, len(x.shape)) if dims != [] else []
    return squeeze(x, [k for k in at if x.shape[k] == 1])


def unsqueeze_dim(x: Value, dim: int) -> Value:
    """Return ``x`` with a new dimension of length 1."""
    return unsqueeze(x, [position(dim, len(x.shape), 1)])


def cat(tensors: Sequence[Value], dim: int = 0, *, result: Any) -> Value:
    """Return tensors joined along a dimension; empty vectors count as nothing."""
    parts = [cast(t, result.dtype) for t in tensors if t.shape != (0,) or len(result.shape) == 1]
    return concat(parts, position(dim, len(result.shape)))


def part(x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    """Return a slice along a dimension, with bounds clamped."""
    return slices(x, {position(dim, len(x.shape)): Part(start, _end(end), step)})


def _end(end: Any) -> Any:
    return None if isinstance(end, int) and end >= 2**31 - 1 else end


def picked(x: Value, dim: int, index: Any) -> Value:
    """Return the elements at one index, without the dimension."""
    at = position(dim, len(x.shape))
    if isinstance(index, int):
        return select(x, at, index)
    return gather_at(x, {at: value_of(index, "int64")})


def parts(x: Value, lengths: Sequence[Any], dim: int = 0) -> tuple[Value, ...]:
    """Return consecutive parts of these lengths along a dimension."""
    return tuple(movement.split(x, position(dim, len(x.shape)), sizes(lengths)))


def put_part(
    x: Value, source: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    """Return ``x`` with a slice along a dimension replaced."""
    at = position(dim, len(x.shape))
    index = slices(numbers(x.shape[at]), {0: Part(start, _end(end), step)})
    return put_at(x, source, at, index)


def put_one(x: Value, source: Value, dim: int, index: Any) -> Value:
    """Return ``x`` with the elements at one index replaced."""
    return put_at(x, source, position(dim, len(x.shape)), value_of(index, "int64"))


def put_at(x: Value, source: Value, at: int, index: Value) -> Value:
    """Return ``x`` with the elements at an index along a position replaced."""
    if len(index.shape) and len(source.shape) == len(x.shape):
        order = [at, *[k for k in range(len(x.shape)) if k != at]]
        source = transpose(source, order)
    return scatter_at(x, {at: index}, source, "set")


def repeat(x: Value, counts: Sequence[Any]) -> Value:
    """Return ``x`` repeated as a whole along each dimension."""
    more = len(counts) - len(x.shape)
    return tile(unsqueeze(x, list(range(more))), sizes(counts))


def flipped(x: Value, dims: Sequence[int]) -> Value:
    """Return ``x`` in reverse order along some dimensions."""
    return flip(x, positions(list(dims), len(x.shape)) if dims else [])


def padded(mode: str) -> Callable[..., Value]:
    """Return the builder of a border; widths begin with those of the last dimension."""

    def build(x: Value, widths: Sequence[Any], number: Any = 0) -> Value:
        both: list[tuple[Size, Size]] = [(0, 0)] * len(x.shape)
        for k in range(len(widths) // 2):
            both[len(x.shape) - 1 - k] = (widths[2 * k], widths[2 * k + 1])
        fill = geon.constant(number, dtype=x.dtype)
        return movement.pad(x, both, mode, fill)

    return build


def diagonal(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Return the elements whose index along ``dim2`` is that along ``dim1`` plus ``offset``."""
    rank = len(x.shape)
    i, j = position(dim1, rank), position(dim2, rank)
    rows, columns = x.shape[i], x.shape[j]
    if isinstance(rows, int) and isinstance(columns, int):
        count: Size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    elif offset == 0 and rows == columns:
        count = rows
    else:
        raise ArgumentError(f"a diagonal of {x}, whose length depends on which side is longer")
    first, second = max(-offset, 0), max(offset, 0)
    square = slices(x, {i: Part(first, first + count), j: Part(second, second + count)})
    if count == 1:
        line = select(select(square, max(i, j), 0), min(i, j), 0)
        return unsqueeze(line, [rank - 2])
    given = as_array(square)
    a, b = given.dims[i], given.dims[j]
    assert a is not None and b is not None
    found = geon.diagonal(given.tensor, [a, b])
    rest = [d for k, d in enumerate(given.dims) if k not in (i, j)]
    return array(found, [*rest, a])


def strided(x: Value, shape: Sequence[Any], strides: Sequence[Any], offset: Any = None) -> Value:
    """Return the elements at these strides of the memory of ``x``, taken as contiguous."""
    lengths = sizes(shape)
    steps, contiguous = list(strides), []
    for k in range(len(lengths)):
        contiguous.append(product(lengths[k + 1 :]))
    if steps == contiguous and not offset and product(lengths) == product(x.shape):
        return reshape(x, lengths)
    if any(isinstance(n, Length) for n in [*lengths, *steps]):
        raise ArgumentError(f"as_strided of {x} with open lengths or strides")
    at: Value = host(offset or 0, "int64")
    for k, (length, step) in enumerate(zip(lengths, steps, strict=True)):
        line = elementwise(geon.multiply, numbers(length, len(lengths), k), host(step, "int64"))
        at = elementwise(geon.add, at, line)
    return gather_at(reshape(x, [product(x.shape)]), {0: at})


def nearest(x: Value, size: Any, factors: Any = None) -> Value:
    """Return images resampled to other lengths: the element at the start of each new one."""
    return resized(x, size, factors, "nearest", "starts")


def bilinear(x: Value, size: Any, align_corners: bool, factors: Any = None) -> Value:
    """Return images resampled between neighbouring elements."""
    return resized(x, size, factors, "linear", "corners" if align_corners else "centers")


def resized(x: Value, size: Any, factors: Any, mode: str, align: str) -> Value:
    """Return ``geon.resize`` along the dimensions after the second."""
    spatial = x.shape[2:]
    wanted = sizes(size) if size is not None else [
        _scaled(n, f) for n, f in zip(spatial, factors, strict=True)
    ]  # fmt: skip
    given = as_array(x)
    for k in range(2, len(x.shape)):
        given = movement.with_axis(given, k)
    names = [None if d is None else d.name for d in given.dims]
    lengths = {name: n for name, n in zip(names[2:], wanted, strict=True) if name is not None}
    return array(geon.resize(given.tensor, lengths, mode, align), names)  # type: ignore[arg-type]  # names


def _scaled(length: Size, factor: float) -> Size:
    if factor == int(factor):
        return length * int(factor)
    if isinstance(length, Length):
        raise ArgumentError(f"an open length {length} is scaled by {factor}; give the size")
    return int(length * factor)


ROWS: dict[str, Callable[..., Any]] = {
    "view": view,
    "_unsafe_view": view,
    "reshape": view,
    "permute": permute,
    "transpose.int": swap,
    "expand": expand_to,
    "squeeze.dim": squeeze_dims,
    "squeeze.dims": squeeze_dims,
    "unsqueeze": unsqueeze_dim,
    "cat": cat,
    "slice.Tensor": part,
    "select.int": picked,
    "split_with_sizes": parts,
    "slice_scatter": put_part,
    "select_scatter": put_one,
    "repeat": repeat,
    "flip": flipped,
    "constant_pad_nd": padded("constant"),
    **{f"reflection_pad{n}d": padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": padded("edge") for n in (1, 2, 3)},
    "diagonal": diagonal,
    "as_strided": strided,
    "upsample_nearest2d.vec": nearest,
    "upsample_bilinear2d.vec": bilinear,
}
