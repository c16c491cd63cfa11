"""Class scores and class numbers: the axis of classes, and checks of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.axes import Axis
from ...op_graph.building.resolve_axes import own_axis
from ...op_graph.core.source_info import user_call
from ...op_graph.functions.composites import onehot
from ...op_graph.op_graph import Tensor, make
from ...op_graph.rows.indexing import CHECKED, PURPOSES, Purpose, held_by_int64
from ...op_graph.values.dtypes import kind
from .axis import channel_axes
from .checks import is_integer

if TYPE_CHECKING:
    from ...op_graph.building.typing import AxisLike


CLASS_NUMBER = "class number"
PURPOSES[CLASS_NUMBER] = Purpose(
    "used as class numbers",
    "check the data, or give the axis of the classes more elements; examples that a number such "
    "as -100 marks do not count with mask= of neon.Model, and need the number of some class",
)


def class_axis(scores: Tensor, over: AxisLike | None, what: str) -> Axis:
    """Return the axis of the classes: ``over``, or the only one beside N, T, D, H and W."""
    if over is not None:
        return own_axis(scores, over, what)
    found = channel_axes(scores.axes)
    if len(found) != 1:
        raise AxisError(
            f"{user_call(what)}: {scores} (made at {scores.line_info}) has classes along one axis, "
            f"and {found} are left without N, T, D, H and W; say which with over="
        )
    return found[0]


def numbers(t: Tensor, axis: Axis) -> bool:
    """Return True if targets are class numbers."""
    return kind(t.dtype) == "i" and axis not in t.axes


def a_class(what: str, name: str, number: int | None, axis: Axis) -> None:
    """Raise ``ArgumentError`` unless the argument is the number of a class, or None."""
    count = axis.expression
    if number is None or (
        is_integer(number) and number >= 0 and not (isinstance(count, int) and number >= count)
    ):
        return
    raise ArgumentError(
        f"{user_call(what)}: {name}={number!r} is no class of {axis}; give the number of one, "
        "from 0 on"
    )


def check_class_numbers(scores: Tensor, t: Tensor, axis: Axis, what: str) -> Tensor:
    """Return class numbers that raise ``IndexRangeError`` if one is out of range.

    Raises ``AxisError`` if ``t`` are no class numbers for the scores.
    """
    check_numbers(scores, t, axis, what)
    found = make(CHECKED, (held_by_int64(t),), (axis.expression, False, None, ""))
    found.add_tags(CLASS_NUMBER)
    return found


def hits(scores: Tensor, t: Tensor, axis: Axis, what: str) -> Tensor:
    """Return a one-hot mask of the right classes; raise ``AxisError`` if ``t`` does not fit."""
    return onehot(check_class_numbers(scores, t, axis, what), axis, "bool")


def check_numbers(scores: Tensor, t: Tensor, axis: Axis, what: str) -> None:
    """Raise ``AxisError`` if ``t`` are no class numbers for the scores."""
    rest = scores.axes.without([axis])
    if not numbers(t, axis) or not t.axes.same_set(rest):
        raise AxisError(
            f"{user_call(what)}: {t} (made at {t.line_info}) of dtype {t.dtype.name} has no class "
            f"number for each score of {scores} (made at {scores.line_info}); give integers over "
            f"{rest}"
        )
