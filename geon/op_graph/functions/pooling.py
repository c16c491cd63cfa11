"""Max, mean and p-norm pooling over windows.

Pooling over a whole axis is a reduction: ``geon.max(x, [H, W])``, ``geon.mean(x, [H, W])``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

import numpy as np

from ...errors import ArgumentError, DTypeError
from ..axes.axes import Axes, Axis
from ..building.constants import as_tensor, number
from ..building.weak import in_dtype
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.accumulation import floating, widen
from ..rows.elementwise import absolute, greater, power, where
from ..rows.leaves import length_value
from ..rows.movement import broadcast, sum_over
from ..rows.reductions import FIRST_MAX, reduce
from ..rows.windows import Placed, Window, make_windows, place, placements
from ..rows.windows import windows as windows_of
from ..values.dtypes import INT64, kind

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike

Windows = Mapping["AxisLike", Window | Axis | int]


@public
def max_pool(x: TensorLike, windows: Windows, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the largest element of each window: ``geon.max_pool(x, {H: Window(2, stride=2)})``.

    Padding is less than any element. The derivative goes to the first largest element; only its
    index is stored for it. Raises ``AxisError`` if no window fits.
    """
    x = as_tensor(x)
    if kind(x.dtype) == "b":
        raise DTypeError(
            f"{user_call('max_pool')}: of the bool tensor {x} (made at {x.line_info}); geon.any of "
            "geon.window has it"
        )
    least = -math.inf if kind(x.dtype) == "f" else int(np.iinfo(x.dtype).min)
    placed = placements(x, windows, "max_pool")
    seen = make_windows(x, placed, least, "max_pool")
    return reduce(FIRST_MAX, seen, _positions(placed))


@public
def average_pool(
    x: TensorLike, windows: Windows, *, count_pad: bool = False, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the mean of each window, without padding, or with ``count_pad`` with padding as 0.

    Elements of a window beyond the padding, with ``ceil``, never count. Integers and bool give
    float32. The mean of a window without elements is NaN. Raises ``AxisError`` if no window fits.
    """
    given = floating(as_tensor(x))
    x = widen(given)
    placed = placements(x, windows, "average_pool")
    seen = make_windows(x, placed, 0, "average_pool")
    total = sum_over(seen, tuple([axis.name for axis in _positions(placed)]))
    for axis, spec, positions in placed:
        total = total / _counted(place(axis, spec, positions, "average_pool"), count_pad)
    return in_dtype(total, given.dtype)


@public
def lp_pool(x: TensorLike, windows: Windows, p: float = 2, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the p-norm of each window: the sum of ``|x| ** p`` to the power of 1 / ``p``.

    Padding is 0. Where all of a window is 0, the derivative is 0. Integers and bool give float32.
    Raises ``AxisError`` if no window fits, ``ArgumentError`` if ``p`` is not more than 0.
    """
    if not isinstance(p, (int, float)) or not p > 0:
        raise ArgumentError(f"{user_call('lp_pool')}: p must be more than 0, not {p!r}")
    given = floating(as_tensor(x))
    placed = placements(given, windows, "lp_pool")
    powers = power(absolute(widen(given)), p)
    seen = make_windows(powers, placed, 0, "lp_pool")
    total = sum_over(seen, tuple([axis.name for axis in _positions(placed)]))
    some = greater(total, 0)
    result = where(some, power(where(some, total, 1), 1 / p), 0)
    return in_dtype(result, given.dtype)


def _positions(placed: list[tuple[Axis, Window, Axis]]) -> list[Axis]:
    return [positions for _, _, positions in placed]


def _counted(at: Placed, pad: bool) -> Tensor:
    """Return the number of elements of each window along an axis, with padding if ``pad``."""
    length, attrs = at.length, at.attributes(at.count)
    if pad:  # count elements of an axis that is longer by the padding
        length = at.spare + (at.window.expression - 1) * at.dilation + 1
        attrs = attrs._replace(before=0)
    ones = broadcast(number(1, INT64, weak=True), Axes(at.axis.with_length(length)))
    seen = windows_of(ones, attrs, number(0, INT64, weak=True))
    if len(seen.args) == 1:
        return length_value(at.window.expression)
    return sum_over(seen, (at.window.name,))
