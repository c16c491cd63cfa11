"""Folds over what lies on both sides of kept axes, in two: first over what lies before them.

A row of such a fold is short runs that lie far apart in memory. What lies behind the kept axes is
first kept too: then neighbours are folded side by side, and few elements are left for the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ....op_graph.axes.lengths import is_below, product
from ....op_graph.op_graph import Op, make
from ....op_graph.rewriting.driver import Rules

LONGEST = 128  # elements of a run from which on rows are folded run by run, at memory's speed
TURNS = 64  # runs of a row from which on it is worth a kernel more
LEAST = 1 << 14  # elements that are folded

split = Rules("folds in two")


@split.on("sum", "max", "min")
def fold_before_kept_axes_first(op: Op) -> Op | None:
    """A fold over axes before and behind kept ones is one over those before, then over the rest."""
    x: Any = op.args[0]
    folded = op.attrs[0]
    behind = _last(x.axes.names, folded)
    rest = x.axes.names[: len(x.axes) - len(behind)]
    kept = _last(rest, [name for name in rest if name not in folded])
    before = tuple([name for name in folded if name not in behind])
    run, side, turns = (x.axes.only(names).size for names in (behind, kept, before))
    if not behind or not before or not isinstance(run, int) or not isinstance(side, int):
        return None
    if not 1 < run < LONGEST or side < 2 or is_below(turns, TURNS):
        return None
    if is_below(product([turns, *op.axes.lengths, run]), LEAST):
        return None
    first = make(op.primitive, (x,), (before,))
    return make(op.primitive, (first,), (behind,))


def _last(names: Sequence[str], chosen: Collection[str]) -> tuple[str, ...]:
    """The last names, as far as all of them are chosen."""
    count = next((k for k, name in enumerate(reversed(names)) if name not in chosen), len(names))
    return tuple(names[len(names) - count :])


SPLIT_FOLDS = split.done()
