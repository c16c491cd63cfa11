"""Memory of products, in bytes: blocks that threads work in, and packed copies that are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.lengths import Length, evaluate
from ...sizes.scratch import Size
from ..sizes.blocking import (
    BAND_PACKED_BYTES,
    CHAIN,
    FEW,
    GROUP,
    KEPT_FROM,
    KEPT_ROWS,
    MOST_ROWS,
    NEAR,
    PACKED_WORK,
    PANEL,
    STREAM_ROWS,
    THIN,
    THIN_BYTES,
    Shape,
)


@dataclass(frozen=True, slots=True)
class Sides:
    """Operands as a product's text has them: rows and columns are ``turned``, or as they were, and
    the driver may exchange them ``again``.

    Rows are windows in a ``band`` of so many elements, or of none where they are read in place.
    Packing works in ``staged`` elements of either side for each summed index; without ``packs``
    neither is packed by a function of its own. ``step`` is the distance of a right operand's summed
    indices, if its columns may adjoin, and 0 otherwise. Of columns that are windows ``places`` are
    the elements of their band, and how many of them sums have. What is not ``known`` is the most
    there is.
    """

    turned: bool
    again: bool = True
    band: int | None = None
    staged: tuple[int, int] = (GROUP, PANEL)
    packs: bool = True
    step: int = 1
    places: tuple[int, int] | None = None
    known: bool = False


def unknown(band: int | None = None) -> tuple[Sides, ...]:
    """Of a product of which no more is known than the band that either operand may have."""
    return Sides(False, band=band), Sides(True, band=band)


@dataclass(frozen=True, slots=True)
class ProductScratch:
    """What each thread of a product works in: packed blocks, and sums of a block of the result.

    Before these lies what is packed once for all rows, unless the product is a step of a chain and
    not ``alone``. There is room for any of the ``sides`` that its text may have.

    ``c/product.c`` cuts the product up, and takes no more than is said here.
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
        """The bytes of all parts for a call on so many threads."""
        batches, rows, columns, depth = (
            evaluate(size, lengths) for size in (self.batches, self.rows, self.columns, self.depth)
        )
        results = max(max(rows, STREAM_ROWS) * columns, rows * max(columns, STREAM_ROWS))
        tasks = int(float(batches) * results * (depth + 4) / 2e5) + 1
        count = min(threads, tasks)
        sizes = (rows, columns, batches, depth, count, threads)
        return max(self._all(side, *sizes) for side in self.sides)

    def most(self, threads: int) -> int | Length:
        """Never less than ``bytes``: blocks have a largest size."""
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
        """The bytes of the parts of so many threads of all, for the way of computing that takes
        most.
        """
        if side.turned:
            rows, columns = columns, rows
        first = self._packs_first(side, rows, columns, depth, open)
        ways = []
        later = side.places is not None or self._packs_later(side, rows, depth)
        if open or not first or later:
            ways += [self._packed(side, rows, columns, depth, n) * n for n in range(1, threads + 1)]
        if rows <= max(FEW.values()):
            ways.append(self._direct(side, rows, columns, depth) * threads)
        if side.again and columns <= max(FEW.values()):
            ways.append(self._direct(side, columns, rows, depth) * threads)
        if rows <= GROUP and columns <= GROUP and rows * columns <= THIN:
            ways.append(self._thin(rows, columns, depth) * threads)
        if first:
            each = self._group(side, columns, depth)
            room = self.of.packed if open else self._room(side, rows, depth, all_threads)
            ways.append(self._first(batches, columns, depth, room) + each * threads)
        return max(ways) * self.of.bytes

    def _packs_first(self, side: Sides, rows: int, columns: int, depth: int, open: bool) -> bool:
        """Whether the right operand may be packed once for all rows."""
        least = 0 if side.band and depth > self.of.depth else PACKED_WORK
        large = rows > GROUP and rows * columns * depth >= least
        # One that is larger than all else is not; of open lengths nobody knows.
        wide = not open and depth * columns > rows * (depth + columns)
        return self.alone and large and not wide and depth * self.of.columns <= self.of.packed

    def _packs_later(self, side: Sides, rows: int, depth: int) -> bool:
        """Whether blocks may still be packed by each task: where a copy of the right operand may be
        kept, or that one may be read where it lies.
        """
        if not side.known or rows <= KEPT_ROWS:
            return True
        block = min(depth, self.of.depth // 2)  # or more: blocks of summed indices are shares
        return 0 < block * side.step * self.of.bytes <= NEAR

    def _room(self, side: Sides, rows: int, depth: int, threads: int) -> int:
        """The most elements of a right operand that is packed once: few columns where bands are
        multiplied by it, whose rows alone are tasks enough.
        """
        wanted = 2 * threads if threads > 1 else 1
        if not (side.known and side.band and depth > self.of.depth) or -(-rows // GROUP) < wanted:
            return self.of.packed
        return max(BAND_PACKED_BYTES // self.of.bytes, 2 * PANEL * depth)

    def _first(self, batches: int, columns: int, depth: int, room: int) -> int:
        """Elements of the right operand that is packed once: some columns, or some batches."""
        most, width = self.of.packed_columns, _up(columns, self.of.panel)
        elements = width * batches * depth if width <= most else most * depth
        return _up(min(elements, room), 64)

    def _group(self, side: Sides, columns: int, depth: int) -> int:
        """Elements of a group of rows and its sums, where columns are packed for all rows."""
        width = min(self.of.packed_columns, _up(columns, self.of.panel))
        sums = _up(GROUP * (width + self.of.vector), 64)
        deep = min(self.of.depth, _up(depth, 8))
        left = self._left(side, GROUP, True)
        return left + sums + self._staged(side, GROUP, deep, width)

    def _left(self, side: Sides, height: int, shows: bool) -> int:
        """Elements of rows: packed, or in the band of what they show, if it ``shows`` at all."""
        band, packed = _up(side.band or 0, 64), _up(height * self.of.line, 64)
        return band if shows and side.known and side.band is not None else max(band, packed)

    def _staged(self, side: Sides, rows: int, deep: int, width: int) -> int:
        """Elements of both operands before they are packed."""
        left, right = side.staged
        return _up((min(left, rows) + right) * deep + width, 64) if side.packs else 0

    def _packed(self, side: Sides, rows: int, columns: int, depth: int, threads: int) -> int:
        """Elements of blocks that one of so many threads packs and multiplies by tiles."""
        of = self.of
        band, columns = (0, columns) if side.places is None else side.places
        widest = max(of.packed_columns // threads, of.columns) if self.alone else of.columns
        width = min(widest, _up(columns, of.panel))
        deep = min(of.depth, _up(depth, 8))
        height = min(GROUP, _up(rows, 12))
        groups = math.ceil(min(MOST_ROWS, _up(rows, 12)) / GROUP) if depth > of.depth else 1
        return (
            self._left(side, height, depth <= of.depth)
            + max(_up(width * deep, 64), _up(band, 64))
            + self._sums(groups * GROUP if groups > 1 else height, width, depth > of.long_depth)
            + self._staged(side, height, deep, width)
        )

    def _direct(self, side: Sides, rows: int, columns: int, depth: int) -> int:
        """Elements where few rows are multiplied by an operand that is read where it lies."""
        of = self.of
        width = min((8 if rows <= 8 else 2) * of.columns, _up(columns, of.panel))
        most = of.depth * (32 if rows <= 4 else 10 if rows <= 16 else 1)
        deep = min(max(most, of.vector * CHAIN), _up(depth, 8))
        left = _up(rows * (deep + of.vector), 64)
        height = min(GROUP, _up(rows, 12))
        sums = self._sums(height, width, depth > of.long_stream)
        return left + sums + self._staged(side, height, deep, width)

    def _thin(self, rows: int, columns: int, depth: int) -> int:
        """Elements where few rows and few columns are packed as lines."""
        of, sides = self.of, rows + columns
        most = THIN_BYTES // of.bytes // max(sides, 1)
        deep = min(of.vector * CHAIN, most, _up(depth, 8)) + 8
        packed = _up(rows * (deep + of.vector), 64) + _up(columns * (deep + of.vector), 64)
        width = _up(columns, of.panel)
        sums = self._sums(_up(rows, 12), width, depth > of.long_depth)
        return packed + sums + _up(sides * deep + width, 64)

    def _sums(self, rows: int, width: int, is_long: bool) -> int:
        """Sums of a block, and where sums are long their totals in double."""
        one = _up(rows * (width + self.of.vector), 64)
        return one * (1 + 8 // self.of.bytes) if is_long else one


@dataclass(frozen=True, slots=True)
class OneOf:
    """What products that run one after another work in: as much as the largest takes."""

    parts: tuple[ProductScratch, ...]
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""
        return max(part.bytes(lengths, threads) for part in self.parts)

    def most(self, threads: int) -> Size:
        """Never less than ``bytes``."""
        known = [part.most(threads) for part in self.parts]
        return max(size for size in known if isinstance(size, int))


def _up(number: int, step: int) -> int:
    return max(step, -(-number // step) * step)


@dataclass(frozen=True, slots=True)
class PackedCopy:
    """The packed copy of a product's operand: ``size`` bytes, where it has that many ``rows``.

    ``constant`` says that no variable enters it.
    """

    size: Size
    rows: Size
    constant: bool

    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int = 1) -> int:
        """The bytes of the copy under ``lengths``: none where packing costs little, or nothing."""
        return evaluate(self.size, lengths) if pays(evaluate(self.rows, lengths)) else 0

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        return self.size


def pays(rows: int) -> bool:
    """Whether a product of so many rows is worth a copy.

    Fewer rows read the operand where it lies; of more, packing is a small part.
    """
    return KEPT_FROM <= rows <= KEPT_ROWS
