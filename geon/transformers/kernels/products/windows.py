"""Windows along an axis of an operand: the kept and the summed loop of its index.

Convolutions and their gradients by an input or by a filter read an operand through windows. Guards
at borders show which loops share an axis; without borders, overlapping strides do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size
from ..ir.nest import Loop


@dataclass(frozen=True, slots=True)
class WindowLoops:
    """The loops of an index ``stride * kept + dilation * summed + constant`` along an axis.

    ``kept`` counts the windows and ``summed`` the elements of one. A loop is None, with coefficient
    0, if the index does not change with one of this kind.
    """

    kept: Loop | None
    summed: Loop | None
    stride: int
    dilation: int
    constant: Size = 0

    def reversed(self) -> WindowLoops:
        """Return the same windows with the summed loop in the opposite direction."""
        if self.summed is None:
            return self
        last = self.constant + (self.summed.extent - 1) * self.dilation
        return replace(self, constant=last, dilation=-self.dilation)

    def position_stride(self, strides: Mapping[str, Size]) -> Size | None:
        """Return the distance of two positions in memory, in elements; None if loops disagree.

        ``strides`` are those of the loops.
        """
        assert self.kept is not None and self.summed is not None
        far, near = (strides.get(loop.name, 0) for loop in (self.kept, self.summed))
        if self.dilation == 1:
            position = near
        elif self.stride == 1:
            position = far
        elif isinstance(far, int):
            position = far // self.stride
        else:
            return None
        agree = position * self.stride == far and position * self.dilation == near
        return position if agree else None


def window_loops(
    index: AffineIndex, kept: Iterable[Loop], summed: Iterable[Loop]
) -> WindowLoops | None:
    """Return the loops of an index along an axis.

    Return None if it changes with several loops of a kind, with others, or by an open length.
    """
    sides = [[loop for loop in loops if loop.name in index.terms] for loops in (kept, summed)]
    if max(map(len, sides)) > 1 or sum(map(len, sides)) != len(index.terms):
        return None
    windows, inside = (side[0] if side else None for side in sides)
    steps = [0 if loop is None else index.terms[loop.name] for loop in (windows, inside)]
    stride, dilation = (step if isinstance(step, int) else None for step in steps)
    if stride is None or dilation is None:
        return None
    return WindowLoops(windows, inside, stride, dilation, index.constant)


def overlapping_windows(
    kept: Loop, summed: Loop, strides: Mapping[str, Size]
) -> tuple[WindowLoops, Size] | None:
    """Return two loops as windows along one axis, and the distance of its positions in memory.

    Return None unless windows without a border are known to share elements.
    """
    far, near = strides[kept.name], strides[summed.name]
    position, stride, dilation = far, 1, 1
    if far != near:
        if not isinstance(far, int) or not isinstance(near, int) or min(far, near) <= 0:
            return None
        position = min(far, near)
        stride, dilation = far // position, near // position
        if (stride * position, dilation * position) != (far, near):
            return None
    reaches = stride * (kept.extent - 1), dilation * (summed.extent - 1)
    known = [
        reach >= step for reach, step in zip(reaches, (dilation, stride), strict=True)
        if isinstance(reach, int)
    ]  # fmt: skip
    if not known or not all(known):
        return None
    return WindowLoops(kept, summed, stride, dilation), position
