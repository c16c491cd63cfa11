"""Plan the operands of a product, as scratch memory needs it: orientation, packing and windows."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.index_uses import Uses, collapsible_pairs
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Scalar
from ...kernels.products.contraction import Contraction, padded_access, result_access, unit_of
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.product_blocks import MAX_BAND_ROWS, Shape, all_shapes
from ..sizes.products import Sides
from .descriptor import ProductText
from .implicit_im2col import vector_elements
from .operand_views import Border, Operand
from .product_ir import MatrixProduct
from .product_text import orient_product


def sides(product: MatrixProduct) -> tuple[Sides, ...]:
    """Return the operand plans of a product, one for each width of vectors."""
    shapes = all_shapes(product.type)
    return tuple([_sides(product, orient_product(product, of), of) for of in shapes])


def _sides(product: MatrixProduct, made: MatrixProduct, of: Shape) -> Sides:
    text = ProductText(made, of)
    left, right, places = text.left.plain, text.right.plain, text.places
    windows = text.windows if left is None else None
    step, placed = 0, None
    if right is not None and (right.line_step == 1 or not isinstance(right.line_step, int)):
        step = right.summed_step if isinstance(right.summed_step, int) else 1
    if places is not None:
        offsets, run = places.runs()
        elements = places.elements + text.beyond(places)
        placed = elements, len(offsets) * vector_elements(run, of)
    return Sides(
        of,
        made.left is product.right,
        text.result is not None and left is not None and right is not None,
        None if windows is None else windows.elements,
        (text.left.staged(True), text.right.staged(False)),
        left is None or right is None,
        step,
        placed,
        MAX_BAND_ROWS if windows is None else windows.most,
        text.plan,
    )


def contraction_sides(work: Contraction) -> tuple[Sides, ...]:
    """Return the operand plans of a contraction."""
    type, loops = (
        C_TYPES[name_of(work.dtype)],
        (*work.batch, *work.rows, *work.columns, *work.summed),
    )
    left, right = (describe_operand(value, loops, type) for value in (work.left, work.right))
    found = result_access(work)
    result = None
    if found is not None:
        result = Operand(type, None, "y", found.strides, work.unit)
    return sides(
        MatrixProduct(
            "product", type, work.batch, work.rows, work.columns, work.summed, left, right,
            lambda at, value: [], work.unit, {}, str, result,
        )
    )  # fmt: skip


def describe_operand(value: Scalar, loops: Iterable[Loop], type: str) -> Operand:
    """Return the operand of a product, without its text: a strided load or a computed element."""
    loops = tuple(loops)
    found, unit = padded_access(value, loops), unit_of(value, loops)
    if found is None:
        uses = Uses()
        uses.add(value)
        return Operand(type, value, None, {}, unit, joined=collapsible_pairs(uses, loops))
    border = Border("0", found.guards) if found.guards else None
    return Operand(type, value, "x", found.strides, unit, border)
