"""The C functions that all matrix products share: two units for a type, the same for all programs.

``c/product.c`` and ``c/product_parts.c``, which a compiler takes as long for, are compiled once for
a type and a width of vectors, and come from the cache of objects from then on; ``c/product.h`` is
what the units that call them include.
"""

from __future__ import annotations

from functools import lru_cache

from .c_files import c_text, defines
from .dialect import PRELUDE
from .product_shape import TAGS, shape


def _typed(type: str) -> dict[str, object]:
    """The macros that say for which type a file is."""
    return {"TYPE": type, "TAG(name)": f"name##_{TAGS[type]}"}


@lru_cache(maxsize=len(TAGS))
def product_header(type: str) -> str:
    """What a unit has that calls the shared functions of products that sum in ``type``."""
    undefined = "#undef TYPE\n#undef TAG\n"
    return defines(_typed(type)) + c_text("product.h") + undefined


@lru_cache(maxsize=16)
def product_units(type: str, vector_bytes: int) -> tuple[str, ...]:
    """The units with all shared functions of products that sum in ``type``."""
    macros = _typed(type) | shape(type, vector_bytes).macros()
    first = PRELUDE + defines(macros)
    return tuple(first + c_text(file) for file in ("product.c", "product_parts.c"))
