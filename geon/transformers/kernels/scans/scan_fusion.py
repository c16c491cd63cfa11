"""Scan fusion: decides which scans become one kernel, and builds it by rows or scalarised."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.core.traversal import until_dropped
from ....op_graph.op_graph import NO_AXES, Op, among, post_order
from ....op_graph.regions.parameters import results_of
from ..nests.inlining import OperandInliner
from .scalarised_scans import TurnBounds, scalarise_scan
from .sequential_scan import OrderedLoop, of_rows

Make = Callable[[Op, Sequence[Op], OperandInliner], OrderedLoop | None]

# Cached results of ``_way``, because a trial takes as long as to build the kernel: by the id of the
# region, removed when it is collected, and by the bounds.
_WAYS: dict[int, dict[TurnBounds, Make | None]] = {}


def reads_views(region: Op, bounds: TurnBounds) -> bool:
    """Return True if a region can be one kernel that reads views without a copy."""
    rows = max([op.axes for op in region.bodies[0].results], key=len, default=NO_AXES)
    way = _way(region, bounds)
    return len(rows) <= 1 if way is of_rows else way is not None


def make_ordered(
    region: Op, results: Sequence[Op], operands: OperandInliner, bounds: TurnBounds
) -> OrderedLoop | None:
    """Return the scan with these results as one kernel, or None.

    The region and ``bounds``, which limit the statements of a scalarised iteration, decide if it is
    built by rows or scalarised.
    """
    way = _way(region, bounds)
    if way is None:
        return None
    made = way(region, results, operands)
    assert made is not None, "it does not depend on where its arguments lie"
    return made


def _way(region: Op, bounds: TurnBounds) -> Make | None:
    """Return the function that builds a region as one kernel, by rows or scalarised, or None.

    Values without elements are not supported: the kernel's loops do not check for them.
    """
    if region.primitive.name != "scan" or region.attrs.counted:
        return None
    if any(op.axes.size == 0 for op in region.bodies[-1].results):
        return None
    known = until_dropped(_WAYS, region, {})
    if bounds not in known:

        def apart(
            region: Op, results: Sequence[Op], operands: OperandInliner
        ) -> OrderedLoop | None:
            return scalarise_scan(region, results, operands, bounds)

        results, anywhere = results_of(region), _Anywhere(region)
        ways: tuple[Make, ...] = (of_rows, apart)
        found = (way for way in ways if way(region, results, anywhere) is not None)
        known[bounds] = next(found, None)
    return known[bounds]


class _Anywhere(OperandInliner):
    """Operands that assume a region's arguments to be contiguous in the order of their axes.

    Ops that are also in a body, such as constants, are computed, even if they are arguments.
    """

    def __init__(self, region: Op) -> None:
        said = {op for body in region.bodies for op in post_order(body.results)}
        super().__init__({}, {}, (), lambda op: among(op, region.args) and op not in said)

    def order(self, op: Op) -> tuple[str, ...]:
        return op.axes.names
