"""Products as far as their blocks, scratch memory and time depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.lengths import evaluate
from .product_blocks import Shape
from .product_plan import STREAM, THIN, TILES, ProductPlan, plan_product
from .scratch import Size

BY_TILES, BY_STREAM, BY_DOTS = range(3)  # values of `SizeProblem.direct`


@dataclass(frozen=True, slots=True)
class SizeProblem:
    """A product as far as its blocks depend on it.

    ``columns`` are those of the sums, ``own_columns`` those of the product: runs of windows are
    filled up to vectors. What is a block of a larger product is not ``alone`` and has the sizes of
    that in ``whole_batches``, ``whole_rows`` and ``whole_columns``. ``direct`` says that few rows
    are multiplied by the right operand where it lies: by streams of its rows, or by dot products
    with its columns; these are packed if the product is ``thin``. ``keeps``: a packed copy of the
    right operand lasts. ``near_step`` is the stride of the right operand's summed indices if its
    columns adjoin in whole vectors, else 0. Rows that are windows may be brought into a band, at
    most ``band_rows`` at a time, in ``band_size`` elements; ``band_rows`` is 0 if they are none.
    Columns that are ``placed`` are windows, which have ``places_size`` elements. ``left_staged``
    and ``right_staged`` are the elements of staging buffers for each summed index; ``packs`` if
    there are any.
    """

    batches: int
    rows: int
    columns: int
    own_columns: int
    depth: int
    whole_batches: int
    whole_rows: int
    whole_columns: int
    direct: int
    thin: bool
    alone: bool
    keeps: bool
    near_step: int
    placed: bool
    places_size: int
    band_rows: int
    band_size: int
    packs: bool
    left_staged: int
    right_staged: int
    threads: int


@dataclass(frozen=True, slots=True)
class ProductSizes:
    """The batches, rows, columns and summed indices of a product; ``whole`` has the batches, rows
    and columns of the product of which it is a block, none if it is no block.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    whole: tuple[int, ...] = ()

    def transposed(self) -> ProductSizes:
        """Return the sizes with rows and columns exchanged."""
        whole = (*self.whole[:1], *reversed(self.whole[1:]))
        return ProductSizes(self.batches, self.columns, self.rows, self.depth, whole)


@dataclass(frozen=True, slots=True)
class PlannedProduct:
    """What the form of a product fixes of its blocks; lengths and threads decide the rest.

    ``of`` has the block sizes. If ``turned``, rows and columns are exchanged, and the other fields
    are of the product after that. ``plan`` is None if calls choose. ``left`` and ``right`` are the
    strides of an operand in plain memory, between its lines (rows, columns) and between its summed
    indices; None for another operand. ``plain_result`` is True if sums are stored to memory as they
    are. ``keeps`` is True if a packed copy of the right operand may be cached, ``packs`` if an
    operand has a pack function; ``staged`` are the elements of the staging buffers of both operands
    for each summed index. ``band`` are the elements and rows of a band of row windows, 0 elements
    for windows in place; ``places`` the elements of a band of column windows and the columns of
    their sums. Both are None without windows.
    """

    of: Shape
    turned: bool
    plan: ProductPlan | None
    left: tuple[Size, Size] | None
    right: tuple[Size, Size] | None
    plain_result: bool = True
    keeps: bool = False
    packs: bool = False
    staged: tuple[int, int] = (0, 0)
    band: tuple[int, int] | None = None
    places: tuple[int, int] | None = None

    @property
    def can_exchange(self) -> bool:
        """Return True if the driver may compute the transpose."""
        return self.plain_result and self.left is not None and self.right is not None

    def at(self, lengths: Mapping[str, int]) -> PlannedProduct:
        """Return the product with its strides at the open ``lengths``."""
        left, right = (
            None if steps is None else (evaluate(steps[0], lengths), evaluate(steps[1], lengths))
            for steps in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    def plan_for(self, sizes: ProductSizes) -> ProductPlan:
        """Return the plan for these sizes: that of the form, or the one that the driver chooses.

        Strides are known, and rows and columns in the order of the other fields.
        """
        if self.plan is not None:
            return self.plan
        _, rows, columns = sizes.whole or (sizes.batches, sizes.rows, sizes.columns)
        sides = (self.left, self.right)
        left, right = (None if steps is None else steps[0] == 1 for steps in sides)
        return plan_product(rows, columns, sizes.depth, self.of, left, right, self.plain_result)

    def problem(self, sizes: ProductSizes, threads: int, *, keeps: bool = False) -> SizeProblem:
        """Return the problem that the driver divides into blocks, for sizes as in ``plan_for``.

        ``keeps`` is True if a packed copy of the right operand lasts, which products that the
        driver exchanges do not use.
        """
        plan = self.plan_for(sizes)
        made = sizes.transposed() if plan.exchanged else sizes
        batches, rows, columns = made.whole or (made.batches, made.rows, made.columns)
        right = self.left if plan.exchanged else self.right
        keeps = keeps and not plan.exchanged
        direct = BY_DOTS if plan.way == THIN else BY_TILES
        if not keeps and plan.way not in (THIN, TILES):
            direct = BY_STREAM if plan.way == STREAM else BY_DOTS
        near = 0
        if right is not None and right[0] == 1 and made.columns % self.of.vector == 0:
            near = max(evaluate(right[1], {}), 1)
        places = self.places
        if direct != BY_TILES or keeps or made.whole:
            places = None
        return SizeProblem(
            made.batches,
            made.rows,
            made.columns if places is None else places[1],
            made.columns,
            made.depth,
            batches,
            rows,
            columns,
            direct=direct,
            thin=plan.way == THIN,
            alone=not made.whole,
            keeps=keeps,
            near_step=near,
            placed=places is not None,
            places_size=0 if places is None else places[0],
            band_rows=0 if self.band is None else self.band[1],
            band_size=0 if self.band is None else self.band[0],
            packs=self.packs,
            left_staged=self.staged[0],
            right_staged=self.staged[1],
            threads=threads,
        )
