"""Loop depth of a value: 0 if computed once, 1 per row of a nest, 2 per element of a pass.

In a tree it is the number of printed loops around.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping

from ....op_graph.axes.affine import AffineIndex
from ...sizes.limits import LONG_LOOP_TURNS
from ..ir.nest import Nest
from ..ir.scalar_code import (
    NODES,
    Contracted,
    Kept,
    Reduced,
    Running,
    Scalar,
    indices,
    inner_indices,
    operands_of,
    walk,
)

ONCE, ROW_DEPTH, ELEMENT_DEPTH = range(3)
HERE = sys.maxsize  # depth of values of a tree that are computed where they are used
LANE_VARIABLES = ("first_lane", "lane")  # loop variables of rows that are processed in vector lanes
MAX_PERIOD_TURNS = 2 * LONG_LOOP_TURNS  # maximum product of the lengths of a loop's inner digits
MAX_LOOP_DIGITS = MAX_PERIOD_TURNS.bit_length()  # the inner ones have 2 or more values each


def digit(name: str, k: int) -> str:
    """Return the variable of digit ``k`` of a loop that is read ahead; digit 0 is outermost."""
    return f"{name}_digit{k}"


class Depths:
    """Loop depths of scalar code, given those of loop ``variables``, of finished reductions
    (``reduced``) and of states and kept elements (``kept``).
    """

    def __init__(
        self, variables: Mapping[str, int], reduced: int, kept: int = ELEMENT_DEPTH
    ) -> None:
        self.variables, self._reduced, self._kept = dict(variables), reduced, kept
        self._known: dict[int, int] = {}

    @classmethod
    def of(cls, nest: Nest) -> Depths:
        """Return the depths in ``nest``."""
        loops = [(loop.name, ROW_DEPTH) for loop in nest.rows]
        loops += [(name, ROW_DEPTH) for name in LANE_VARIABLES]
        inner = [loop.name for each in nest.passes for loop in each.loops]
        loops += [(name, ELEMENT_DEPTH) for name in inner]
        loops += [(digit(name, k), ELEMENT_DEPTH) for name in inner for k in range(MAX_LOOP_DIGITS)]
        return cls(dict(loops), ROW_DEPTH if nest.rows or nest.across is not None else ONCE)

    @classmethod
    def of_tree(cls) -> Depths:
        """Return the depths in a tree; its printer sets the ``variables`` as it opens loops."""
        return cls({}, HERE, HERE)

    def value(self, value: Scalar) -> int:
        """Return the depth at which ``value`` is computed."""
        for node in walk(value, known=self._known):
            self._known[id(node)] = self._node(node)
        return self._known[id(value)]

    def _node(self, value: Scalar) -> int:
        """Return the depth of a node whose operands have been visited."""
        known = [self._known[id(part)] for part in operands_of(value)]
        known += [self.index(index) for index in indices(value)]
        if isinstance(value, Reduced):
            known.append(self._reduced)
        elif isinstance(value, (Contracted, Kept, Running)):
            known.append(self._kept)
        return max(known, default=0)

    def index(self, index: AffineIndex) -> int:
        """Return the depth at which an index is computed."""
        return max([self.atom(atom) for atom in index.terms], default=0)

    def atom(self, atom: Hashable) -> int:
        """Return the depth at which an atom of an index is computed."""
        if isinstance(atom, NODES):
            return self.value(atom)
        found = [self.variables.get(atom, 0) if isinstance(atom, str) else 0]
        return max(found + [self.index(each) for each in inner_indices(atom)])
