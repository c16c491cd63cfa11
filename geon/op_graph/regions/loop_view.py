"""A common view of loops: carries, stacked inputs and outputs, and the body."""

from __future__ import annotations

from dataclasses import dataclass

from ..axes.axes import Axis
from ..core.region_body import Body
from ..op_graph import Op
from .scan_op import ScanAttributes
from .while_op import WhileAttributes


@dataclass(frozen=True, slots=True)
class Loop:
    """A scan, a while loop or a fixed point: ``body`` computes a step, the next carries first.

    It is the body ``number`` of the region. It is given the carries, a part of each stack that is
    ``walked`` along ``axis``, and what all steps read; then the number of the step, where it is
    ``numbered``. The region's results are the last carries; from ``stacks`` on, what the body
    computes beside these, stacked along ``axis``.
    """

    number: int
    body: Body
    carries: int
    walked: range
    axis: Axis | None
    stacks: int
    numbered: bool = True

    def made(self, number: int) -> Op:
        """What a step computes for a result of the region."""
        beside = number - self.stacks
        return self.body.results[number if number < self.carries else self.carries + beside]

    def is_step(self, number: int) -> bool:
        """Whether a parameter is the number of the step."""
        return self.numbered and number == len(self.body.parameters) - 1


def loop_of(region: Op) -> Loop | None:
    """The loop that a region is; None for branches."""
    if region.primitive.name == "scan":
        scan = ScanAttributes(region.attrs)
        walked = range(scan.carries, scan.before_captures)
        return Loop(0, scan.body, scan.carries, walked, scan.axis, scan.carries)
    if region.primitive.name == "while":
        a = WhileAttributes(region.attrs)
        return Loop(1, a.body, a.carries, range(0), a.axis, a.carries + 1)
    if region.primitive.name == "fixed_point":
        _, carries, body, _ = region.attrs
        return Loop(0, body, carries, range(0), None, carries, numbered=False)
    return None
