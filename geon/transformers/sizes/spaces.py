"""The axes over which a kernel goes, and how many indices these have in a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...op_graph.axes.lengths import Length, evaluate

Space = frozenset[tuple[str, int | Length]]


def beyond_counting(spaces: Iterable[Space], lengths: Mapping[str, int]) -> int:
    """Bytes that stand for loops that cannot be counted in 64 bits, so that these are refused."""
    walked = 4 * max([walks(space, lengths) for space in spaces], default=0)
    return walked if walked >= 2**63 else 0


def walks(space: Space, lengths: Mapping[str, int]) -> int:
    """The indices that a kernel goes over; of an axis in parts and as a whole, the whole's."""
    longest: dict[str, int] = {}
    for name, length in space:
        longest[name] = max(longest.get(name, 0), evaluate(length, lengths))
    return math.prod(longest.values())
