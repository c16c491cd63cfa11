"""Scratch memory of products, in bytes: blocks of threads, and cached packed operands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import Length, evaluate
from ...sizes.product_blocks import (
    DIRECT_COLUMN_BLOCKS,
    DIRECT_DEPTH_BLOCKS,
    MAX_BAND_BYTES,
    MAX_BLOCK_ROWS,
    MAX_DIRECT_BLOCK_BYTES,
    MAX_DIRECT_ROWS,
    MAX_PACK_CACHE_ROWS,
    MAX_PANEL_COLUMNS,
    MAX_SERIAL_TERMS,
    MAX_THIN_BYTES,
    MAX_THIN_RESULTS,
    MIN_PACK_CACHE_ROWS,
    MIN_PACK_FIRST_MULADDS,
    MIN_STREAM_COST_ROWS,
    ROWS_PER_GROUP,
    TASK_MULADDS,
    Shape,
    blocks_for,
)
from ...sizes.product_plan import STREAM, THIN, TILES, ProductPlan
from ...sizes.scratch import Size


@dataclass(frozen=True, slots=True)
class Sides:
    """The operands of a product as its text uses them.

    ``turned`` is True if rows and columns are exchanged; the driver may exchange them ``again``.
    ``band`` is the number of elements of a band of row windows: 0 for windows in place, None
    without windows. ``staged`` are the elements of the staging buffers of both operands for each
    summed index. ``packs`` is False if neither operand has a pack function of its own. ``step`` is
    the stride of the right operand's summed indices if its columns may be contiguous, else 0.
    ``places`` are the elements of a band of column windows and the columns of its sums, or None.
    ``known`` is False if the other fields are upper bounds. ``plans`` are those of known lengths,
    for vectors of all widths; empty if calls choose.
    """

    turned: bool
    again: bool = True
    band: int | None = None
    staged: tuple[int, int] = (ROWS_PER_GROUP, MAX_PANEL_COLUMNS)
    packs: bool = True
    step: int = 1
    places: tuple[int, int] | None = None
    known: bool = False
    plans: frozenset[ProductPlan] = frozenset()


def unknown(band: int | None = None) -> tuple[Sides, ...]:
    """Return the sides of a product of which only the maximum band is known."""
    return Sides(False, band=band), Sides(True, band=band)


@dataclass(frozen=True, slots=True)
class ProductScratch:
    """The scratch memory of each thread of a product: packed blocks, and sums of a block of the
    result.

    An operand that is packed once for all rows precedes it, unless the product is a step of a chain
    and so not ``alone``. It is large enough for each of ``sides``.

    ``c/product/driver.c`` divides the product and uses no more than these bytes.
    """

    batches: Size
    rows: Size
    columns: Size
    depth: Size
    of: Shape
    alone: bool = True
    sides: tuple[Sides, ...] = unknown()
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for all threads of a call."""
        batches, rows, columns, depth = (
            evaluate(size, lengths) for size in (self.batches, self.rows, self.columns, self.depth)
        )
        results = max(
            max(rows, MIN_STREAM_COST_ROWS) * columns, rows * max(columns, MIN_STREAM_COST_ROWS)
        )
        tasks = int(float(batches) * results * (depth + 4) / TASK_MULADDS) + 1
        count = min(threads, tasks)
        sizes = (rows, columns, batches, depth, count, threads)
        return max(self._all(side, *sizes) for side in self.sides)

    def most(self, threads: int) -> int | Length:
        """Return an upper bound of ``bytes``: blocks have a largest size."""
        sizes = (self.batches, self.rows, self.columns, self.depth)
        batches, rows, columns, depth = (n if isinstance(n, int) else 1 << 40 for n in sizes)
        wide = self.of.packed_columns
        open_rows = [rows] if isinstance(self.rows, int) else [4, 16, 32, wide, rows]
        open_columns = [columns] if isinstance(self.columns, int) else [4, 16, 32, wide, columns]
        open = not all(isinstance(size, int) for size in sizes)
        deep = self.of.packed // self.of.columns
        open_depths = [depth] if isinstance(self.depth, int) else [deep, depth]
        return max(
            self._all(side, r, c, *rest, threads, open)
            for side in self.sides
            for r in open_rows
            for c in open_columns
            for rest in ((batches, d, threads) for d in open_depths)
        )

    def _all(
        self,
        side: Sides,
        rows: int,
        columns: int,
        batches: int,
        depth: int,
        threads: int,
        all_threads: int,
        open: bool = False,
    ) -> int:
        """Return the bytes for ``threads`` of ``all_threads`` threads, for the algorithm that needs
        most.
        """
        if side.turned:
            rows, columns = columns, rows
        sizes: list[int] = []
        for plan in side.plans or self._possible(side, rows, columns):
            r, c = (columns, rows) if plan.exchanged else (rows, columns)
            if plan.way == TILES:
                sizes += self._tiles(side, r, c, batches, depth, threads, all_threads, open)
            elif plan.way == THIN:
                sizes.append(self._thin(r, c, depth) * threads)
            else:
                sizes.append(self._direct(side, r, c, depth) * threads)
        return max(sizes) * self.of.bytes

    def _possible(self, side: Sides, rows: int, columns: int) -> Iterator[ProductPlan]:
        """Yield the plans of which calls choose one."""
        most = max(MAX_DIRECT_ROWS.values())
        yield ProductPlan(TILES)
        if rows <= most:
            yield ProductPlan(STREAM)
        if side.again and columns <= most:
            yield ProductPlan(STREAM, exchanged=True)
        if max(rows, columns) <= ROWS_PER_GROUP and rows * columns <= MAX_THIN_RESULTS:
            yield ProductPlan(THIN)

    def _tiles(
        self,
        side: Sides,
        rows: int,
        columns: int,
        batches: int,
        depth: int,
        threads: int,
        all_threads: int,
        open: bool,
    ) -> Iterator[int]:
        """Yield the elements for register tiles: operands packed by each thread, or once."""
        first = self._packs_first(side, rows, columns, depth, open)
        later = side.places is not None or self._packs_later(side, depth)
        if open or not first or later:
            for n in range(1, threads + 1):
                yield self._packed(side, rows, columns, depth, n) * n
        if first:
            each = self._group(side, columns, depth)
            room = self.of.packed if open else self._room(side, rows, depth, all_threads)
            yield self._first(batches, columns, depth, room) + each * threads

    def _packs_first(self, side: Sides, rows: int, columns: int, depth: int, open: bool) -> bool:
        """Return True if the right operand may be packed once for all rows."""
        least = 0 if side.band and depth > self.of.depth else MIN_PACK_FIRST_MULADDS
        large = rows > ROWS_PER_GROUP and rows * columns * depth >= least
        # An operand larger than all other data is not; with open lengths that is unknown.
        wide = not open and depth * columns > rows * (depth + columns)
        return self.alone and large and not wide and depth * self.of.columns <= self.of.packed

    def _packs_later(self, side: Sides, depth: int) -> bool:
        """Return True if tasks may still pack blocks: the right operand may be read in place."""
        if not side.known:
            return True
        block = min(depth, self.of.depth // 2)  # at least: the depth is cut into equal blocks
        return 0 < block * side.step * self.of.bytes <= MAX_DIRECT_BLOCK_BYTES

    def _room(self, side: Sides, rows: int, depth: int, threads: int) -> int:
        """Return the maximum elements of a right operand that is packed once.

        It is smaller for bands of rows, which are enough tasks without a division of columns.
        """
        wanted = 2 * threads if threads > 1 else 1
        if (
            not (side.known and side.band and depth > self.of.depth)
            or -(-rows // ROWS_PER_GROUP) < wanted
        ):
            return self.of.packed
        return max(MAX_BAND_BYTES // self.of.bytes, 2 * MAX_PANEL_COLUMNS * depth)

    def _first(self, batches: int, columns: int, depth: int, room: int) -> int:
        """Return the elements of a right operand that is packed once: some columns, or some
        batches.
        """
        most, width = self.of.packed_columns, _up(columns, self.of.panel)
        elements = width * batches * depth if width <= most else most * depth
        return _up(min(elements, room), 64)

    def _group(self, side: Sides, columns: int, depth: int) -> int:
        """Return the elements of a group's rows and sums, with all columns packed."""
        width = min(self.of.packed_columns, _up(columns, self.of.panel))
        sums = _up(ROWS_PER_GROUP * (width + self.of.vector), 64)
        deep = min(self.of.depth, _up(depth, 8))
        left = self._left(side, ROWS_PER_GROUP, True)
        return left + sums + self._staged(side, ROWS_PER_GROUP, deep, width)

    def _left(self, side: Sides, height: int, shows: bool) -> int:
        """Return the elements of a group of rows, packed or in a band; only the band if it is
        always used.
        """
        band, packed = _up(side.band or 0, 64), _up(height * self.of.line, 64)
        return band if shows and side.known and side.band is not None else max(band, packed)

    def _staged(self, side: Sides, rows: int, deep: int, width: int) -> int:
        """Return the elements of the staging buffers of both operands."""
        left, right = side.staged
        return _up((min(left, rows) + right) * deep + width, 64) if side.packs else 0

    def _packed(self, side: Sides, rows: int, columns: int, depth: int, threads: int) -> int:
        """Return the elements of the blocks that one of ``threads`` threads packs for register
        tiles.
        """
        of = self.of
        band, columns = (0, columns) if side.places is None else side.places
        widest = max(of.packed_columns // threads, of.columns) if self.alone else of.columns
        width = min(widest, _up(columns, of.panel))
        deep = min(of.depth, _up(depth, 8))
        height = min(ROWS_PER_GROUP, _up(rows, of.row_step))
        groups = (
            math.ceil(min(MAX_BLOCK_ROWS, _up(rows, of.row_step)) / ROWS_PER_GROUP)
            if depth > of.depth
            else 1
        )
        return (
            self._left(side, height, depth <= of.depth)
            + max(_up(width * deep, 64), _up(band, 64))
            + self._sums(
                groups * ROWS_PER_GROUP if groups > 1 else height, width, depth > of.long_depth
            )
            + self._staged(side, height, deep, width)
        )

    def _direct(self, side: Sides, rows: int, columns: int, depth: int) -> int:
        """Return the elements for few rows that are multiplied by an operand read in place."""
        of = self.of
        width = min(blocks_for(rows, DIRECT_COLUMN_BLOCKS) * of.columns, _up(columns, of.panel))
        most = of.depth * blocks_for(rows, DIRECT_DEPTH_BLOCKS)
        deep = min(max(most, of.vector * MAX_SERIAL_TERMS), _up(depth, 8))
        left = _up(rows * (deep + of.vector), 64)
        height = min(ROWS_PER_GROUP, _up(rows, of.row_step))
        sums = self._sums(height, width, depth > of.long_stream)
        return left + sums + self._staged(side, height, deep, width)

    def _thin(self, rows: int, columns: int, depth: int) -> int:
        """Return the elements for few rows and columns that are packed as lines."""
        of, sides = self.of, rows + columns
        most = MAX_THIN_BYTES // of.bytes // max(sides, 1)
        deep = min(of.vector * MAX_SERIAL_TERMS, most, _up(depth, 8)) + 8
        packed = _up(rows * (deep + of.vector), 64) + _up(columns * (deep + of.vector), 64)
        width = _up(columns, of.panel)
        sums = self._sums(_up(rows, of.row_step), width, depth > of.long_depth)
        return packed + sums + _up(sides * deep + width, 64)

    def _sums(self, rows: int, width: int, is_long: bool) -> int:
        """Return the elements of a block's sums, with double totals for long sums."""
        one = _up(rows * (width + self.of.vector), 64)
        return one * (1 + 8 // self.of.bytes) if is_long else one


def _up(number: int, step: int) -> int:
    return max(step, -(-number // step) * step)


@dataclass(frozen=True, slots=True)
class PackedCopy:
    """The cached packed copy of a product's operand.

    ``size`` is in bytes, ``rows`` are those of the other operand. ``constant`` is True if the
    operand depends on no variable.
    """

    size: Size
    rows: Size
    constant: bool

    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int = 1) -> int:
        """Return the bytes of the copy, 0 if caching it does not pay off."""
        return evaluate(self.size, lengths) if pays(evaluate(self.rows, lengths)) else 0

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``, an expression over open lengths."""
        return self.size


def pays(rows: int) -> bool:
    """Return True if caching the packed operand pays off for a product of ``rows`` rows.

    Fewer rows read the operand in place. For more rows packing is a small part of the work.
    """
    return MIN_PACK_CACHE_ROWS <= rows <= MAX_PACK_CACHE_ROWS
