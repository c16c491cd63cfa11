"""Emit loops whose iterations gcc interleaves, several vectors at once.

gcc unrolls a loop until the narrowest type fills a vector, and emits each statement for all vectors
of wider types before the next. So a dummy count of a narrow type is computed in the loop, which
costs an addition and an "or" for each block of vectors.
"""

from __future__ import annotations

from ...printing.nests.loop_lines import for_loop
from ..names.dialect import SIMD

COUNTS = {4: "uint8_t", 8: "uint16_t"}  # dummy type by element bytes: 1/4 of the width of one


def interleaved(variable: str, width: int, bounds: tuple[str, str], body: list[str]) -> list[str]:
    """Return a loop over whole blocks of vectors of elements of ``width`` bytes."""
    return [
        f"{COUNTS[width]} abreast = 0, count = 0;",
        f"{SIMD} reduction(|:abreast)",
        *for_loop(variable, *bounds, ["abreast |= count++;", *body]),
        "GEON_USED(abreast);",
    ]
