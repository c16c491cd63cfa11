"""Which scans are one kernel, and that kernel: row by row, or with small tensors taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from ...op_graph.op_graph import NO_AXES, Op, among, post_order
from ...op_graph.regions.parts import results_of
from ...op_graph.regions.scan_facts import ScanAttributes
from .elements import Operands
from .ordered import OrderedLoop, of_rows
from .unrolled import unrolled


def is_ordered(region: Op) -> bool:
    """Whether a region can be one kernel, however its arguments lie."""
    if not _takes_all_steps(region):
        return False
    anywhere = _Anywhere(region)
    return _is_by_rows(region) or unrolled(region, results_of(region), anywhere) is not None


def reads_views(region: Op) -> bool:
    """Whether it can be one kernel that reads views of values as they lie."""
    if not _takes_all_steps(region):
        return False
    rows = max([op.axes for op in region.bodies[0].results], key=len, default=NO_AXES)
    return len(rows) <= 1 if _is_by_rows(region) else is_ordered(region)


def make_ordered(region: Op, results: Sequence[Op], operands: Operands) -> OrderedLoop | None:
    """The scan with these results as one kernel; None where it cannot be one.

    Which of both it is follows from the region alone, as what ``reads_views`` says does.
    """
    make = of_rows if _is_by_rows(region) else unrolled
    return make(region, results, operands)


def _is_by_rows(region: Op) -> bool:
    """Whether each element of the carries is a row of its own."""
    return of_rows(region, results_of(region), _Anywhere(region)) is not None


def _takes_all_steps(region: Op) -> bool:
    return region.primitive.name == "scan" and not ScanAttributes(region.attrs).counted


class _Anywhere(Operands):
    """Arguments of a region that lie in the order of their axes.

    What a body says once more, such as a constant everywhere, it computes, be it an argument too.
    """

    def __init__(self, region: Op) -> None:
        said = {op for body in region.bodies for op in post_order(body.results)}
        super().__init__({}, {}, (), lambda op: among(op, region.args) and op not in said)

    def order(self, op: Op) -> tuple[str, ...]:
        return op.axes.names
