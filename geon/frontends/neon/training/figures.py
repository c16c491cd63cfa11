"""Figures of a model: checks that their names differ, and the mask of elements that count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....errors import ArgumentError, AxisError, DTypeError
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.movement import broadcast
from ..metrics import Mean, Metric


def checked_figures(cost: Callable[[Tensor, Tensor], Tensor], metrics: Sequence[Metric]) -> None:
    """Raise ``ArgumentError`` for metrics with equal names."""
    names = [Mean(cost).name]
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise ArgumentError(
                f"{user_call('Model')}: {metric!r} is no metric; give one such as "
                "neon.metrics.Accuracy()"
            )
        if metric.name in names:
            raise ArgumentError(
                f"{user_call('Model')}: {metric!r} is called {metric.name!r}, as another figure "
                "is; there are "
                f"{', '.join(map(repr, names))}: give it another name="
            )
        names.append(metric.name)


def over_all(mask: Tensor, figures: Tensor) -> Tensor:
    """Return a mask over the axes of these figures; raise for another dtype or other axes."""
    if mask.dtype.name != "bool":
        raise DTypeError(
            f"{user_call('Model')}: the mask {mask} (made at {mask.line_info}) is "
            f"{mask.dtype.name}; give truth "
            "values, which hold where a figure counts"
        )
    if len(mask.axes.without(figures.axes)):
        raise AxisError(
            f"{user_call('Model')}: the mask {mask} (made at {mask.line_info}) is to say what "
            f"counts of {figures} "
            f"(made at {figures.line_info}), and is over other axes; give a cost and metrics with "
            "a figure for each of its elements"
        )
    return broadcast(mask, figures.axes)
