"""A common description of scans, while loops and fixed points: carries, stacks and body."""

from __future__ import annotations

from dataclasses import dataclass

from ..axes.axes import Axis
from ..core.region_body import Body
from ..op_graph import Op
from .while_op import WhileAttributes


@dataclass(frozen=True, slots=True)
class LoopView:
    """A scan, a while loop or a fixed point.

    ``number`` is the index of ``body`` among the bodies of the region. ``body`` computes a step:
    the next carries, then the values to stack. Its parameters are the carries, one slice of each
    stacked input, the captures, and the step number if ``numbered``. ``carries`` is the number of
    carries. ``walked`` is the range of arguments that are sliced along ``axis``; ``axis`` is None
    if nothing is stacked. The results of the region are the last carries; from result ``stacks`` on
    they are the other values of the body, stacked along ``axis``.
    """

    number: int
    body: Body
    carries: int
    walked: range
    axis: Axis | None
    stacks: int
    numbered: bool = True

    def made(self, number: int) -> Op:
        """Return the op of the body that computes result ``number`` of the region in one step."""
        beside = number - self.stacks
        return self.body.results[number if number < self.carries else self.carries + beside]

    def is_step(self, number: int) -> bool:
        """Return True if parameter ``number`` is the step number."""
        return self.numbered and number == len(self.body.parameters) - 1


def loop_of(region: Op) -> LoopView | None:
    """Return the description of a loop; None if ``region`` is a ``case``."""
    if region.primitive.name == "scan":
        scan = region.attrs
        walked = range(scan.carries, scan.before_captures)
        return LoopView(0, scan.body, scan.carries, walked, scan.axis, scan.carries)
    if region.primitive.name == "while":
        a: WhileAttributes = region.attrs
        return LoopView(1, a.body, a.carries, range(0), a.axis, a.carries + 1)
    if region.primitive.name == "fixed_point":
        _, carries, body, _ = region.attrs
        return LoopView(0, body, carries, range(0), None, carries, numbered=False)
    return None
