"""Runs of random bits: draws whose positions are consecutive in the innermost loop.

One Philox counter gives four words, so a consecutive element costs a quarter of a single one.
"""

from __future__ import annotations

from collections.abc import Hashable

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size
from ...sizes.limits import LONG_LOOP_TURNS
from ..analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ..ir.loop_variables import variables_in
from ..ir.nest import Nest, Pass
from ..ir.scalar_code import RandomBits, Scalar, walk

# Maximum rows that one core always computes together in vector lanes.
MAX_SIDE_BY_SIDE_ROWS = LONG_LOOP_TURNS


@dataclass(frozen=True, eq=False, slots=True)
class RandomRun:
    """Random bits at consecutive positions along loop ``variable``, the innermost one.

    ``base`` is the position in iteration 0. ``end`` is the end of the positions that later
    iterations may use; None if that is the end of the rows in vector lanes.
    """

    node: RandomBits
    variable: str
    base: AffineIndex
    end: AffineIndex | None


def runs(nest: Nest, step: Pass, depths: Depths) -> list[RandomRun]:
    """Return the runs of a pass, one for each draw with consecutive positions."""
    found = [_run(nest, step, depths, node) for node in walk(*roots(step))]
    return [run for run in found if run is not None]


def roots(step: Pass) -> list[Scalar]:
    """Return the values that a pass computes for each element."""
    found: list[Scalar] = []
    for each in step.reductions:
        found += [*each.elements, *([each.position] if each.position is not None else [])]
    found += [store.value for store in step.stores]
    return found + [keep.value for keep in step.keeps]


def _run(nest: Nest, step: Pass, depths: Depths, node: Scalar) -> RandomRun | None:
    if not isinstance(node, RandomBits) or depths.value(node) < ELEMENT_DEPTH or not step.loops:
        return None
    across = nest.across
    variable = "lane" if across is not None else step.loops[-1].name
    if node.position.step(variable) != 1:
        return None
    others = [(atom, by) for atom, by in node.position.terms.items() if atom != variable]
    if not all(_known_before(atom, variable, depths, across is not None) for atom, _ in others):
        return None
    base = AffineIndex(others, node.position.constant)
    outer = [*nest.rows, *step.loops]
    turns: Size
    if across is None:
        turns, outer = step.loops[-1].extent, outer[:-1]
    else:
        turns = across.extent
        if not isinstance(turns, int) or turns > MAX_SIDE_BY_SIDE_ROWS:
            return RandomRun(node, variable, base, None)
    if outer and node.position.step(outer[-1].name) == turns:
        return RandomRun(node, variable, base, AffineIndex((), node.size))
    return RandomRun(node, variable, base, base + turns)


def _known_before(atom: Hashable, variable: str, depths: Depths, lanes: bool) -> bool:
    """Return True if an atom of a position is known before the innermost loop starts."""
    if isinstance(atom, str):
        return True
    return not lanes and depths.atom(atom) <= ROW_DEPTH and variable not in variables_in(atom)
