"""Axes of networks and their roles: ``from geon.frontends.neon import axis as ax``, then ``ax.N``.

All are of open length: each is identified by its name, and ``geon.Axis("C", 3)`` can be used
instead of ``ax.C``. The axes that a layer treats as features follow from the roles; ``over=`` of
the layer overrides this.
"""

from __future__ import annotations

from ...op_graph.axes.axes import Axes
from ..base.axis import C, D, H, N, T, W, Y

__all__ = ["C", "D", "H", "N", "T", "W", "Y", "channel_axes", "feature_axes"]

BATCH, RECURRENT, SPATIAL = Axes(N), Axes(T), Axes(D, H, W)


def feature_axes(axes: Axes) -> Axes:
    """The features of an example: all axes but N, the batch, and T, the time."""
    return axes.without(BATCH.names + RECURRENT.names)


def channel_axes(axes: Axes) -> Axes:
    """The channels of an image: all axes but N and T, and the spatial axes D, H and W."""
    return feature_axes(axes).without(SPATIAL.names)
