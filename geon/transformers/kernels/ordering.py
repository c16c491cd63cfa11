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
    found = _takes_all_steps(region)
    return found and make_ordered(region, results_of(region), _Anywhere(region)) is not None


def reads_views(region: Op) -> bool:
    """Whether it can be one kernel that reads views of values as they lie."""
    if not _takes_all_steps(region):
        return False
    rows = max([op.axes for op in region.bodies[0].results], key=len, default=NO_AXES)
    by_rows = of_rows(region, results_of(region), _Anywhere(region))
    return len(rows) <= 1 if by_rows is not None else is_ordered(region)


def make_ordered(region: Op, results: Sequence[Op], operands: Operands) -> OrderedLoop | None:
    """The scan with these results as one kernel; None where it cannot be one."""
    found = of_rows(region, results, operands)
    if found is None:
        operands.numbers.clear()
        found = unrolled(region, results, operands)
    return found


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
