"""Running log-sum-exp, as a linear recurrence below the running maximum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Unpack

from ..building.constants import as_tensor
from ..building.resolve_axes import axis_of
from ..building.weak import exact, like
from ..op_graph import Tensor
from ..regions.associative_scan import linear_recurrence
from ..rows.accumulation import floating, widen
from ..rows.elementwise import equal, exp, isfinite, log, stop_gradient, subtract, where
from ..rows.logic import logical_or
from ..rows.sort_and_cumulative import cummax
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxisLike, Named, TensorLike


@composite
def logcumsumexp(
    x: TensorLike,
    axis: AxisLike | None = None,
    *,
    reverse: bool = False,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the running log(sum(exp(x))) of ``x`` along ``axis``, without overflow.

    Element i is that of the elements up to i; ``reverse`` runs from the end. It is -inf as long as
    all elements are -inf. Integers and bool give float32. The sums are those of exp(x - m) for the
    running maximum m, which is scaled down whenever m grows.
    """
    x = floating(as_tensor(x))
    along = axis_of(x, axis, "logcumsumexp")
    wide = widen(exact(x))
    largest = stop_gradient(cummax(wide, along, reverse=reverse))
    before = stop_gradient(cummax(wide, along, exclusive=True, reverse=reverse))
    is_infinite = equal(largest, math.inf)
    # Nothing comes before the first finite element, and +inf replaces what comes before it.
    starts = logical_or(equal(before, -math.inf), is_infinite)
    scale = where(starts, 0, exp(where(starts, 0, before - largest)))
    shift = where(isfinite(largest), largest, 0)
    terms = exp(subtract(wide, shift))
    sums = linear_recurrence(scale, terms, along, exclusive=False, reverse=bool(reverse))
    none = equal(sums, 0)
    result = where(none, -math.inf, log(where(none, 1, sums)) + shift)
    return like(where(is_infinite, math.inf, result), x)
