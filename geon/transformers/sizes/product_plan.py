"""Rules that choose the algorithm of a product, for known lengths here and for open ones in C.

A plan is part of the text of a product of known lengths, so that the driver runs what scratch
memory is planned for. For open lengths ``c/product/driver.c`` evaluates the same rules in each
call, which it gets as macros.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.lengths import Length, as_text, substitute_names
from .product_blocks import (
    MAX_DIRECT_ROWS,
    MAX_DOT_ROWS,
    MAX_THIN_RESULTS,
    MIN_DOT_VECTORS,
    MIN_STREAM_VECTORS,
    MIN_THIN_VECTORS,
    ROWS_PER_GROUP,
    Shape,
)
from .scratch import Size

# Algorithms of the driver: names of ``enum geon_way`` in ``c/product/product.h``.
TILES = "GEON_TILES"  # register tiles over packed operands, or over those that lie near
STREAM = "GEON_STREAM"  # few rows, added along contiguous columns of an operand in memory
DOTS = "GEON_DOTS"  # dot products of few rows with columns in memory
THIN = "GEON_THIN"  # dot products along lines of both operands, of few rows and columns
WAYS = (TILES, STREAM, DOTS, THIN)

ROWS, COLUMNS, DEPTH = map(Length.of, ("rows", "columns", "depth"))


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """The algorithm of a product, one of ``WAYS``; ``exchanged`` if it computes the transpose.

    A kept packed copy of the right operand is multiplied by tiles instead of ``STREAM`` or
    ``DOTS``.
    """

    way: str
    exchanged: bool = False


@dataclass(frozen=True, slots=True)
class WayRule:
    """A way that is chosen if all ``bounds``, polynomials of the sizes, are 0 or more.

    ``right`` is what ``plan_product`` is given for the right operand; None for any operand.
    """

    way: str
    right: bool | None
    bounds: tuple[Length, ...]

    def holds(self, rows: Size, columns: Size, depth: Size) -> bool | None:
        """Return True if all bounds hold, None if that depends on open lengths."""
        return are_met(self.bounds, rows, columns, depth)

    def takes(self, right: bool | None) -> bool:
        """Return True if the rule is one for such a right operand."""
        return self.right is None or self.right is right


@cache
def rules(of: Shape) -> tuple[WayRule, ...]:
    """Return the rules of which the first that holds chooses the way; else it is ``TILES``."""
    stream = COLUMNS - MIN_STREAM_VECTORS * of.vector
    thin = (ROWS_PER_GROUP - ROWS, ROWS_PER_GROUP - COLUMNS, MAX_THIN_RESULTS - ROWS * COLUMNS)
    few, dots = MAX_DIRECT_ROWS["dots"] - ROWS, MIN_DOT_VECTORS * of.vector
    return (
        WayRule(STREAM, True, (stream, MAX_DIRECT_ROWS["stream"] - ROWS)),
        WayRule(TILES, True, (stream,)),
        WayRule(THIN, None, (*thin, DEPTH - MIN_THIN_VECTORS * of.vector)),
        # The final horizontal sums of dot products take as long as packing short columns.
        WayRule(DOTS, False, (few, DEPTH - dots * ROWS)),
        WayRule(DOTS, False, (few, DEPTH - dots * MAX_DOT_ROWS)),
    )


def exchange_bounds(of: Shape) -> tuple[Length, ...]:
    """Return what must be 0 or more for a product to be computed as its transpose.

    Few columns of many rows are few rows of many columns, which read the operand in place.
    """
    return (ROWS - MIN_STREAM_VECTORS * of.vector, of.vector - COLUMNS)


def are_met(bounds: Sequence[Length], rows: Size, columns: Size, depth: Size) -> bool | None:
    """Return True if all bounds are 0 or more, None if that depends on open lengths."""
    sizes = {"rows": rows, "columns": columns, "depth": depth}
    known = {name: size for name, size in sizes.items() if isinstance(size, int)}
    found = [substitute_names(bound, known) for bound in bounds]
    if any(isinstance(each, int) and each < 0 for each in found):
        return False
    return True if all(isinstance(each, int) for each in found) else None


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
    """
    way = _way(rows, columns, depth, of, right)
    plain = plain_result and left is not None and right is not None
    if plain and way != THIN and are_met(exchange_bounds(of), rows, columns, depth):
        exchanged = _way(columns, rows, depth, of, left)
        if exchanged != TILES:
            return ProductPlan(exchanged, True)
    return ProductPlan(way)


def _way(rows: int, columns: int, depth: int, of: Shape, right: bool | None) -> str:
    found = (r.way for r in rules(of) if r.takes(right) and r.holds(rows, columns, depth))
    return next(found, TILES)


def may_read_in_place(rows: Size, columns: Size, depth: Size, of: Shape, right: bool) -> bool:
    """Return True if a product may read its right operand in place, maybe for some open lengths."""
    return any(
        rule.way in (STREAM, DOTS)
        and rule.takes(right)
        and rule.holds(rows, columns, depth) is not False
        for rule in rules(of)
    )


def is_thin(rows: Size, columns: Size, depth: Size, of: Shape) -> bool | None:
    """Return True if a product is small enough for ``THIN``, None if open lengths decide."""
    (thin,) = (rule for rule in rules(of) if rule.way == THIN)
    return thin.holds(rows, columns, depth)


def rule_macros(of: Shape) -> dict[str, object]:
    """Return the rules as macros of C: what chooses a way, and when operands are exchanged.

    ``right`` is 1 for True, 0 for False and another number for None.
    """
    way = TILES
    for rule in reversed(rules(of)):
        side = [] if rule.right is None else [f"(right) == {int(rule.right)}"]
        way = f"{' && '.join([*side, *_conditions(rule.bounds)])} ? {rule.way} : {way}"
    return {
        "CHOSEN_WAY(rows, columns, depth, right)": f"({way})",
        "EXCHANGES(rows, columns)": f"({' && '.join(_conditions(exchange_bounds(of)))})",
    }


def _conditions(bounds: Sequence[Length]) -> list[str]:
    return [f"{as_text(bound, name='({0})')} >= 0" for bound in bounds]
