"""Orient a product: choose its left operand, the order of its loops, and the width of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...kernels.ir.nest import Loop
from ...sizes.product_blocks import (
    MAX_TRANSPOSED_COLUMNS,
    MIN_HALF_VECTOR_MULADDS,
    MIN_UNPACKED_STRIDE_BYTES,
    SIZES,
    Shape,
    half_vector_shape,
    shape,
)
from .multi_index import last, size
from .product_analysis import ProductAnalysis
from .product_ir import MatrixProduct


def analyse_product(product: MatrixProduct, vector_bytes: int) -> ProductAnalysis:
    """Return the analysis of a product as it is oriented on a processor with vectors of
    ``vector_bytes``.

    If the columns are known to fill at most half a vector, vectors are half as wide: processors run
    these at least as fast, and the other half would be unused.
    """
    of = shape(product.type, vector_bytes)
    half = half_vector_shape(of)
    made = orient_product(product, of)
    found = ProductAnalysis(made, of)
    columns = made.whole[2] if made.whole else size(made.columns)
    if half is None or not isinstance(columns, int) or columns > half.vector:
        return found
    sizes = [size(loops) for loops in (made.batch, made.rows, made.columns, made.summed)]
    small = all(isinstance(n, int) for n in sizes) and math.prod(sizes) < MIN_HALF_VECTOR_MULADDS
    if small or found.thin:
        return found
    return ProductAnalysis(orient_product(product, half), half)


def swapped(product: MatrixProduct) -> MatrixProduct:
    """Return the transposed product, which computes the same values."""
    return replace(
        product,
        rows=product.columns,
        columns=product.rows,
        left=product.right,
        right=product.left,
        whole=(*product.whole[:1], *reversed(product.whole[1:])),
    )


def _ordered(product: MatrixProduct, of: Shape) -> MatrixProduct:
    """Return the product with each group's contiguous loop innermost.

    If a padded operand has a summed loop without padding, that is innermost instead, unless columns
    are windows that tiles read in place.
    """
    left, right = product.left.unit, product.right.unit
    made = replace(
        product,
        rows=last(product.rows, left),
        columns=last(product.columns, product.store_unit, right),
        summed=last(product.summed, left, right),
    )
    free = _free(product)
    if free is None or ProductAnalysis(made, of).places is not None:
        return made
    return replace(made, summed=last(product.summed, left, right, free))


def _free(product: MatrixProduct) -> str | None:
    """Return a summed loop that no guard depends on, along which a run is inside or outside as a
    whole.

    Return None if its stride is at least `APART` bytes: contiguous lines are then cheaper, although
    padding cuts them.
    """
    bordered = [each for each in (product.left, product.right) if each.border is not None]
    inside = {name for each in bordered if each.border is not None for name in each.border.loops}
    free = [d.name for d in product.summed if d.name not in inside]
    if not bordered or not free:
        return None
    far = [each.strides.get(free[-1], 0) for each in bordered]
    apart = any(
        isinstance(n, int) and n * SIZES[product.type] >= MIN_UNPACKED_STRIDE_BYTES for n in far
    )
    return None if apart else free[-1]


def _is_small(loops: Sequence[Loop], of: Shape) -> bool:
    """Return True if the loops are known to have fewer indices than a panel has columns."""
    count = size(loops)
    return isinstance(count, int) and count < of.panel


def orient_product(product: MatrixProduct, of: Shape) -> MatrixProduct:
    """Return the product or its transpose, with stores along columns, or few rows for many columns.

    A product of few columns is transposed if its rows then stream along the left operand's memory.
    Otherwise the rows become dot products in vector lanes, which pays off only for a large depth. A
    computed left operand is packed in its contiguous order, so that tiles of few rows run along it.
    The driver transposes a product whose few columns are known only at run time, unless it has a
    `store`, whose text has a fixed order of rows and columns. A product that is transposed for
    another reason than its stores caches no packed operand: the planned copy is of the other
    operand.
    """
    if any(d.name == product.store_unit for d in product.rows):
        product = swapped(product)
    columns = size(product.columns)
    few = isinstance(columns, int) and columns <= of.vector
    if isinstance(columns, int) and few and not ProductAnalysis(product, of).thin:
        turned = _ordered(swapped(product), of)
        streams = any(loop.name == product.left.unit for loop in product.rows)
        packed = streams and product.left.pointer is None and columns <= MAX_TRANSPOSED_COLUMNS
        if (packed or ProductAnalysis(turned, of).may_read_in_place()) and not _is_small(
            product.rows, of
        ):
            return replace(turned, kept=False)
    if _turns_more(product, of):
        return replace(_ordered(swapped(product), of), kept=False)
    return _ordered(product, of)


def _turns_more(product: MatrixProduct, of: Shape) -> bool:
    """Return True if both operands are contiguous along lines and the left one has more lines.

    Rows are packed again for each block of columns, so the operand with fewer lines should be the
    left one. Plain operands are not transposed, nor are short sums, as their results would then be
    transposed when they are stored.
    """
    ordered = _ordered(product, of)
    rows, columns, depth = map(size, (product.rows, product.columns, product.summed))
    if isinstance(depth, int) and isinstance(rows, int) and depth <= rows:
        return False
    along = ordered.rows and ordered.rows[-1].name == product.left.unit
    both = along and any(d.name == product.right.unit for d in product.columns)
    more = isinstance(rows, int) and isinstance(columns, int) and rows > columns
    return bool(both and more and ProductAnalysis(ordered, of).left.plain is None)
