"""Forms of products: their loops in order, operands, packing trees, algorithm and epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import Contraction
from ...loops.tree import Tree
from ...sizes.product_blocks import MIN_PACK_CACHE_COLUMNS, Shape
from ...sizes.product_plan import DOTS, STREAM, THIN, TILES, ProductPlan
from ...sizes.product_problem import PlannedProduct
from ..sizes.products import pays
from .described_product import describe_product
from .epilogue_form import EpilogueForm, epilogue_form
from .implicit_im2col import Windows, vector_elements
from .multi_index import size
from .operand_views import View
from .orientation import analyse_product, swapped
from .packing_trees import PackingTree
from .product_analysis import ProductAnalysis
from .product_ir import MatrixProduct

SHOWN = {  # the ways of plans in ``explain``
    TILES: "by register tiles",
    STREAM: "by a stream of columns",
    DOTS: "by dot products",
    THIN: "by a few dot products",
}


@dataclass(frozen=True, eq=False, slots=True)
class OperandForm:
    """How a product reads one operand, and packs blocks of it.

    ``view`` is the operand in memory, None if its elements are computed; then packing stages up to
    ``staged`` elements for each summed index. ``windows`` are those that tiles read where they lie.
    ``lines`` is the tree of the function that packs rows, or columns like rows; ``panels`` that of
    the one that packs columns into panels. They are None where nothing calls them.
    """

    view: View | None
    staged: int
    windows: Windows | None
    lines: Tree | None = None
    panels: Tree | None = None

    @property
    def plain(self) -> View | None:
        """Return the view if it has one stride along lines and one along summed indices."""
        return self.view if self.view is not None and self.view.is_plain else None

    def __str__(self) -> str:
        """Return how the operand is read, in a few words."""
        if self.plain is not None:
            return "in memory"
        ways = []
        if self.windows is not None:
            ways.append("windows in place" if self.windows.band is None else "windows in bands")
        if self.lines is not None or self.panels is not None:
            ways.append("packed" if self.view is not None else "computed and packed")
        return " or ".join(ways)


@dataclass(frozen=True, eq=False, slots=True)
class ProductForm:
    """How a product runs with vectors of one width.

    ``of`` has its block sizes. If ``turned``, rows and columns are exchanged; ``rows``, ``columns``
    and ``summed`` are the loops after that, in order. If ``keeps``, caching a packed copy of the
    right operand may pay off. ``result`` is the memory that tiles store to, else there is an
    ``epilogue``. ``plan`` is None if calls choose the algorithm.
    """

    of: Shape
    turned: bool
    keeps: bool
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    left: OperandForm
    right: OperandForm
    result: View | None
    epilogue: EpilogueForm | None
    plan: ProductPlan | None

    @property
    def summary(self) -> str:
        """Return the form as a line of ``explain``."""
        way = "by an algorithm that lengths choose" if self.plan is None else SHOWN[self.plan.way]
        turned = "transposed " if self.turned else ""
        return f"{turned}product {way}; left operand {self.left}, right operand {self.right}"

    @property
    def planned(self) -> PlannedProduct:
        """Return what the blocks, scratch memory and time of the product depend on."""
        left, right, places = self.left.plain, self.right.plain, self.right.windows
        windows = self.left.windows if left is None else None
        trees = (self.left.lines, self.right.lines, self.right.panels)
        placed = None
        if places is not None:
            placed = places.elements, places.runs * vector_elements(places.run, self.of)
        return PlannedProduct(
            self.of,
            self.turned,
            self.plan,
            None if left is None else (left.line_step, left.summed_step),
            None if right is None else (right.line_step, right.summed_step),
            self.result is not None,
            self.keeps,
            any(tree is not None for tree in trees),
            (self.left.staged, self.right.staged),
            None if windows is None else (windows.elements, windows.most),
            placed,
        )

    def oriented(self, product: MatrixProduct) -> MatrixProduct:
        """Return a product of this form with its operands and loops in order."""
        made = swapped(product) if self.turned else product
        kept = product.kept and self.keeps
        return replace(made, rows=self.rows, columns=self.columns, summed=self.summed, kept=kept)


def product_forms(
    work: Contraction, vector_bytes: int, whole: tuple[Size, ...] = ()
) -> tuple[ProductForm, ...]:
    """Return the forms of the pieces of a contraction, or of itself.

    ``whole`` are the sizes of the full contraction of which ``work`` is a block.
    """
    return tuple([
        product_form(describe_product(part, whole), vector_bytes, work.operands)
        for part in work.pieces or (work,)
    ])  # fmt: skip


def product_form(product: MatrixProduct, vector_bytes: int, operands: Sequence[Op]) -> ProductForm:
    """Return the form of a product on a processor with vectors of ``vector_bytes``.

    ``operands`` are those of its kernel. ``ValueError`` if vectors have another width.
    """
    product = replace(product, kept=True)
    found = analyse_product(product, vector_bytes)
    made, of = found.product, found.of
    return ProductForm(
        of,
        made.left is product.right,
        made.kept and may_keep(found),
        made.rows,
        made.columns,
        made.summed,
        _left(found, operands),
        _right(found, operands),
        found.result,
        None if found.result is not None else epilogue_form(found),
        found.plan,
    )


def may_keep(found: ProductAnalysis) -> bool:
    """Return True if caching a packed copy of the right operand may pay off, for open lengths too.

    Columns that are windows are not packed, and the operands of a block are those of a larger
    product.
    """
    product = found.product
    rows, columns = size(product.rows), size(product.columns)
    if found.is_placed or product.whole or (isinstance(rows, int) and not pays(rows)):
        return False
    return not isinstance(columns, int) or columns >= MIN_PACK_CACHE_COLUMNS


def _left(found: ProductAnalysis, operands: Sequence[Op]) -> OperandForm:
    """Return the form of the left operand."""
    packing, lines = found.left, None
    if packing.plain is None and not found.is_shown:
        lines = PackingTree(packing, operands).left()
    return OperandForm(packing.view, packing.staged(True), found.windows, lines)


def _right(found: ProductAnalysis, operands: Sequence[Op]) -> OperandForm:
    """Return the form of the right operand: packed as lines in few dot products, else as panels."""
    packing, thin = found.right, found.thin
    lines = panels = None
    if packing.plain is None and not found.is_placed:
        if thin is not False:
            lines = PackingTree(packing, operands).left()
        if not thin:
            panels = PackingTree(packing, operands).panels()
    return OperandForm(packing.view, packing.staged(False), found.places, lines, panels)
