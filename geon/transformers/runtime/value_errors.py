"""Errors about computed values: non-finite values, indices out of range, divergence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import ConvergenceError, IndexRangeError, LinearAlgebraError, NonFiniteError


def not_finite(count: int, total: int, first: Any) -> NonFiniteError:
    """Return the error for ``count`` non-finite values of ``total``; ``first`` is the first one."""
    return NonFiniteError(
        f"{count} of {total} values are not finite, the first is {first}; variables "
        "are as they were, and trace of the computation shows the values of all ops"
    )


CURE = "check the data, make the axis longer, or geon.clip them"
INT64_MAX = 2**63 - 1
# Ends the description of a kernel that checks convergence; errors recognise it by this.
UNCONVERGED = "did not converge"


def convergence_error(shown: str) -> ConvergenceError:
    """Return the error about a loop that did not converge, which ``shown`` describes."""
    return ConvergenceError(
        f"{shown}: the last step changed an element by more than the tolerance, or the values grew "
        "to infinity or NaN; variables are as they were; begin nearer to the solution, give a "
        "larger tolerance= or max_steps=, or ask with converged=True whether the loop converged"
    )


def outside(
    low: int, high: int, first: int, length: int, cure: str = CURE, held: bool = False
) -> IndexRangeError:
    """Return the error for indices ``low`` to ``high`` along an axis with indices from ``first``.

    If they are ``held`` (saturated), the largest int64 stands for all larger ones.
    """
    found = f"{low} to {high}" if low < high else str(low)
    if held and high == INT64_MAX:
        found += " or more"
    lie = f"positions must lie in {first} to {length - 1}: {cure}"
    empty = "there is no position in it: give an axis with elements"
    error = IndexRangeError(
        f"{found} where the axis has length {length}; {lie if length else empty}"
    )
    # Lets code that knows the op add details.
    error.positions = (low, high, first, length)  # type: ignore[attr-defined]
    return error


def unfactorised(number: int, batch: Iterable[tuple[str, int]]) -> LinearAlgebraError:
    """Return the error for a matrix that cannot be factorised.

    ``number`` is its row-major position along the axes of ``batch``, which have names and lengths.
    """
    places = []
    for name, length in reversed(list(batch)):
        number, place = divmod(number, length)
        places.append(f"{name} = {place}")
    at = f" at {', '.join(places[::-1])}" if places else ""
    return LinearAlgebraError(f"the matrix{at}; variables are as they were")
