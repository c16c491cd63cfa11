"""The form of a product's epilogue: the order and the vectors in which its sums are stored."""

from __future__ import annotations

from collections.abc import Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import is_multiple, least_unless_zero
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import as_one
from ...sizes.product_blocks import ROWS_PER_GROUP, Shape
from ..vectors.vectorisable import are_stored
from .multi_index import size
from .product_analysis import ProductAnalysis
from .product_ir import MatrixProduct


@dataclass(frozen=True, slots=True)
class EpilogueForm:
    """How a block of sums is stored.

    ``across`` is True if stores are contiguous along rows. The driver then transposes the block, so
    that a row here is a column of the product. ``rows`` and ``columns`` are collapsed as far as all
    stores allow, by which the loops ``merged`` are gone. If ``filled``, blocks begin and end at
    multiples of the vector length. If ``by_vectors``, vectors of columns are stored. If
    ``continuous``, all sums of a block are stored in one loop.
    """

    across: bool
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    merged: tuple[str, ...]
    filled: bool
    by_vectors: bool
    continuous: bool


def epilogue_form(found: ProductAnalysis) -> EpilogueForm:
    """Return the form of the epilogue of an analysed product."""
    product, of = found.product, found.of
    across, pairs = _is_across(product, of), product.stores_joined
    order = (product.columns, product.rows) if across else (product.rows, product.columns)
    rows, outer_rows = as_one(order[0], pairs)
    columns, outer_columns = as_one(order[1], pairs)
    filled = _is_filled(found, across, columns)
    return EpilogueForm(
        across,
        rows,
        columns,
        (*outer_rows, *outer_columns),
        filled,
        _has_vectors(found, across, columns, filled),
        _run_on(rows, columns, product, of),
    )


def _is_filled(found: ProductAnalysis, across: bool, columns: Sequence[Loop]) -> bool:
    """Return True if blocks are known to begin and end at multiples of the vector length.

    Blocks of a product's columns do so if their innermost loop does, since a panel is a multiple of
    a vector wide; so must the runs of windows. Blocks of rows are a multiple of a tile high, which
    is not a multiple of a vector. They qualify only if all rows are one block: few rows, not read
    as windows.
    """
    vector, places = found.of.vector, found.places
    if not columns or not is_multiple(columns[-1].extent, vector):
        return False
    if not across:
        return places is None or places.run % vector == 0
    rows = size(columns)
    return found.windows is None and isinstance(rows, int) and rows <= ROWS_PER_GROUP


def _has_vectors(
    found: ProductAnalysis, across: bool, columns: Sequence[Loop], filled: bool
) -> bool:
    """Return True if vectors of columns are stored: enough elements fill them, and stores can be
    vectorised.
    """
    product, of = found.product, found.of
    if not columns or columns[-1].extent == 0 or not product.stores:
        return False
    inner = columns[-1]
    if not filled and not (across and least_unless_zero(inner.extent) >= of.vector):
        return False
    loops = (*product.batch, *product.rows, *product.columns, *product.summed)
    depths = Depths({each.name: ROW_DEPTH for each in loops} | {inner.name: ELEMENT_DEPTH}, 0)
    return are_stored(product.stores, inner, depths, of.bytes)


def _is_across(product: MatrixProduct, of: Shape) -> bool:
    """Return True if stores are contiguous along rows and transposing the sums pays off."""
    if product.result is not None or not product.rows:
        return False
    unit, inner = product.store_unit, product.rows[-1]
    if inner.name != unit or any(loop.name == unit for loop in product.columns):
        return False
    if least_unless_zero(inner.extent) >= of.vector:
        return True
    rows, _ = as_one(product.columns, product.stores_joined)
    columns, _ = as_one(product.rows, product.stores_joined)
    return _run_on(rows, columns, product, of)


def _run_on(
    rows: Sequence[Loop], columns: Sequence[Loop], product: MatrixProduct, of: Shape
) -> bool:
    """Return True if rows of fewer columns than a vector are stored one after another."""
    count = size(columns)
    if not (isinstance(count, int) and count < of.vector and len(rows) == 1):
        return False
    return len(columns) == 1 and (rows[0].name, columns[0].name) in product.stores_joined
