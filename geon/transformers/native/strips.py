"""The innermost loop of a pass in strips of lanes, as C."""

from __future__ import annotations

from ..printing.c_functions import SUFFIXES
from ..printing.nests import Accumulator, PrintedPass
from ..printing.scalars import STRIP, Block, StripCall
from ..printing.strips import SHORT
from .loops import SIMD, for_loop, indented

__all__ = ["strip_loop"]


def strip_loop(
    made: PrintedPass, low: str, high: str, known: int | None, rest: list[str]
) -> list[str]:
    """The innermost loop of a pass from ``low`` to ``high``, of ``known`` turns if they are known.

    Each sum begins anew in every lane; lanes are added in order. ``rest`` is the loop over what no
    strip holds, from ``strip_start`` on.
    """
    assert made.strip is not None
    start = strip_start(made)
    sums = [f"GEON_STRIP_{SUFFIXES[t.dtype].upper()} {t.name}_lanes = {{0}};" for t in made.sums]
    ends = [line for total in made.sums for line in _added(total)]
    head = f"for (; {start} + {STRIP} <= {high}; {start} += {STRIP}) {{"
    body = [*made.strip.arrays, *_lane_loops(made.strip)]
    strips = [*sums, head, *indented(body), "}", *ends]
    begin = f"int64_t {start} = {low};"
    if known is not None and known % STRIP == 0:
        return ["{", *indented([begin, *strips]), "}"]
    strips = [f"if ({high} - {start} >= {SHORT}) {{", *indented(strips), "}"]
    return ["{", *indented([begin, *strips, *rest]), "}"]


def _added(total: Accumulator) -> list[str]:
    """The statements that add the lanes of a sum."""
    each = f"{total.name}_each"
    return [
        f"{total.ctype} {each}[{STRIP}];",
        f"memcpy({each}, &{total.name}_lanes, sizeof {each});",
        *for_loop("lane", "0", str(STRIP), [f"{total.name} = {total.name} + {each}[lane];"]),
    ]


def strip_start(made: PrintedPass) -> str:
    """The name of the index of a strip's first element."""
    return f"{made.loops[-1].name}_strip"


def _lane_loops(block: Block) -> list[str]:
    """The statements of a strip: loops over its lanes, and calls for all of them between."""
    found: list[str] = []
    waiting: list[str] = []
    for line in [*block.lines, None]:
        if isinstance(line, str):
            waiting.append(line)
            continue
        if waiting:
            found += [SIMD, *for_loop("lane", "0", str(STRIP), waiting)]
            waiting = []
        if isinstance(line, StripCall):
            found.append(str(line))
    return found
