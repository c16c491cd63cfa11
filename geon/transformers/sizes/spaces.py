"""Iteration spaces of kernels, and their numbers of iterations in a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...op_graph.axes.lengths import Length, evaluate

Space = frozenset[tuple[str, int | Length]]


def beyond_counting(spaces: Iterable[Space], lengths: Mapping[str, int]) -> int:
    """Return 0, or bytes that exceed any budget if an iteration count does not fit into 64 bits."""
    walked = 4 * max([walks(space, lengths) for space in spaces], default=0)
    return walked if walked >= 2**63 else 0


def walks(space: Space, lengths: Mapping[str, int]) -> int:
    """Return the iterations of a space; an axis that occurs twice counts with the longer extent."""
    longest: dict[str, int] = {}
    for name, length in space:
        longest[name] = max(longest.get(name, 0), evaluate(length, lengths))
    return math.prod(longest.values())
