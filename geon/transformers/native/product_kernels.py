"""The C functions that all matrix products of a module share."""

import re
from collections.abc import Callable
from functools import partial

from .product_cut import cut_text
from .product_driver import driver_text
from .product_moves import copy_text, spread_text, transpose_text
from .product_rows import dots_text, stream_text
from .product_shape import TAGS, Shape, shape
from .product_tiles import tile_text, tiles_text, vector_text


def micro_kernels(text: str, vector_bytes: int) -> str:
    """C text of the shared functions that product texts call, what they call themselves first."""
    found: dict[str, str] = {}
    for type in TAGS:
        table = _functions(shape(type, vector_bytes))
        _collect(text, table, found)
    return "\n".join([_QUICK, *found.values()]) if found else ""


_QUICK = """\
/* For functions written in vectors already: what more a compiler looks for costs it time. */
#if defined(__clang__)
#define GEON_QUICK __attribute__((noinline))
#else
#define GEON_QUICK __attribute__((noinline, optimize("O1")))
#endif
"""


def _collect(text: str, table: dict[str, Callable[[], str]], found: dict[str, str]) -> None:
    for name in dict.fromkeys(re.findall(r"geon_\w+", text)):
        if name in table and name not in found:
            body = table[name]()
            _collect(body.replace(name, ""), table, found)
            found[name] = body


def _functions(of: Shape) -> dict[str, Callable[[], str]]:
    tag = of.tag
    table: dict[str, Callable[[], str]] = {
        f"geon_vector_{tag}": lambda: vector_text(of),
        f"geon_tiles_{tag}": lambda: tiles_text(of),
        f"geon_copy_{tag}": lambda: copy_text(of),
        f"geon_spread_{tag}": lambda: spread_text(of),
        f"geon_transpose_{tag}": lambda: transpose_text(of),
        f"geon_stream_{tag}": lambda: stream_text(of),
        f"geon_dots_{tag}": lambda: dots_text(of),
        f"geon_cut_{tag}": lambda: cut_text(of),
        f"geon_product_{tag}": lambda: driver_text(of),
    }
    for height in ("high", "low"):
        for width in (2, 1):
            table[f"geon_{height}_{width}_{tag}"] = partial(tile_text, of, height, width)
    return table
