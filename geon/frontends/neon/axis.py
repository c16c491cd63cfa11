"""Axes of networks and their roles: ``from geon.frontends.neon import axis as ax``, then ``ax.N``.

All are of open length: each is its name, and ``geon.Axis("C", 3)`` takes the place of ``ax.C``.
What a layer takes for features follows from the roles; ``over=`` of the layer says otherwise.
"""

from __future__ import annotations

from ...op_graph.axes.axes import Axes
from ..base.axis import C, D, H, N, T, W, Y

__all__ = ["C", "D", "H", "N", "T", "W", "Y", "channel_axes", "feature_axes"]

BATCH, RECURRENT, SPATIAL = Axes(N), Axes(T), Axes(D, H, W)


def feature_axes(axes: Axes) -> Axes:
    """What describes one example at one time: the axes but N, the batch, and T, the time."""
    return axes.without(BATCH.names + RECURRENT.names)


def channel_axes(axes: Axes) -> Axes:
    """What describes one place of an image: the axes but N and T, and D, H and W, the places."""
    return feature_axes(axes).without(SPATIAL.names)
