"""Choice of the axes that a layer works on, and unused names for new axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....errors import AxisError
from ....op_graph.axes.axes import Axes, Axis, as_axes
from ....op_graph.building.resolve_axes import own_axis
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.movement import rename

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike, AxisLike


def resolve_over(
    x: Tensor, over: AxesLike | None, default: Axes, what: str, argument: str = "over"
) -> Axes:
    """Return the axes of ``x`` that ``over`` names, in x's order; without it, those of ``default``.

    Raises ``AxisError`` if ``over`` names another axis, or if there is no default.
    """
    if over is None:
        if not len(default):
            raise AxisError(
                f"{user_call(what)}: {x} (made at {x.line_info}) has no axis that is one of "
                f"features by its name; say which with {argument}="
            )
        return x.axes.only(default)
    listed: Any = [over] if isinstance(over, (str, Axis)) else over
    return x.axes.only([own_axis(x, axis, what) for axis in listed])


def made_apart(x: Tensor, inputs: Axes, outputs: Axes, what: str) -> tuple[Tensor, Axes]:
    """Return ``x`` and its ``inputs``, with primes added to names that ``outputs`` has too.

    Raises ``AxisError`` if an output has the name of an axis that stays.
    """
    kept = x.axes.without(inputs)
    for axis in outputs:
        if axis in kept:
            raise AxisError(
                f"{user_call(what)}: makes the axis {axis}, which {x} (made at {x.line_info}) has "
                "and keeps; name another, or sum over this one with over="
            )
    names: dict[AxisLike, Axis | str] = {}
    for axis in inputs:
        new = axis.name
        while new in outputs or (new != axis.name and (new in x.axes or new in names.values())):
            new += "'"
        if new != axis.name:
            names[axis.name] = new
    renamed = as_axes([axis.named(str(names.get(axis.name, axis.name))) for axis in inputs])
    return (rename(x, names) if names else x), renamed
