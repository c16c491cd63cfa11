"""The C functions that all matrix products share: two units for a type, the same for all programs.

``c/product.c`` and ``c/product_parts.c``, which a compiler takes as long for, are compiled once for
a type and a width of vectors, and come from the cache of objects from then on; ``c/product.h`` is
what the units that call them include.
"""

from __future__ import annotations

from functools import lru_cache

from ..names.c_files import defines
from ..names.c_texts import c_text
from ..names.dialect import PRELUDE
from ..sizes.blocking import TAGS, Shape


def _typed(of: Shape) -> dict[str, object]:
    """The macros that say for which type a file is."""
    return {"TYPE": of.type, "TAG(name)": f"name##_{of.tag}"}


@lru_cache(maxsize=2 * len(TAGS))
def product_header(of: Shape) -> str:
    """What a unit has that calls the shared functions of products of a shape."""
    undefined = "#undef TYPE\n#undef TAG\n"
    return defines(_typed(of)) + c_text("product.h") + undefined


@lru_cache(maxsize=16)
def product_units(of: Shape) -> tuple[str, ...]:
    """The units with all shared functions of products of a shape."""
    macros = _typed(of) | of.macros()
    first = PRELUDE + defines(macros)
    return tuple(first + c_text(file) for file in ("product.c", "product_parts.c"))
