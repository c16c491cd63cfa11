"""Counts by inversion of the distribution function, for distributions of a small mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..op_graph import Tensor
from ..random.streams import BitStream
from ..regions.while_loop import while_loop
from ..rows.elementwise import greater_equal, where
from ..rows.logic import logical_and
from ..rows.reductions import any as any_of
from .continuous import full

SMALL_MEAN = 10.0  # means from which on rejection is used
MAX_COUNT = 128  # a count of a mean below 10 is larger with a probability below 1e-80
STEPS_AT_ONCE = 8  # terms added per pass over the elements


def inverted(
    stream: BitStream, first: Tensor, ratio: Callable[[Tensor], Tensor], is_small: Tensor
) -> Tensor:
    """Return counts for a distribution of the probability ``first`` of 0, where ``is_small``.

    ``ratio(k)`` is the probability of the count k over that of k - 1.
    Probabilities are subtracted from a uniform value until it is below the next one.
    """
    u = stream.uniform(first.axes, dtype=first.dtype)
    zero = full(0.0, first.axes, first.dtype)

    def goes_on(carries: Any) -> Tensor:
        rest, term, _ = carries
        return logical_and(is_small, greater_equal(rest, term))

    def add_terms(carries: Any) -> Any:
        for _ in range(STEPS_AT_ONCE):
            rest, term, count = carries
            more = goes_on(carries)
            following = count + 1.0
            carries = (
                where(more, rest - term, rest),
                where(more, term * ratio(following), term),
                where(more, following, count),
            )
        return carries

    last: tuple[Tensor, Tensor, Tensor] = while_loop(
        lambda carries: any_of(goes_on(carries)),
        add_terms,
        (u, first, zero),
        max_steps=MAX_COUNT // STEPS_AT_ONCE,
    )
    return last[2]
