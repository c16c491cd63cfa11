"""The values of lanes that the elements of a pass depend on."""

from __future__ import annotations

from ..analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ..ir.nest import Pass
from ..ir.scalar_code import Scalar, children_of, walk


def values_of_lanes(step: Pass, depths: Depths) -> list[Scalar]:
    """Return the values per lane that the elements of a pass depend on."""
    used = step.computed
    for node in walk(*used):
        used += children_of(node) if depths.value(node) == ELEMENT_DEPTH else ()
    return [node for node in used if depths.value(node) == ROW_DEPTH]
