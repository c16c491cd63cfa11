"""Tests whether a pass over lanes and iterations is one contiguous loop; its per-lane values."""

from __future__ import annotations

from ..analysis.index_uses import Uses, collapsible_pairs
from ..analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ..ir.nest import Loop, Pass, Reduction
from ..ir.scalar_code import IndexNumber, Kept, Scalar, children_of, walk


def is_one_run(step: Pass, lanes: Loop, depths: Depths) -> bool:
    """Return True if a pass over lanes can run as one contiguous loop, for all it reads and stores.

    The first lane of the next iteration then follows the last lane of the current one in memory.
    Values per lane are in an array that is as contiguous; the position that a reduction needs must
    depend on the iteration alone.
    """
    if len(step.loops) != 1 or step.keeps:
        return False
    if not all(of_turns(each, step.loops[0]) for each in step.reductions):
        return False
    uses = Uses()
    for value in step.computed:
        known = {id(node) for node in walk(value) if depths.value(node) < ELEMENT_DEPTH}
        if any(isinstance(node, Kept) for node in walk(value, known=known)):
            return False
        uses.add(value, known)
    for store in step.stores:
        uses.address(store.offset)
    return (step.loops[0].name, lanes.name) in collapsible_pairs(uses, (step.loops[0], lanes))


def of_turns(reduction: Reduction, loop: Loop) -> bool:
    """Return True if the position of a reduction, if it needs one, is the loop variable alone."""
    at = reduction.position
    return at is None or (isinstance(at, IndexNumber) and set(at.index.terms) == {loop.name})


def values_of_lanes(step: Pass, depths: Depths) -> list[Scalar]:
    """Return the values per lane that the elements of a pass depend on."""
    used = step.computed
    for node in walk(*used):
        used += children_of(node) if depths.value(node) == ELEMENT_DEPTH else ()
    return [node for node in used if depths.value(node) == ROW_DEPTH]
