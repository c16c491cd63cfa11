"""Transposed passes: tests whether a pass stores across memory, and its loads from tiles."""

from __future__ import annotations

from ....op_graph.axes.affine import AffineIndex
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.nest import Pass
from ...kernels.ir.scalar_code import Apply, Load, Number, Scalar, walk
from ...kernels.nests.collapsed_rows import MAX_LIGHT_ROW_ELEMENTS
from ...kernels.nests.collapsible_lanes import values_of_lanes

MAX_COLLAPSED_ROW_ELEMENTS = (
    32  # maximum elements of a row for a pass across memory that collapses rows
)
REGISTER_ROW_BYTES = (
    16  # bytes of a vector; rows of whole vectors keep their invariants in registers
)


def crosses(step: Pass, lane: str) -> bool:
    """Return True if a pass over lanes only stores, not all with unit stride along lanes."""
    if step.reductions or step.keeps or not step.loops:
        return False
    direct = all(is_direct(store.offset) for store in step.stores)
    return direct and any(store.offset.step(lane) != 1 for store in step.stores)


def is_flat(step: Pass, lane: str, depths: Depths, most: int) -> bool:
    """Return True if a pass across memory stores short contiguous rows with simple offsets.

    ``most`` is the maximum number of elements of rows of open length; 0 if unknown.
    """
    turns, last = step.loops[-1].extent, step.loops[-1].name
    if len(step.loops) != 1 or not (
        1 < turns <= MAX_COLLAPSED_ROW_ELEMENTS if isinstance(turns, int) else most
    ):
        return False
    rows = all(x.offset.step(last) == 1 and x.offset.step(lane) == turns for x in step.stores)
    itemsize = min(store.dtype.itemsize for store in step.stores)
    if isinstance(turns, int) and values_of_lanes(step, depths):
        whole = turns * itemsize % REGISTER_ROW_BYTES == 0
        if turns > MAX_LIGHT_ROW_ELEMENTS[itemsize] or whole:
            return False
    nodes = of_elements(step, depths)
    direct = all(is_direct(node.offset) for node in nodes if isinstance(node, Load))
    return rows and direct and all(isinstance(node, (Load, Number, Apply)) for node in nodes)


def of_elements(step: Pass, depths: Depths) -> list[Scalar]:
    """Return the values that a pass computes per element, without values per lane."""
    known = {id(node) for node in values_of_lanes(step, depths)}
    return list(walk(*[store.value for store in step.stores], known=known))


def flat_loads(step: Pass, lane: str, depths: Depths) -> list[Load]:
    """Return the loads of a flat pass that are read from tiles: their layout is not its own."""
    turns, last = step.loops[-1].extent, step.loops[-1].name
    loads = [x for x in of_elements(step, depths) if isinstance(x, Load)]
    steps = [(x, x.offset.step(last), x.offset.step(lane)) for x in loads]
    return [x for x, far, apart in steps if (far, apart) not in ((0, 0), (1, turns))]


def across_loads(step: Pass, lane: str) -> list[Load]:
    """Return loads of a pass that are contiguous along lanes and strided along its last loop."""
    last = step.loops[-1].name
    return [
        load
        for load in walk(*[store.value for store in step.stores])
        if isinstance(load, Load)
        and is_direct(load.offset)
        and load.offset.step(lane) == 1
        and load.offset.step(last) not in (0, 1)
    ]


def is_direct(offset: AffineIndex) -> bool:
    """Return True if an offset depends on loop variables only."""
    return all(isinstance(atom, str) for atom in offset.terms)
