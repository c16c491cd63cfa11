"""Describe a contraction as a matrix product without text: strided or computed operands."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.index_uses import Uses, collapsible_pairs
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Scalar
from ...kernels.products.contraction import Contraction, padded_access, result_access, unit_of
from ...printing.scalars.c_expressions import C_TYPES
from .operand_views import Border, Operand
from .product_ir import MatrixProduct, no_text


def describe_product(work: Contraction, whole: tuple[Size, ...] = ()) -> MatrixProduct:
    """Return a contraction as a product; ``whole`` are the sizes of that of which it is a block."""
    type = C_TYPES[name_of(work.dtype)]
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    left, right = (describe_operand(value, loops, type) for value in (work.left, work.right))
    found, uses = result_access(work), Uses()
    for store in work.stores:
        uses.add(store.value)
        uses.address(store.offset)
    return MatrixProduct(
        "product", type, work.batch, work.rows, work.columns, work.summed, left, right, no_text,
        work.unit, {}, no_text,
        result=None if found is None else Operand(type, None, "y", found.strides, work.unit),
        whole=whole,
        stores=work.stores,
        stores_joined=collapsible_pairs(uses, (*work.rows, *work.columns)),
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
