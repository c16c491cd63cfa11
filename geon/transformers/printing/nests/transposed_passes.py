"""Passes across memory: which these are, and what they read from tiles."""

from __future__ import annotations

from ....op_graph.axes.affine import Affine
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.nest import Pass
from ...kernels.ir.scalar_code import Apply, Load, Number, Scalar, walk
from ...kernels.nests.collapsed_rows import LIGHT
from ...kernels.nests.collapsible_lanes import values_of_lanes

SHORT_ROW = 32  # elements of a row up to which a pass across memory takes many rows as one
FILLS = 16  # bytes: a row of such vectors has what is the same for all of it in a register


def crosses(step: Pass, lane: str) -> bool:
    """Whether a pass over lanes does nothing but store, and that across memory."""
    if step.reductions or step.keeps or not step.loops:
        return False
    direct = all(is_direct(store.offset) for store in step.stores)
    return direct and any(store.offset.step(lane) != 1 for store in step.stores)


def is_flat(step: Pass, lane: str, depths: Depths, most: int) -> bool:
    """Whether a pass that crosses memory stores short rows that adjoin, of what each row has and of
    values whose places are all known. Rows of open length have ``most`` elements, if not 0.
    """
    turns, last = step.loops[-1].extent, step.loops[-1].name
    if len(step.loops) != 1 or not (1 < turns <= SHORT_ROW if isinstance(turns, int) else most):
        return False
    rows = all(x.offset.step(last) == 1 and x.offset.step(lane) == turns for x in step.stores)
    itemsize = min(store.dtype.itemsize for store in step.stores)
    if isinstance(turns, int) and values_of_lanes(step, depths):
        whole = turns * itemsize % FILLS == 0
        if turns > LIGHT[itemsize] or whole:
            return False
    nodes = of_elements(step, depths)
    direct = all(is_direct(node.offset) for node in nodes if isinstance(node, Load))
    return rows and direct and all(isinstance(node, (Load, Number, Apply)) for node in nodes)


def of_elements(step: Pass, depths: Depths) -> list[Scalar]:
    """What a pass computes for each element, without what each row has."""
    known = {id(node) for node in values_of_lanes(step, depths)}
    return list(walk(*[store.value for store in step.stores], known=known))


def flat_loads(step: Pass, lane: str, depths: Depths) -> list[Load]:
    """The loads of a flat pass that are read from tiles: they do not lie as the rows do."""
    turns, last = step.loops[-1].extent, step.loops[-1].name
    loads = [x for x in of_elements(step, depths) if isinstance(x, Load)]
    steps = [(x, x.offset.step(last), x.offset.step(lane)) for x in loads]
    return [x for x, far, apart in steps if (far, apart) not in ((0, 0), (1, turns))]


def across_loads(step: Pass, lane: str) -> list[Load]:
    """The loads of a pass that adjoin along lanes, and not along its last loop."""
    last = step.loops[-1].name
    return [
        load
        for load in walk(*[store.value for store in step.stores])
        if isinstance(load, Load)
        and is_direct(load.offset)
        and load.offset.step(lane) == 1
        and load.offset.step(last) not in (0, 1)
    ]


def is_direct(offset: Affine) -> bool:
    """Whether an offset is of loops' variables alone."""
    return all(isinstance(atom, str) for atom in offset.terms)
