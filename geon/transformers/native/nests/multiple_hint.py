"""Write trip counts so that the compiler sees that they are multiples of the vector width."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple


def masked_count(count: str, extent: Size, lanes: int) -> str:
    """Return the trip count of a part of a loop as C, with a mask that shows a multiple of
    ``lanes``.

    Parts begin at multiples of ``lanes``. If the loop's extent is a multiple too, the mask changes
    nothing, but the compiler then omits the two copies of the body for incomplete vectors.
    """
    if is_multiple(extent, lanes):
        return f"({count}) & -{lanes}"
    return count
