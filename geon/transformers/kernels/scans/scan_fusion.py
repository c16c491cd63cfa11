"""Which scans are one kernel, and that kernel: row by row, or with small tensors taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import finalize

from ....op_graph.op_graph import NO_AXES, Op, among, post_order
from ....op_graph.regions.parameters import results_of
from ....op_graph.regions.scan_op import ScanAttributes
from ..nests.inlining import Operands
from .scalarised_scans import TurnBounds, unrolled
from .sequential_scan import OrderedLoop, of_rows

Make = Callable[[Op, Sequence[Op], Operands], OrderedLoop | None]

# How a region is one kernel, once that was tried, which takes as long as to make the kernel: by the
# region's identity, for as long as it lives, and by the bounds.
_WAYS: dict[int, dict[TurnBounds, Make | None]] = {}


def reads_views(region: Op, bounds: TurnBounds) -> bool:
    """Whether a region can be one kernel that reads views of values as they lie."""
    rows = max([op.axes for op in region.bodies[0].results], key=len, default=NO_AXES)
    way = _way(region, bounds)
    return len(rows) <= 1 if way is of_rows else way is not None


def make_ordered(
    region: Op, results: Sequence[Op], operands: Operands, bounds: TurnBounds
) -> OrderedLoop | None:
    """The scan with these results as one kernel; None where it cannot be one.

    Which of both ways it is made in follows from the region and ``bounds``, which limit the
    statements of a turn whose small tensors are taken apart.
    """
    way = _way(region, bounds)
    if way is None:
        return None
    made = way(region, results, operands)
    assert made is not None, "it does not depend on where its arguments lie"
    return made


def _way(region: Op, bounds: TurnBounds) -> Make | None:
    """What makes a region one kernel: its elements as rows, or its small tensors taken apart.

    Values without elements have no place in one: loops of kernels look at none.
    """
    if region.primitive.name != "scan" or ScanAttributes(region.attrs).counted:
        return None
    if any(op.axes.size == 0 for op in region.bodies[-1].results):
        return None
    if id(region) not in _WAYS:
        finalize(region, _WAYS.pop, id(region), None).atexit = False
    known = _WAYS.setdefault(id(region), {})
    if bounds not in known:

        def apart(region: Op, results: Sequence[Op], operands: Operands) -> OrderedLoop | None:
            return unrolled(region, results, operands, bounds)

        results, anywhere = results_of(region), _Anywhere(region)
        ways: tuple[Make, ...] = (of_rows, apart)
        found = (way for way in ways if way(region, results, anywhere) is not None)
        known[bounds] = next(found, None)
    return known[bounds]


class _Anywhere(Operands):
    """Arguments of a region that lie in the order of their axes.

    What a body says once more, such as a constant everywhere, it computes, be it an argument too.
    """

    def __init__(self, region: Op) -> None:
        said = {op for body in region.bodies for op in post_order(body.results)}
        super().__init__({}, {}, (), lambda op: among(op, region.args) and op not in said)

    def order(self, op: Op) -> tuple[str, ...]:
        return op.axes.names
