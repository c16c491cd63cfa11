"""Split reductions: a reduction over axes on both sides of kept ones, in two steps.

A row of such a reduction consists of short runs that lie far apart in memory. The first step
reduces the outer axes and keeps the innermost ones, so that vector lanes hold neighbours; few
elements are left for the second step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ....op_graph.axes.lengths import is_below, product
from ....op_graph.op_graph import Op, make
from ....op_graph.rewriting.driver import Rules
from ...sizes.limits import LONG_LOOP_TURNS, MIN_TASK_WORK

# Elements of a run above which one reduction reaches memory bandwidth.
FAST_RUN_ELEMENTS = 2 * LONG_LOOP_TURNS
MIN_SPLIT_RUNS = LONG_LOOP_TURNS  # minimum runs of a row that justify a second kernel
MIN_SPLIT_ELEMENTS = MIN_TASK_WORK // 2  # minimum elements that are reduced

split = Rules("folds in two")


@split.on("sum", "max", "min")
def fold_before_kept_axes_first(op: Op) -> Op | None:
    """Split a reduction over axes on both sides of kept ones: first those before, then the rest."""
    x: Any = op.args[0]
    folded = op.attrs.reduced
    behind = _last(x.axes.names, folded)
    rest = x.axes.names[: len(x.axes) - len(behind)]
    kept = _last(rest, [name for name in rest if name not in folded])
    before = tuple([name for name in folded if name not in behind])
    run, side, turns = (x.axes.only(names).size for names in (behind, kept, before))
    if not behind or not before or not isinstance(run, int) or not isinstance(side, int):
        return None
    if not 1 < run < FAST_RUN_ELEMENTS or side < 2 or is_below(turns, MIN_SPLIT_RUNS):
        return None
    if is_below(product([turns, *op.axes.lengths, run]), MIN_SPLIT_ELEMENTS):
        return None
    first = make(op.primitive, (x,), (before,))
    return make(op.primitive, (first,), (behind,))


def _last(names: Sequence[str], chosen: Collection[str]) -> tuple[str, ...]:
    """Return the longest suffix of names that are all in ``chosen``."""
    count = next((k for k, name in enumerate(reversed(names)) if name not in chosen), len(names))
    return tuple(names[len(names) - count :])


SPLIT_FOLDS = split.done()
