"""Analyse one product: how its operands lie in memory, and the algorithm for its lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import least_unless_zero
from ...kernels.ir.nest import Loop
from ...sizes.product_blocks import (
    MAX_WINDOW_RUNS,
    PACKING_CYCLES_PER_ELEMENT,
    ROWS_PER_GROUP,
    Shape,
)
from ...sizes.product_plan import ProductPlan, is_thin, may_read_in_place, plan_product
from .implicit_im2col import (
    Windows,
    are_known,
    contiguous_run,
    depth_of,
    find_band,
    has_long_runs,
    overlap,
    vector_elements,
)
from .multi_index import size
from .operand_views import Operand, View, view
from .packing import Packing
from .product_ir import MatrixProduct


class ProductAnalysis:
    """What a product of the shape ``of``, whose loops have this order, may use."""

    def __init__(self, product: MatrixProduct, of: Shape) -> None:
        self.product, self.of = product, of
        batch, summed = product.batch, product.summed
        self.left = Packing(product.left, of, batch, product.rows, summed)
        self.right = Packing(product.right, of, batch, product.columns, summed)
        self.result = self.plain_result()

    def plain_result(self) -> View | None:
        """Return the result's view if sums are stored to plain memory in vectors, or None.

        Tiles store vectors directly if columns are contiguous, transposed ones if rows are.
        """
        product = self.product
        if product.result is None:
            return None
        found = view(product.result, self.of.type, product.batch, product.rows, product.columns)
        return found if found is not None and found.is_plain else None

    def may_read_in_place(self) -> bool:
        """Return True if few rows may be multiplied by the right operand where it lies."""
        found, product = self.right.plain, self.product
        rows, columns, depth = map(size, (product.rows, product.columns, product.summed))
        return found is not None and may_read_in_place(
            rows, columns, depth, self.of, found.line_step == 1
        )

    @cached_property
    def plan(self) -> ProductPlan | None:
        """Return the plan, None if lengths are open or if the product is a block of another."""
        product = self.product
        sizes = [size(loops) for loops in (product.rows, product.columns, product.summed)]
        plain = [found for found in (self.left.plain, self.right.plain) if found is not None]
        steps = [step for found in plain for step in (found.line_step, found.summed_step)]
        if product.whole or not all(isinstance(each, int) for each in (*sizes, *steps)):
            return None
        rows, columns, depth = map(int, sizes)
        sides = (self.left.plain, self.right.plain)
        left, right = (None if found is None else found.line_step == 1 for found in sides)
        return plan_product(rows, columns, depth, self.of, left, right, self.result is not None)

    @cached_property
    def thin(self) -> bool | None:
        """Return True if the product is a few dot products, None if that is open."""
        product = self.product
        own = (product.batch, product.rows, product.columns)
        _, rows, columns = product.whole or map(size, own)
        return is_thin(rows, columns, size(product.summed), self.of)

    @cached_property
    def windows(self) -> Windows | None:
        """Return the left operand as overlapping windows that tiles read in place, or None."""
        product = self.product
        if self.left.view is None or not product.rows or not are_known(product.summed):
            return None
        found = self.windows_of(product.left, product.rows, product.summed)
        served = found is not None and has_long_runs(depth_of(product.summed), found.run)
        return found if served else None

    @cached_property
    def places(self) -> Windows | None:
        """Return the right operand as windows at the offset of each summed index, or None.

        The left operand must be plain memory with contiguous rows.
        """
        product, operand = self.product, self.product.right
        places, columns, rows = product.summed, product.columns, self.left.plain
        if self.right.view is None or self.right.plain is not None or not are_known(columns):
            return None
        if rows is None or rows.line_step != 1 or not places or not columns:
            return None
        if operand.border is None and not overlap(operand.strides, places, columns):
            return None
        found = self.windows_of(operand, places, columns, self.of.depth)
        if found is None or not self.are_placed(found):
            return None
        beyond = 0 if found.band is None else vector_elements(found.run, self.of) - found.run
        return replace(found, beyond=beyond)

    def windows_of(
        self,
        operand: Operand,
        rows: tuple[Loop, ...],
        summed: tuple[Loop, ...],
        most: int | None = None,
    ) -> Windows | None:
        """Return an operand as windows of ``rows``, at most ``most`` at a time; None if a band is
        too large.
        """
        band = None
        steps: Mapping[str, Size | None] = operand.strides
        if operand.border is not None:
            band = find_band(operand.strides, operand.border.guards, rows, summed, self.of, most)
            if band is None:
                return None
            steps = band.known_steps
        run = contiguous_run(summed, {loop.name: steps.get(loop.name, 0) for loop in summed})
        return Windows(band, depth_of(summed) // run, run)

    def are_placed(self, found: Windows) -> bool:
        """Return True if reading columns as windows is better than packing them.

        Vectors that read past the ends of runs compute unused products in each row. Past the end of
        a band there is memory to read, past the end of an operand there may be none.
        """
        runs, run, vector, rows = found.runs, found.run, self.of.vector, size(self.product.rows)
        columns = runs * run
        more = runs * vector_elements(run, self.of) - vector_elements(columns, self.of)
        if columns < vector or runs > MAX_WINDOW_RUNS or (run % vector and found.band is None):
            return False
        return more == 0 or (
            isinstance(rows, int)
            and more * rows <= PACKING_CYCLES_PER_ELEMENT * columns * 2 * vector
        )

    @cached_property
    def is_placed(self) -> bool:
        """Return True if columns are always read as windows, so that nothing packs them."""
        return self.thin is False and not self.product.whole and self.places is not None

    @property
    def is_shown(self) -> bool:
        """Return True if rows are always read as windows: of few elements, in several groups."""
        rows, depth = least_unless_zero(size(self.product.rows)), size(self.product.summed)
        shallow = isinstance(depth, int) and depth <= self.of.depth
        several = rows > ROWS_PER_GROUP and not self.product.whole
        return shallow and several and self.windows is not None
