"""Linear recurrences along an axis: what the derivative of a running product is."""

from __future__ import annotations

from ..axes import Axis
from ..constants import number
from ..elementwise import add, multiply
from ..movement import broadcast, reorder
from ..op_graph import Tensor
from .scan import scan


def recurrence(
    scale: Tensor, shift: Tensor, axis: Axis, *, exclusive: bool, reverse: bool
) -> Tensor:
    """y over the axes of ``shift``: y[k] = scale[k] y[k - 1] + shift[k], with 0 before the first.

    ``exclusive`` gives each place what is before it; ``reverse`` goes the other way. Both are of
    one dtype, which holds sums.
    """

    def step(before: Tensor, parts: list[Tensor]) -> tuple[Tensor, Tensor]:
        made = add.apply(multiply.apply(before, parts[0]), parts[1])
        return made, before if exclusive else made

    nothing = broadcast(number(0, shift.dtype), shift.axes.without([axis.name]))
    _, found = scan(step, nothing, [scale, shift], over=axis, reverse=reverse)
    return reorder(found, shift.axes)
