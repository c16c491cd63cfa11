"""Emit prefetches of gathered rows, some iterations ahead of the loop that reads them."""

from __future__ import annotations

from collections.abc import Callable

from ....op_graph.axes.affine import Size
from ...loops.gather_prefetch import MAX_PREFETCHED_LINES, PREFETCH_DISTANCE_ROWS
from ...printing.nests.gather_prefetch import PrintedLookup
from ...printing.nests.loop_lines import indent
from ...printing.nests.pass_text import PrintedPass
from ...sizes.blocks import CACHE_LINE_BYTES


def asked_ahead(
    made: PrintedPass, variable: str, end: str, length: Callable[[Size], str]
) -> list[str]:
    """Return the prefetches at the start of an iteration of loop ``variable``, which ends at
    ``end``.

    They fetch the rows that the pass reads ``PREFETCH_DISTANCE_ROWS`` iterations later. ``length``
    returns a length
    as C.
    """
    lines: list[str] = []
    for each in made.lookups:
        if each.variable == variable:
            asked = [*each.before, *_lines_of_row(each, length)]
            lines += [f"if ({variable} + {PREFETCH_DISTANCE_ROWS} < {end}) {{", *indent(asked), "}"]
    return lines


def _lines_of_row(lookup: PrintedLookup, length: Callable[[Size], str]) -> list[str]:
    """Return the prefetches of the first cache lines of a row."""
    pointer = f"const char *const far = (const char *)({lookup.start});"
    if isinstance(lookup.size, int):
        count = min(-(-lookup.size // CACHE_LINE_BYTES), MAX_PREFETCHED_LINES)
        return [
            pointer,
            *[f"__builtin_prefetch(far + {k * CACHE_LINE_BYTES});" for k in range(count)],
        ]
    most = CACHE_LINE_BYTES * MAX_PREFETCHED_LINES
    size = length(lookup.size)
    return [
        pointer,
        f"const int64_t bytes = {size} < {most} ? {size} : {most};",
        f"for (int64_t at = 0; at < bytes; at += {CACHE_LINE_BYTES}) __builtin_prefetch(far + at);",
    ]
