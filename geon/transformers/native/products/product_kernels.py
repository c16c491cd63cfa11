"""The C functions that all matrix products share: two units for each type and vector width.

They are ``c/product/driver.c`` and ``c/product/kernels.c``, split so that both take about as long
to compile. They are compiled once and come from the object cache afterwards. Units that call them
include ``c/product/product.h``.
"""

from __future__ import annotations

from functools import lru_cache

from ..names.c_files import defines
from ..names.c_texts import c_text
from ..names.dialect import PRELUDE
from ..sizes.blocking import TAGS, Shape


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
    macros = _typed(of) | of.macros()
    first = PRELUDE + defines(macros)
    return tuple(first + c_text(file) for file in ("product/driver.c", "product/kernels.c"))
