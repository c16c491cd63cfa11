"""Scratch memory of products, in bytes: blocks of threads, and cached packed operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import evaluate
from ...sizes.limits import MAX_LENGTH
from ...sizes.product_blocks import (
    DIRECT_COLUMN_BLOCKS,
    DIRECT_DEPTH_BLOCKS,
    MAX_BLOCK_ROWS,
    MAX_PACK_CACHE_ROWS,
    MAX_SERIAL_TERMS,
    MAX_THIN_BYTES,
    MIN_PACK_CACHE_ROWS,
    MIN_PACK_FIRST_MULADDS,
    ROWS_PER_GROUP,
    Shape,
    blocks_for,
)
from ...sizes.product_cut import cut_product
from ...sizes.product_problem import PlannedProduct, ProductSizes, SizeProblem
from ...sizes.scratch import Size

OPEN_LENGTH = MAX_LENGTH  # stands for an open length in bounds of memory


@dataclass(frozen=True, slots=True)
class ProductScratch:
    """The scratch memory of the threads of a product: packed blocks, and sums of a block of the
    result.

    An operand that is packed once for all rows precedes it, unless the product is a block of the
    one whose batches, rows and columns are ``whole``.
    """

    batches: Size
    rows: Size
    columns: Size
    depth: Size
    product: PlannedProduct
    whole: tuple[Size, ...] = ()
    lasting: bool = True

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """Return the bytes for all threads of a call, which is what the driver divides."""
        elements = (memory_elements(self.product.of, p) for p in self.problems(lengths, threads))
        return max(elements, default=0) * self.product.of.bytes

    def problems(self, lengths: Mapping[str, int], threads: int) -> Iterator[SizeProblem]:
        """Yield what the driver may divide: with and without a packed copy that lasts.

        There is nothing to divide without results.
        """
        sizes = (self.batches, self.rows, self.columns, self.depth)
        batches, rows, columns, depth = (evaluate(size, lengths) for size in sizes)
        if 0 in (batches, rows, columns):
            return
        whole = tuple([evaluate(size, lengths) for size in self.whole])
        made, product = ProductSizes(batches, rows, columns, depth, whole), self.product.at(lengths)
        if product.turned:
            made = made.transposed()
        yield product.problem(made, threads)
        if product.keeps and pays(made.rows):
            yield product.problem(made, threads, keeps=True)

    def most(self, threads: int) -> Size:
        """Return an upper bound of ``bytes``: blocks have a largest size."""
        try:
            return self.bytes({}, threads)
        except KeyError:  # an open length
            sizes = (self.batches, self.rows, self.columns, self.depth)
            b, r, c, d = (size if isinstance(size, int) else OPEN_LENGTH for size in sizes)
            return self.bound(b, r, c, d, threads)

    def bound(self, batches: int, rows: int, columns: int, depth: int, threads: int) -> int:
        """Return the most bytes of any algorithm, for up to so many indices each."""
        product = self.product
        if product.turned:
            rows, columns = columns, rows
        found = [*self._tiles(rows, columns, batches, depth, threads)]
        for most in {*DIRECT_COLUMN_BLOCKS, *DIRECT_DEPTH_BLOCKS}:
            if product.right is not None:
                found.append(self._direct(min(rows, most), columns, depth) * threads)
            if product.can_exchange:
                found.append(self._direct(min(columns, most), rows, depth) * threads)
        found.append(_thin(product.of, depth) * threads)
        return max(found) * product.of.bytes

    def _tiles(
        self, rows: int, columns: int, batches: int, depth: int, threads: int
    ) -> Iterator[int]:
        """Yield the most elements for register tiles: operands packed by each thread, or once."""
        of, deep = self.product.of, min(self.product.of.depth, _up(depth, 8))
        height, band = min(ROWS_PER_GROUP, _up(rows, of.row_step)), (self.product.band or (0,))[0]
        left = max(_up(band, 64), _up(height * of.line, 64))
        places, own = self.product.places or (0, columns)
        widest = of.columns if self.whole else max(of.packed_columns // threads, of.columns)
        width = min(widest, _up(own, of.panel))
        high = min(MAX_BLOCK_ROWS, _up(rows, ROWS_PER_GROUP)) if depth > of.depth else height
        panels = max(_up(width * deep, 64), _up(places, 64))
        sums = _sums(of, high, width, depth > of.long_depth)
        yield (left + panels + sums + self._staged(height, deep, width)) * threads
        deepest = min(depth, of.packed // of.columns)  # all of it is packed at a time
        some = 1 if of.packed_columns < columns < OPEN_LENGTH else batches
        work = 0 if band and depth > of.depth else MIN_PACK_FIRST_MULADDS
        if not self.whole and rows > ROWS_PER_GROUP and rows * columns * deepest >= work:
            width = min(of.packed_columns, _up(columns, of.panel))
            first = _up(min(width * some * deepest, of.packed), 64)
            left = max(_up(band, 64), _up(ROWS_PER_GROUP * of.line, 64))
            each = left + _sums(of, ROWS_PER_GROUP, width, False)
            yield first + (each + self._staged(ROWS_PER_GROUP, deep, width)) * threads

    def _direct(self, rows: int, columns: int, depth: int) -> int:
        """Return the most elements for few rows that are multiplied by an operand in place."""
        of = self.product.of
        width = min(blocks_for(rows, DIRECT_COLUMN_BLOCKS) * of.columns, _up(columns, of.panel))
        most = of.depth * blocks_for(rows, DIRECT_DEPTH_BLOCKS)
        deep = min(max(most, of.vector * MAX_SERIAL_TERMS), _up(depth, 8))
        left = _up(rows * (deep + of.vector), 64)
        height = min(ROWS_PER_GROUP, _up(rows, of.row_step))
        sums = _sums(of, height, width, depth > of.long_stream)
        return left + sums + self._staged(height, deep, width)

    def _staged(self, rows: int, deep: int, width: int) -> int:
        """Return the elements of the staging buffers of both operands."""
        left, right = self.product.staged
        return _up((min(left, rows) + right) * deep + width, 64) if self.product.packs else 0


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
