"""Emit unrolled and jammed rows: a loop over vectors of several rows, and remainder loops."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...printing.nests.pass_text import PrintedPass, PrintedTurns
from ..names.loop_lines import for_loop, stepped_loop
from ..vectors.nontemporal_stores import Past
from .pass_loops import Passes

FIRST = "first_row"  # variable with the index of the first jammed row


def rows_together(passes: Passes, jam: PrintedTurns) -> list[str]:
    """Return the statements of jammed rows: a loop over vectors, then for each row the elements
    that fill no vector, and its other passes.

    Without overlapping loads the vectors have no non-temporal stores.
    """
    every, k, (inner,) = passes.nest.passes, jam.number, jam.made.loops
    end, filled = passes.extent(inner), f"{inner.name}_whole"
    first = [f"const int64_t {FIRST} = {jam.outer.name};", *map(str, jam.known.lines)]
    before = each_row(passes, jam, every[:k])
    after = each_row(passes, jam, every[k + 1 :])
    if jam.filled:
        return [*first, *before, *vectors(passes, jam, end), *after]
    first.append(f"const int64_t {filled} = ({end}) & -{jam.lanes};")
    left = each_row(passes, jam, every[k : k + 1], (filled, end))
    return [*first, *before, *vectors(passes, jam, filled), *left, *after]


def vectors(passes: Passes, jam: PrintedTurns, high: str) -> list[str]:
    """Return the loop over vectors, up to ``high``."""
    (inner,), past = jam.made.loops, passes.past
    passes.past = past if jam.overlap else Past(None, passes.names)
    chosen, body = passes.chosen(jam.made), passes.elements(jam.made)
    run = functools.partial(stepped_loop, inner.name, jam.lanes, body)
    found = passes.past.loop(chosen, inner, ("0", high), run, divided=True, whole=True)
    passes.past = past
    return found


def each_row(
    passes: Passes,
    jam: PrintedTurns,
    some: Sequence[PrintedPass],
    bounds: tuple[str, str] | None = None,
) -> list[str]:
    """Return the passes ``some`` of each jammed row in turn, within ``bounds`` if given."""
    if not some:
        return []
    past, passes.past = passes.past, Past(None, passes.names)
    known = [line for line in passes.nest.row.lines if not isinstance(line, PrintedPass)]
    lines = passes.statements([*known, *some], bounds)
    passes.past = past
    row = f"const int64_t {jam.outer.name} = {FIRST} + turn;"
    return for_loop("turn", "0", str(jam.turns), [row, *lines])
