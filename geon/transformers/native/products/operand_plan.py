"""Plan the operands of a product, as scratch memory needs it: orientation, packing and windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.index_uses import Uses, collapsible_pairs
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Scalar
from ...kernels.products.contraction import Contraction, padded_access, result_access, unit_of
from ...printing.nests.contractions import PrintedElement
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.product_blocks import (
    MIN_PACK_CACHE_COLUMNS,
    MIN_PACK_CACHE_ROWS,
    VECTOR_SIZES_BYTES,
    shape,
)
from ...sizes.product_plan import TILES, ProductPlan
from ..sizes.products import Sides
from .descriptor import ProductText
from .implicit_im2col import vector_elements
from .multi_index import size
from .operand_views import Operand
from .padded_packing import Border
from .product_ir import MatrixProduct
from .product_text import orient_product


def sides(product: MatrixProduct) -> tuple[Sides, ...]:
    """Return the operand plans of a product, one for each orientation that some vector width has.

    Wide vectors need the most memory.
    """
    found: dict[bool, Sides] = {}
    for vector_bytes in reversed(VECTOR_SIZES_BYTES):
        made = orient_product(product, of := shape(product.type, vector_bytes))
        turned = made.left is product.right
        text = ProductText(made, of)
        if turned not in found:
            found[turned] = _sides(text, turned)
        else:
            known = found[turned]
            most = _most(known.places, _places(text))
            found[turned] = replace(known, places=most, plans=known.plans | _plans(text))
    return tuple(found.values())


def _sides(text: ProductText, turned: bool) -> Sides:
    left, right = text.left.plain, text.right.plain
    windows = text.windows if left is None else None
    step = 0
    if right is not None and (right.line_step == 1 or not isinstance(right.line_step, int)):
        step = right.summed_step if isinstance(right.summed_step, int) else 1
    return Sides(
        turned,
        text.result is not None and left is not None and right is not None,
        None if windows is None else windows.elements,
        (text.left.staged(True), text.right.staged(False)),
        left is None or right is None,
        step,
        _places(text),
        True,
        _plans(text),
    )


def _plans(text: ProductText) -> frozenset[ProductPlan]:
    """Return the plans that a call may run, none if lengths are open."""
    plan = text.plan
    if plan is None:
        return frozenset()
    rows, columns = map(int, map(size, (text.product.rows, text.product.columns)))
    keeps = not plan.exchanged and rows >= MIN_PACK_CACHE_ROWS and columns >= MIN_PACK_CACHE_COLUMNS
    return frozenset([plan, *[ProductPlan(TILES)] * keeps])


def _places(text: ProductText) -> tuple[int, int] | None:
    """Return the elements of a band of column windows and the columns of its sums, or None."""
    found = text.places
    if found is None:
        return None
    offsets, run = found.runs()
    return found.elements + text.beyond(found), len(offsets) * vector_elements(run, text.of)


def _most(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the maximum of each size, as the rounding to vectors depends on their width."""
    if one is None or other is None:
        return one or other
    return max(one[0], other[0]), max(one[1], other[1])


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
        result = Operand(type, no_element, "y", found.strides, work.unit)
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
        return Operand(type, no_element, None, {}, unit, joined=collapsible_pairs(uses, loops))
    border = Border("0", found.guards) if found.guards else None
    return Operand(type, no_element, "x", found.strides, unit, border)


def no_element(texts: object, inner: str | None) -> PrintedElement:
    """Return empty statements, for an operand that is in memory."""
    return PrintedElement([], [], "")
