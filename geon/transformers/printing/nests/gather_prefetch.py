"""Text of the prefetches of gathered rows."""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import Size


@dataclass(frozen=True, slots=True)
class PrintedLookup:
    """Text of a prefetch in loop ``variable``.

    After the statements ``before``, it fetches the ``size`` bytes at ``start``: the row that is
    read ``PREFETCH_DISTANCE_ROWS`` iterations later.
    """

    variable: str
    before: tuple[str, ...]
    start: str
    size: Size
