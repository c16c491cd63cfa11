"""Numbers of turns that fill whole vectors, written so that a compiler sees it."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple


def whole(count: str, extent: Size, lanes: int) -> str:
    """The turns of a part of a loop as C, whose parts begin at multiples of ``lanes``.

    Where the loop's extent is such a multiple, so is the count, and masking it changes nothing; but
    a compiler then leaves out the two copies of a body that are for what does not fill a vector.
    """
    if is_multiple(extent, lanes):
        return f"({count}) & -{lanes}"
    return count
