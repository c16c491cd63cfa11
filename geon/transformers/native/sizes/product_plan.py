"""Plans of products of known lengths: which algorithm the driver runs, and on which operand.

A plan is part of the text of a product, so that the driver runs what scratch memory is planned for.
For open lengths ``c/product/driver.c`` decides in the same way in each call.
"""

from __future__ import annotations

from dataclasses import dataclass

from .blocking import MAX_DIRECT_ROWS, MIN_STREAM_VECTORS, Shape

# Algorithms of the driver: names of ``enum geon_way`` in ``c/product/product.h``.
TILES = "GEON_TILES"  # register tiles over packed operands, or over those that lie near
STREAM = "GEON_STREAM"  # few rows, added along contiguous columns of an operand in memory
DOTS = "GEON_DOTS"  # dot products of few rows with columns in memory
THIN = "GEON_THIN"  # dot products along lines of both operands, of few rows and columns
WAYS = (TILES, STREAM, DOTS, THIN)


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """The algorithm of a product, one of ``WAYS``; ``exchanged`` if it computes the transpose.

    A kept packed copy of the right operand is multiplied by tiles instead of ``STREAM`` or
    ``DOTS``.
    """

    way: str
    exchanged: bool = False


def plan_product(
    rows: int,
    columns: int,
    depth: int,
    of: Shape,
    left: bool | None,
    right: bool | None,
    plain_result: bool,
) -> ProductPlan:
    """Return the plan of a product.

    ``left`` and ``right`` are True if lines of the operand (rows, columns) lie side by side in
    memory, False if its summed indices do, and None if it is no plain memory. ``plain_result`` is
    True if sums are stored to memory as they are.

    Few columns of many rows are few rows of many columns, which read the operand in place: in
    streams at any depth, in vector lanes where they are deep.
    """
    turns = (
        plain_result
        and left is not None
        and right is not None
        and rows >= MIN_STREAM_VECTORS * of.vector
        and columns <= min(of.vector, MAX_DIRECT_ROWS["stream" if left else "dots"])
        and (left or depth >= of.dots_from(columns))
        and _way(rows, columns, depth, of, right) != THIN
    )
    if turns:
        return ProductPlan(_way(columns, rows, depth, of, left), True)
    return ProductPlan(_way(rows, columns, depth, of, right))


def _way(rows: int, columns: int, depth: int, of: Shape, right: bool | None) -> str:
    """Return the algorithm of a product as it is; a stream of long enough rows is left one."""
    streams = bool(right) and columns >= MIN_STREAM_VECTORS * of.vector
    if of.thin(rows, columns, depth) and not streams:
        return THIN
    if streams and rows <= MAX_DIRECT_ROWS["stream"]:
        return STREAM
    if right is False and rows <= MAX_DIRECT_ROWS["dots"] and depth >= of.dots_from(rows):
        return DOTS
    return TILES
