"""Emit matrix products over any loops as C, with work fused into their loads and stores.

A product is cut into items (blocks of rows and columns of one batch), which tasks of the thread
pool share. An item iterates over blocks of the summed index. It packs its part of the right operand
into panels two vectors wide. For each group of rows it packs the left operand and runs register
tiles over both. Small operands and cached packed copies are read in place, and so are overlapping
windows. Sums stay in the task's scratch memory until the last block, when `store` runs once for
each element. If `store` only writes the sums, tiles write the result themselves. Every sum is
accumulated in the order of the summed index, except that a few rows use vector lanes if the right
operand is contiguous along it. The number of threads does not change results.

The C functions that all products share are two units for each type and vector width,
``c/product/driver.c`` and ``c/product/kernels.c``, split so that both take about as long to
compile. They are compiled once and come from the object cache afterwards. Units that call them
include ``c/product/product.h``.
"""

from __future__ import annotations

from functools import lru_cache

from ...sizes.product_blocks import TAGS, Shape
from ...sizes.product_cut import SIZE_FUNCTIONS, ProductCut, SizeProblem
from ...sizes.product_plan import rule_macros
from ..names.c_files import defines
from ..names.c_texts import c_text
from ..names.dialect import PRELUDE
from .descriptor import ProductText
from .product_form import ProductForm
from .product_ir import MatrixProduct
from .size_functions import size_functions


def _typed(of: Shape) -> dict[str, object]:
    """Return the macros of the element type."""
    return {"TYPE": of.type, "TAG(name)": f"name##_{of.tag}"}


@lru_cache(maxsize=2 * len(TAGS))
def product_header(of: Shape) -> str:
    """Return the header of the shared product functions of a shape."""
    undefined = "#undef TYPE\n#undef TAG\n"
    return defines(_typed(of)) + c_text("product/product.h") + undefined


@lru_cache(maxsize=16)
def product_units(of: Shape) -> tuple[str, ...]:
    """Return the units that define the shared product functions of a shape."""
    macros = _typed(of) | of.macros() | rule_macros(of)
    first = PRELUDE + defines(macros) + c_text("product/common.h")
    sizes = size_functions((SizeProblem, ProductCut), SIZE_FUNCTIONS, of)
    return first + sizes + c_text("product/driver.c"), first + c_text("product/kernels.c")


def product_text(product: MatrixProduct, form: ProductForm) -> tuple[str, bool]:
    """Return the C text of ``static void NAME(int32_t threads, <arguments>)`` with its own
    functions, and True if it has loops over elements that the compiler should vectorise.

    It calls the functions of ``product_units``, whose header its unit needs.
    """
    made = ProductText(product, form)
    return "\n".join(made.make()) + "\n", made.loops
