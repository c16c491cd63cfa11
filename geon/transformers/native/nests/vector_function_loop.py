"""Emit the innermost loop of a pass in strips: loops over lanes and calls of vector functions."""

from __future__ import annotations

from dataclasses import dataclass

from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.pass_text import Accumulator, PrintedPass
from ...printing.nests.statement_blocks import StripCall
from ...printing.nests.vector_function_passes import MIN_STRIP_ROW_ELEMENTS, STRIP_ELEMENTS
from ...printing.scalars.c_types import SUFFIXES
from ...sizes.blocks import CACHE_LINE_BYTES
from ..names.dialect import SIMD, strip_start, strip_sums
from ..vectors.nontemporal_stores import Past


@dataclass(frozen=True, slots=True)
class Fetch:
    """A prefetch statement that is executed once for each strip."""

    text: str

    def __str__(self) -> str:
        return self.text


def strip_loop(
    made: PrintedPass, lines: list[object], low: str, high: str, filled: bool, rest: list[str]
) -> list[str]:
    """Return the innermost loop of a pass from ``low`` to ``high`` in strips.

    If ``filled``, the iterations are a multiple of the strip length. ``lines`` are the statements
    of a strip. Each lane has its own partial sums, which are added in order at the end. ``rest`` is
    the loop over the remaining elements, from ``strip_start`` on.
    """
    assert made.strip is not None
    start = strip_start(made.loops[-1].name)
    kinds = [f"GEON_STRIP_{SUFFIXES[total.dtype].upper()}" for total in made.sums]
    names = [strip_sums(total.name) for total in made.sums]
    sums = [f"{kind} {name} = {{0}};" for kind, name in zip(kinds, names, strict=True)]
    ends = [line for total in made.sums for line in _added(total)]
    head = f"for (; {start} + {STRIP_ELEMENTS} <= {high}; {start} += {STRIP_ELEMENTS}) {{"
    body = [*made.strip.arrays, *_lane_loops(lines)]
    strips = [*sums, head, *indent(body), "}", *ends]
    begin = f"int64_t {start} = {low};"
    if filled:
        return ["{", *indent([begin, *strips]), "}"]
    strips = [f"if ({high} - {start} >= {MIN_STRIP_ROW_ELEMENTS}) {{", *indent(strips), "}"]
    return ["{", *indent([begin, *strips, *rest]), "}"]


def fetches(made: PrintedPass, past: Past) -> list[Fetch]:
    """Return prefetches, line by line, of the memory that is needed after a strip."""
    found = []
    for each in made.fetched:
        for k in range(0, STRIP_ELEMENTS, CACHE_LINE_BYTES // each.itemsize):
            place = f"&{each.place} + {k}" if k else f"&{each.place}"
            fetch = f"__builtin_prefetch({place}, {int(each.stores)});"
            fetch = past.fetched(each.operand, fetch) if each.stores else fetch
            if not isinstance(each.room, int):
                fetch = f"if ({past.names.length(each.room)} >= 0) {fetch}"
            found.append(Fetch(fetch))
    return found


def _added(total: Accumulator) -> list[str]:
    """Return the statements that add the lanes of a sum."""
    each = f"{total.name}_each"
    return [
        f"{total.ctype} {each}[{STRIP_ELEMENTS}];",
        f"memcpy({each}, &{strip_sums(total.name)}, sizeof {each});",
        *for_loop(
            "lane", "0", str(STRIP_ELEMENTS), [f"{total.name} = {total.name} + {each}[lane];"]
        ),
    ]


def _lane_loops(lines: list[object]) -> list[str]:
    """Return the statements of a strip: loops over its lanes, and calls between them."""
    found: list[str] = []
    waiting: list[str] = []
    for line in [*lines, None]:
        if isinstance(line, str):
            waiting.append(line)
            continue
        if waiting:
            found += [SIMD, *for_loop("lane", "0", str(STRIP_ELEMENTS), waiting)]
            waiting = []
        if isinstance(line, (StripCall, Fetch)):
            found.append(str(line))
    return found
