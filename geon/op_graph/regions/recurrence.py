"""Linear recurrences along an axis: what the derivative of a running product is."""

from __future__ import annotations

from ..axes import Axis
from ..constants import number
from ..dtypes import FLOAT32, HALVES, name_of
from ..elementwise import add, cast, multiply
from ..movement import broadcast, reorder
from ..op_graph import Tensor
from .scan import scan


def recurrence(
    scale: Tensor, shift: Tensor, axis: Axis, *, exclusive: bool, reverse: bool
) -> Tensor:
    """y over the axes of ``shift``: y[k] = scale[k] y[k - 1] + shift[k], with 0 before the first.

    ``exclusive`` gives each place what is before it; ``reverse`` goes the other way. Halves are
    multiplied and added as float32.
    """
    dtype = FLOAT32 if name_of(shift.dtype) in HALVES else shift.dtype

    def step(before: Tensor, parts: list[Tensor]) -> tuple[Tensor, Tensor]:
        made = add.apply(multiply.apply(before, parts[0]), parts[1])
        return made, before if exclusive else made

    nothing = broadcast(number(0, dtype), shift.axes.without([axis.name]))
    walked = [cast(scale, dtype), cast(shift, dtype)]
    _, found = scan(step, nothing, walked, over=axis, reverse=reverse)
    return cast(reorder(found, shift.axes), shift.dtype)
