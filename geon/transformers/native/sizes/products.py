"""Scratch memory of products, in bytes: blocks of threads, and cached packed operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import evaluate
from ...sizes.limits import MAX_LENGTH
from ...sizes.product_blocks import (
    DIRECT_COLUMN_BLOCKS,
    DIRECT_DEPTH_BLOCKS,
    MAX_BAND_ROWS,
    MAX_BLOCK_ROWS,
    MAX_DIRECT_ROWS,
    MAX_PACK_CACHE_ROWS,
    MAX_PANEL_COLUMNS,
    MAX_SERIAL_TERMS,
    MAX_THIN_BYTES,
    MAX_THIN_RESULTS,
    MIN_PACK_CACHE_COLUMNS,
    MIN_PACK_CACHE_ROWS,
    MIN_PACK_FIRST_MULADDS,
    ROWS_PER_GROUP,
    Shape,
    all_shapes,
    blocks_for,
)
from ...sizes.product_cut import (
    BY_TILES,
    SizeProblem,
    cut_product,
    size_problem,
)
from ...sizes.product_plan import DOTS, STREAM, THIN, TILES, ProductPlan
from ...sizes.scratch import Size

OPEN_LENGTH = MAX_LENGTH  # stands for an open length in bounds of memory


@dataclass(frozen=True, slots=True)
class Sides:
    """The operands of a product as its text uses them, with vectors of one width (``of``).

    ``turned`` is True if rows and columns are exchanged; the driver may exchange them ``again``.
    ``band`` is the number of elements of a band of row windows: 0 for windows in place, None
    without windows; it is for at most ``band_rows``. ``staged`` are the elements of the staging
    buffers of both operands for each summed index. ``packs`` is False if neither operand has a pack
    function of its own. ``step`` is the stride of the right operand's summed indices if its columns
    may be contiguous, else 0.
    ``places`` are the elements of a band of column windows and the columns of its sums, or None.
    ``plan`` is None if calls choose.
    """

    of: Shape
    turned: bool
    again: bool = True
    band: int | None = None
    staged: tuple[int, int] = (ROWS_PER_GROUP, MAX_PANEL_COLUMNS)
    packs: bool = True
    step: int = 1
    places: tuple[int, int] | None = None
    band_rows: int = MAX_BAND_ROWS
    plan: ProductPlan | None = None


def unknown(type: str, band: int | None = None) -> tuple[Sides, ...]:
    """Return the sides of a product of which only the type and the maximum band are known."""
    shapes, orders = all_shapes(type), (False, True)
    return tuple([Sides(of, turned, band=band) for of in shapes for turned in orders])


@dataclass(frozen=True, slots=True)
class ProductScratch:
    """The scratch memory of the threads of a product: packed blocks, and sums of a block of the
    result.

    An operand that is packed once for all rows precedes it, unless the product is a step of a chain
    and so not ``alone``. It is large enough for each of ``sides``.
    """

    batches: Size
    rows: Size
    columns: Size
    depth: Size
    sides: tuple[Sides, ...]
    alone: bool = True
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for all threads of a call, which is what the driver divides.

        Raise ``ValueError`` for a step of a chain, whose blocks depend on the whole product.
        """
        if not self.alone:
            raise ValueError("a step of a chain has no sizes of its own; use most")
        batches, rows, columns, depth = (
            evaluate(size, lengths) for size in (self.batches, self.rows, self.columns, self.depth)
        )
        if 0 in (batches, rows, columns):
            return 0  # the driver returns at once
        return max(
            memory_elements(side.of, problem) * side.of.bytes
            for side in self.sides
            for problem in _problems(side, batches, rows, columns, depth, threads)
        )

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``: blocks have a largest size."""
        sizes = (self.batches, self.rows, self.columns, self.depth)
        if self.alone and all(isinstance(size, int) for size in sizes):
            return self.bytes({}, threads)
        batches, rows, columns, depth = (n if isinstance(n, int) else OPEN_LENGTH for n in sizes)
        return max(
            most * side.of.bytes
            for side in self.sides
            for most in self._bounds(side, rows, columns, batches, depth, threads)
        )

    def _bounds(
        self, side: Sides, rows: int, columns: int, batches: int, depth: int, threads: int
    ) -> Iterator[int]:
        """Yield the most elements for each algorithm that may run."""
        r, c = (columns, rows) if side.turned else (rows, columns)
        yield from self._tiles(side, r, c, batches, depth, threads)
        for most in {*DIRECT_COLUMN_BLOCKS, *DIRECT_DEPTH_BLOCKS}:
            yield _direct(side, min(r, most), c, depth) * threads
            if side.again:
                yield _direct(side, min(c, most), r, depth) * threads
        yield _thin(side.of, depth) * threads

    def _tiles(
        self, side: Sides, rows: int, columns: int, batches: int, depth: int, threads: int
    ) -> Iterator[int]:
        """Yield the most elements for register tiles: operands packed by each thread, or once."""
        of, deep = side.of, min(side.of.depth, _up(depth, 8))
        height = min(ROWS_PER_GROUP, _up(rows, of.row_step))
        left = max(_up(side.band or 0, 64), _up(height * of.line, 64))
        band, own = (0, columns) if side.places is None else side.places
        widest = max(of.packed_columns // threads, of.columns) if self.alone else of.columns
        width = min(widest, _up(own, of.panel))
        high = min(MAX_BLOCK_ROWS, _up(rows, ROWS_PER_GROUP)) if depth > of.depth else height
        panels = max(_up(width * deep, 64), _up(band, 64))
        sums = _sums(of, high, width, depth > of.long_depth)
        yield (left + panels + sums + _staged(side, height, deep, width)) * threads
        deepest = min(depth, of.packed // of.columns)  # all of it is packed at a time
        some = 1 if of.packed_columns < columns < OPEN_LENGTH else batches
        work = 0 if side.band and depth > of.depth else MIN_PACK_FIRST_MULADDS
        if self.alone and rows > ROWS_PER_GROUP and rows * columns * deepest >= work:
            width = min(of.packed_columns, _up(columns, of.panel))
            first = _up(min(width * some * deepest, of.packed), 64)
            left = max(_up(side.band or 0, 64), _up(ROWS_PER_GROUP * of.line, 64))
            each = left + _sums(of, ROWS_PER_GROUP, width, False)
            yield first + (each + _staged(side, ROWS_PER_GROUP, deep, width)) * threads


def _staged(side: Sides, rows: int, deep: int, width: int) -> int:
    """Return the elements of the staging buffers of both operands."""
    left, right = side.staged
    return _up((min(left, rows) + right) * deep + width, 64) if side.packs else 0


def _direct(side: Sides, rows: int, columns: int, depth: int) -> int:
    """Return the most elements for few rows that are multiplied by an operand in place."""
    of = side.of
    width = min(blocks_for(rows, DIRECT_COLUMN_BLOCKS) * of.columns, _up(columns, of.panel))
    most = of.depth * blocks_for(rows, DIRECT_DEPTH_BLOCKS)
    deep = min(max(most, of.vector * MAX_SERIAL_TERMS), _up(depth, 8))
    left = _up(rows * (deep + of.vector), 64)
    height = min(ROWS_PER_GROUP, _up(rows, of.row_step))
    sums = _sums(of, height, width, depth > of.long_stream)
    return left + sums + _staged(side, height, deep, width)


def _thin(of: Shape, depth: int) -> int:
    """Return the most elements for few rows and columns that are packed as lines."""
    deep = min(of.vector * MAX_SERIAL_TERMS, _up(depth, 8))
    lines = min(MAX_THIN_BYTES // of.bytes, 2 * ROWS_PER_GROUP * deep)
    packed = lines + 2 * ROWS_PER_GROUP * of.vector
    sums = _sums(of, ROWS_PER_GROUP, ROWS_PER_GROUP, depth > of.long_depth)
    return 2 * _up(packed, 64) + sums


def _sums(of: Shape, rows: int, width: int, is_long: bool) -> int:
    """Return the elements of a block's sums, with double totals for long sums."""
    one = _up(rows * (width + of.vector), 64)
    return one * (1 + 8 // of.bytes) if is_long else one


@cache
def memory_elements(of: Shape, problem: SizeProblem) -> int:
    """Return the elements that the threads of a product use, and those in front of these."""
    cut = cut_product(of, problem)
    each = cut.left + cut.panels + cut.sums + cut.totals + cut.staged
    packing = cut.packing * problem.threads
    return cut.first + max(each * min(problem.threads, cut.tasks), packing)


def _problems(
    side: Sides, batches: int, rows: int, columns: int, depth: int, threads: int
) -> Iterator[SizeProblem]:
    """Yield what the driver may divide for a product of these sizes."""
    if side.turned:
        rows, columns = columns, rows
    for plan in [side.plan] if side.plan else _possible(side, rows, columns):
        base = replace(
            size_problem(plan, batches, rows, columns, depth, threads),
            packs=side.packs,
            left_staged=side.staged[0],
            right_staged=side.staged[1],
        )
        tiles = base
        if side.band is not None:
            tiles = replace(base, band_rows=side.band_rows, band_size=side.band)
        if plan.way != TILES:
            yield base
        elif side.places is not None:
            size, filled = side.places
            yield replace(tiles, columns=filled, placed=True, places_size=size)
        else:
            yield tiles
            if side.step and base.columns % side.of.vector == 0:
                yield replace(tiles, near_step=side.step)
        keeps = plan.way != THIN and not plan.exchanged and columns >= MIN_PACK_CACHE_COLUMNS
        if keeps and pays(rows):
            yield replace(tiles, direct=BY_TILES, keeps=True)


def _possible(side: Sides, rows: int, columns: int) -> Iterator[ProductPlan]:
    """Yield the plans of which calls choose one."""
    most = max(MAX_DIRECT_ROWS.values())
    yield ProductPlan(TILES)
    for m, exchanged in ((rows, False), (columns, True)):
        if m <= most and (side.again or not exchanged):
            yield ProductPlan(STREAM, exchanged)
            yield ProductPlan(DOTS, exchanged)
    if max(rows, columns) <= ROWS_PER_GROUP and rows * columns <= MAX_THIN_RESULTS:
        yield ProductPlan(THIN)


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
