"""Random draws in graphs: finding them, and numbering them by their order."""

from __future__ import annotations

from collections.abc import Iterable

from ..building.rebuild import rebuild
from ..core.traversal import deep_order
from ..op_graph import Op, make_op
from .streams import RANDOM_BITS


def has_draws(roots: Iterable[Op]) -> bool:
    """Return True if a root depends on a random draw, also on one in the body of a region."""
    return any(op.primitive is RANDOM_BITS for op in deep_order(roots))


def number_draws(op: Op) -> Op:
    """Return an op whose draws of each stream, outside of regions, are numbered from 0 in order.

    Graphs that are built by the same code again are then one graph.
    """
    counts: dict[int, int] = {}

    def numbered(draw: Op, args: tuple[Op, ...]) -> Op | None:
        if draw.primitive is not RANDOM_BITS:
            return None
        count = counts[draw.attrs.seed] = counts.get(draw.attrs.seed, -1) + 1
        return make_op(RANDOM_BITS, args, tuple(draw.attrs._replace(draw=count)))

    return rebuild([op], numbered)[0]
