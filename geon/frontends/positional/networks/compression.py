"""Compression of halves in tiles, with a loss."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError, DTypeError
from ..indexing import select
from ..movement import Part, concat, pad, slices
from ..programs import cast
from ..reductions import reduce
from ..reshaping import reshape, transpose, unsqueeze
from ..values import Value
from .common import constant, ew

TILE = 4  # rows and columns of a tile that is compressed to 8 bytes


def _tiles(x: Value) -> Value:
    """Return (..., rows, columns) as (..., tiles down, tiles across, 16)."""
    *rest, rows, columns = (int(n) for n in x.shape)
    down, across = -(-rows // TILE), -(-columns // TILE)
    wide = [(0, 0)] * len(rest) + [(0, down * TILE - rows), (0, across * TILE - columns)]
    whole = reshape(pad(x, wide, "edge", 0), [*rest, down, TILE, across, TILE])
    n = len(rest)
    order = [*range(n), n, n + 2, n + 1, n + 3]
    return reshape(transpose(whole, order), [*rest, down, across, TILE * TILE])


def compress(x: Value, *, shape: Any = None) -> Value:
    """Return tiles of 4 by 4 halves as 4 integers each: least, largest, and 16 numbers of 2 bits.

    Each half becomes the nearest of 4 equally spaced values. ``x`` is float16, of at least 2
    dimensions; ``shape`` is the shape that the backward command gives back.
    """
    if x.dtype != "float16" or len(x.shape) < 2:
        raise DTypeError(f"{x} cannot be compressed; give float16 of at least 2 dimensions")
    tiles = _tiles(x)
    last = [len(tiles.shape) - 1]
    low, high = (reduce(f, tiles, last) for f in (geon.min, geon.max))

    def level(t: geon.Tensor, a: geon.Tensor, b: geon.Tensor) -> geon.Tensor:
        t, a, b = (geon.cast(each, "float32") for each in (t, a, b))
        span = geon.where(b > a, b - a, 1)
        return geon.cast(geon.round((t - a) / span * 3), "int64")

    levels = ew(level, tiles, low, high)
    halves = reshape(levels, [*levels.shape[:-1], 2, 8])
    digit = reshape(constant([4**k for k in range(8)], "int64"), [8])
    bits = reduce(geon.sum, ew(geon.multiply, halves, digit), [len(halves.shape) - 1], keep=False)
    ends = [ew(lambda t: geon.bitcast(t, "uint16"), end) for end in (low, high)]
    return concat([*ends, cast(bits, "uint16")], len(bits.shape) - 1)


def decompress(packed: Value, *, shape: Any = None) -> Value:
    """Return the halves of compressed tiles, in ``shape``."""
    if shape is None or len(shape) != len(packed.shape) - 1:
        raise ArgumentError(f"{packed} becomes halves of a shape; give shape= to the command")
    at = len(packed.shape) - 1
    low, high = (
        ew(lambda t: geon.cast(geon.bitcast(t, "float16"), "float32"), unsqueeze(
            select(packed, at, k), [at])) for k in (0, 1)
    )  # fmt: skip
    bits = [unsqueeze(cast(select(packed, at, k), "int64"), [at]) for k in (2, 3)]
    digit = reshape(constant([4**k for k in range(8)], "int64"), [8])
    levels = concat([ew(lambda b, d: geon.mod(geon.floordivide(b, d), 4), each, digit) for each in
                     bits], at)  # fmt: skip
    values = ew(lambda n, a, b: a + (b - a) * (geon.cast(n, "float32") / 3), levels, low, high)
    *rest, down, across, _ = values.shape
    n = len(rest)
    order = [*range(n), n, n + 2, n + 1, n + 3]
    whole = transpose(reshape(values, [*rest, down, across, TILE, TILE]), order)
    whole = reshape(whole, [*rest, down * TILE, across * TILE])
    parts = {n: Part(0, int(shape[-2])), n + 1: Part(0, int(shape[-1]))}
    return cast(slices(whole, parts), "float16")
