"""Passes over lanes that go through one run of elements, and what lanes have for all turns."""

from __future__ import annotations

from ..analysis.index_uses import Uses, joined
from ..analysis.loop_depth import ELEMENT, ROW, Depths
from ..ir.nest import Loop, Pass, Reduction
from ..ir.scalar_code import IndexNumber, Kept, Scalar, below, walk


def is_one_run(step: Pass, lanes: Loop, depths: Depths) -> bool:
    """Whether a pass over lanes goes through one run of elements, which it folds or stores: behind
    the last lane of a turn of its loop there is the first one of the next turn, in all that is read
    and stored. What a lane has for all turns is in an array, which goes on as lanes do; a position
    that a state asks for follows from the turn alone.
    """
    if len(step.loops) != 1 or step.keeps:
        return False
    if not all(of_turns(each, step.loops[0]) for each in step.reductions):
        return False
    uses = Uses()
    for value in step.computed:
        known = {id(node) for node in walk(value) if depths.value(node) < ELEMENT}
        if any(isinstance(node, Kept) for node in walk(value, known=known)):
            return False
        uses.add(value, known)
    for store in step.stores:
        uses.address(store.offset)
    return (step.loops[0].name, lanes.name) in joined(uses, (step.loops[0], lanes))


def of_turns(reduction: Reduction, loop: Loop) -> bool:
    """Whether the position of a reduction's element, where it asks for it, is one of turns."""
    at = reduction.position
    return at is None or (isinstance(at, IndexNumber) and set(at.index.terms) == {loop.name})


def values_of_lanes(step: Pass, depths: Depths) -> list[Scalar]:
    """What each lane has for all turns of a pass, and its elements are computed of."""
    used = step.computed
    for node in walk(*used):
        used += below(node) if depths.value(node) == ELEMENT else ()
    return [node for node in used if depths.value(node) == ROW]
