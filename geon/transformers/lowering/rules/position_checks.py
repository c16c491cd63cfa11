"""Removal of position checks that the bounds of loop carries make needless.

A rule for one op, ``needless_check``, sees what computes its positions, but inside of a body not
what the parameters of the body are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.building.rebuild import rebuild, with_args, with_bodies
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.region_body import Body
from ....op_graph.core.source_info import building
from ....op_graph.op_graph import Op, deep_order
from ....op_graph.regions.parameters import tensors
from ....op_graph.rows.indexing import CHECKED
from ..facts.position_ranges import Ranges, is_inside


def without_needless_checks(roots: Sequence[Op], own: OwnTable) -> list[Op]:
    """Return the roots without checks of positions that are inside of the axis in every step."""
    ops = deep_order(roots)
    if not any(op.bodies for op in ops) or not any(op.primitive is CHECKED for op in ops):
        return list(roots)
    with building(own):
        return _unchecked(roots, Ranges({}))


def _unchecked(roots: Sequence[Op], ranges: Ranges) -> list[Op]:
    def replaced(op: Op, args: tuple[Op, ...]) -> Op | None:
        a = op.attrs
        if op.primitive is CHECKED and len(op.args) == 1:
            return args[0] if is_inside(ranges.of(op.args[0]), a.length, a.from_end) else None
        if not op.bodies:
            return None
        pairs = zip(op.bodies, ranges.inside(op), strict=True)
        bodies = [Body(b.parameters, tuple(tensors(_unchecked(b.results, r)))) for b, r in pairs]
        return with_bodies(with_args(op, args), bodies)

    return rebuild(roots, replaced)
