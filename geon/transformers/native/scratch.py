"""What scratch memory native kernels work in: sorts, products, rows that several passes share."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ...op_graph.affine import Size
from ...op_graph.dtypes import name_of
from ...op_graph.lengths import Length, evaluate, product
from ...op_graph.op_graph import Op
from ..kernels.blocked import Blocked, Cut
from ..kernels.contraction import Contraction, bordered, unit_of
from ..kernels.lower import Work
from ..kernels.ordered import OrderedLoop
from ..kernels.types import Nest, Region
from ..lowering.schedule import Schedule
from ..lowering.scratch import PerThread, Scratch, lines
from ..printing.c_expressions import C_TYPES
from .nest_tasks import scratch_each
from .prefix import PREFIXES, prefix_scratch
from .product_bands import find_band
from .product_shape import (
    BAND_PACKED_BYTES,
    CHAIN,
    FEW,
    GROUP,
    KEPT_ROWS,
    MOST_ROWS,
    NEAR,
    PACKED_WORK,
    PANEL,
    STREAM_ROWS,
    THIN,
    THIN_BYTES,
    Shape,
    shape,
)
from .product_sides import Sides, contraction_sides, unknown
from .product_walk import last
from .scattering import scatter_scratch
from .sorting import SORTS, SortScratch

WIDEST = 64  # bytes of the widest vectors, whose blocks take most


def scratch_of(schedule: Schedule) -> dict[Op, Scratch]:
    """The scratch memory of a schedule's kernels, by their op."""
    found: dict[Op, Scratch] = {}
    products: dict[Hashable, Scratch | None] = {}
    for kernel in schedule.kernels:
        scratch = _alike(kernel.work, products)
        if scratch is not None:
            found[kernel.op] = scratch
    return found


def _alike(work: Work, products: dict[Hashable, Scratch | None]) -> Scratch | None:
    """That of a kernel; ``products`` has those of products, which need the same where they differ
    in their operands alone, as ``alike`` lowers them: it takes long to find.
    """
    if not isinstance(work, Contraction):
        return _of(work)
    key = (work.left, work.right, work.stores)
    if key not in products:
        products[key] = _of(work)
    return products[key]


def _of(work: Work) -> Scratch | None:
    if isinstance(work, Contraction):
        parts = tuple([product_scratch(piece) for piece in work.pieces])
        return OneOf(parts) if parts else product_scratch(work)
    if isinstance(work, Blocked):
        return blocked_scratch(work)
    if isinstance(work, Nest):
        return _of_rows(work)
    if isinstance(work, Region | OrderedLoop):
        return None  # that of its body's kernels is among the buffers of their plan
    name = work.op.primitive.name
    if name in PREFIXES:
        return prefix_scratch(work.op)
    if name == "scatter":
        return scatter_scratch(work.op)
    return _of_sort(work.op) if name in SORTS else None


def _of_sort(op: Op) -> SortScratch:
    """What the lines that are sorted at one time need."""
    x = op.args[0]
    at = x.axes.index(op.attrs[0])
    lengths = x.axes.lengths
    k = op.attrs[1] if op.primitive.name == "top_k" else lengths[at]
    sizes = (product(lengths[:at]), lengths[at], product(lengths[at + 1 :]))
    return SortScratch(op.primitive.name, name_of(x.dtype), sizes, k)


# Rows ---------------------------------------------------------------------------------------------


def _of_rows(nest: Nest) -> Scratch | None:
    """The arrays of a row that do not lie on the stack."""
    each = scratch_each(nest)
    rows = product(loop.extent for loop in nest.rows)
    return None if isinstance(each, int) and each == 0 else PerThread(each, rows)


# Chains -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockedScratch:
    """What each thread of a chain works in: what its steps hand on for one block, then the
    ``packed`` bytes of its products, then the arrays of rows of its nests.
    """

    cut: Cut
    packed: int
    arrays: Size
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes of all parts for a call on so many threads."""
        each = self.cut.bytes(lengths) + self.packed + evaluate(self.arrays, lengths)
        return each * max(1, min(threads, self.cut.blocks(lengths)))

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        return (self.cut.most() + self.packed + self.arrays) * threads


def blocked_scratch(work: Blocked) -> BlockedScratch:
    """The scratch memory of a chain."""
    packed = 0
    arrays: Size = 0
    for step in work.steps:
        if isinstance(step, Contraction):
            most = lines(product_scratch(step, alone=False).most(1))
            assert isinstance(most, int)  # blocks of a product have a largest size
            packed = max(packed, most)
        elif isinstance(step, Nest):
            arrays = arrays + scratch_each(step)
    return BlockedScratch(work.cut, packed, arrays)


# Products -----------------------------------------------------------------------------------------


def product_scratch(work: Contraction, alone: bool = True) -> ProductScratch:
    """The scratch memory of a contraction, a step of a chain unless it is ``alone``."""
    parts = (work.batch, work.rows, work.columns, work.summed)
    batches, rows, columns, depth = (product(loop.extent for loop in each) for each in parts)
    of = shape(C_TYPES[name_of(work.dtype)], WIDEST)
    found = contraction_sides(work) if alone else unknown(_band(work, of))
    return ProductScratch(batches, rows, columns, depth, of, alone, found)


def _band(work: Contraction, of: Shape) -> int | None:
    """The most elements of a band of either operand; None where neither has one."""
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    most = None
    for value, own in ((work.left, work.rows), (work.right, work.columns)):
        found = bordered(value, loops)
        if found is None or not found.guards:
            continue
        rows = last(own, unit_of(value, loops))
        band = find_band(found.strides, found.guards, rows, work.summed, of)
        if band is not None:
            most = max(most or 0, band.elements)
    return most


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
