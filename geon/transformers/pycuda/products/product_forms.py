"""Choose how generated kernels compute contractions: their tiles, and the parts of their sums.

The choice depends on lengths and on where values lie, not on the device. Its result is a field of
the plan; scratch memory and text follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import Contraction
from ...lowering.planning.kernel_forms import choice
from ..kernels.launch_shapes import LaunchShape
from ..launches.launch_ir import NOMINAL_DEVICE, THREADS_PER_BLOCK, Grid, Parts
from .product_tiles import (
    MAX_SERIAL_TERMS,
    STAGED_COLUMNS,
    STAGED_DEPTH,
    STAGED_ROWS,
    TALL_TILE_ROWS,
    WIDE_TILE_COLUMNS,
    Tiles,
    large_tiles,
    tiles_for,
)
from .tile_loads import chunks_of, factors_of, is_along

MIN_LARGE_TILES = NOMINAL_DEVICE.processors * 3 // 4  # min. tiles: one fills a multiprocessor
# Blocks that fill a device, with the registers that sums take; with fewer, sums are split.
FULL_PRODUCT_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=128)


class LargeBounds(NamedTuple):
    """Minimum numbers of rows, columns and summed indices of a product with large tiles."""

    rows: int
    columns: int
    terms: int


# Tiles are at least half full, and most of the time all of a pipeline's stages are in use.
MIN_STAGED = LargeBounds(STAGED_ROWS // 2, STAGED_COLUMNS // 2, 4 * STAGED_DEPTH)
# Tiles have more than the rows and columns of small ones.
MIN_WIDE = LargeBounds(TALL_TILE_ROWS // 2 + 1, WIDE_TILE_COLUMNS // 2 + 1, 2 * MAX_SERIAL_TERMS)


class TiledProduct(NamedTuple):
    """Blocks of threads compute a tile of the result each, or one of the ``parts`` of its sums."""

    work: Contraction
    tiles: Tiles
    parts: Parts | None = None


class PartialSums(NamedTuple):
    """A thread for each result adds the partial sums of a ``product``."""

    product: TiledProduct


def product_forms(work: Contraction, tf32: bool) -> tuple[Any, ...]:
    """Return the kernels of a contraction: large tiles if lengths say so, else small ones.

    With ``tf32``, tensor cores multiply float32.
    """
    left, right, dtype = factors_of(work)
    small = tiles_for(dtype, size_of(work.rows), size_of(work.columns), tf32)
    parts = Parts(size_of(work.summed), blocks_of(work, small), FULL_PRODUCT_BLOCKS)
    others: tuple[Any, ...] = (TiledProduct(work, small),)
    if not parts.is_whole:
        cut = TiledProduct(work, small, parts)
        others = (cut, *choice(parts.several, (PartialSums(cut),), ()))
    large = None if small.tf32 else large_tiles(dtype)
    sides = (left, work.rows), (right, work.columns)
    if large is None or any(chunks_of(x, work, side, dtype) is None for x, side in sides):
        return others
    return choice(large_holds(work, large), (TiledProduct(work, large),), others)


def tile_shape(form: TiledProduct) -> LaunchShape | None:
    """Return the launch of a product without pipeline stages; None of one with them.

    Shared memory has the tiles of both operands, and a column of the sums that are stored.
    """
    work, tiles, parts = form
    if tiles.staged:
        return None
    left, right, _ = factors_of(work)
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    shared = tiles.wide * THREADS_PER_BLOCK * work.dtype.itemsize
    for value, lines in ((left, tiles.rows), (right, tiles.columns)):
        shared += tiles.bytes(lines, tiles.is_turned(is_along(work.summed, value, loops)))
    return LaunchShape(Grid(blocks_of(work, tiles), parts=parts), THREADS_PER_BLOCK, shared, True)


def large_holds(work: Contraction, tiles: Tiles) -> tuple[Size, ...]:
    """Return sizes that are all >= 0 if large tiles pay.

    There must be enough tiles for most of a large device, and sums long enough to dominate the
    stores. Tiles of small matrices in a batch would be mostly empty.
    """
    least = MIN_STAGED if tiles.staged else MIN_WIDE
    return (
        blocks_of(work, tiles) - MIN_LARGE_TILES,
        size_of(work.summed) - least.terms,
        size_of(work.rows) - least.rows,
        size_of(work.columns) - least.columns,
    )


def size_of(loops: Sequence[Loop]) -> Size:
    """Return the product of the loops' extents."""
    return product(loop.extent for loop in loops)


def tiles_along(loops: Sequence[Loop], each: int) -> Size:
    """Return the number of tiles along loops."""
    return (size_of(loops) + each - 1) // each


def blocks_of(work: Contraction, tiles: Tiles) -> Size:
    """Return the number of tiles of the result."""
    tall, wide = tiles_along(work.rows, tiles.rows), tiles_along(work.columns, tiles.columns)
    return size_of(work.batch) * tall * wide


def results(work: Contraction) -> Size:
    """Return the number of sums."""
    return size_of([*work.batch, *work.rows, *work.columns])
