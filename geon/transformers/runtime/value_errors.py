"""What kernels find wrong in values, as errors."""

from __future__ import annotations

from typing import Any

from ...errors import ConvergenceError, IndexRangeError, NonFiniteError


def not_finite(count: int, total: int, first: Any) -> NonFiniteError:
    """The error about so many of ``total`` values, of which ``first`` is the first."""
    return NonFiniteError(
        f"{count} of {total} values are not finite, the first is {first}; variables "
        "are as they were, and trace of the computation shows the values of all ops"
    )


CURE = "check the data, make the axis longer, or geon.clip them"
INT64_MAX = 2**63 - 1
# The last words about a kernel that checks whether a loop converged, by which errors know it.
UNCONVERGED = "did not converge"


def unconverged(shown: str) -> ConvergenceError:
    """Return the error about a loop that did not converge, which ``shown`` describes."""
    return ConvergenceError(
        f"{shown}: the last step changed an element by more than the tolerance, or the values grew "
        "to infinity or NaN; variables are as they were; begin nearer to the solution, give a "
        "larger tolerance= or max_steps=, or ask with converged=True whether the loop converged"
    )


def outside(
    low: int, high: int, first: int, length: int, cure: str = CURE, held: bool = False
) -> IndexRangeError:
    """The error about positions ``low`` to ``high`` along an axis, whose first is ``first``.

    Where they are ``held``, the largest of int64 stands for all that are larger.
    """
    found = f"{low} to {high}" if low < high else str(low)
    if held and high == INT64_MAX:
        found += " or more"
    lie = f"positions must lie in {first} to {length - 1}: {cure}"
    empty = "there is no position in it: give an axis with elements"
    error = IndexRangeError(
        f"{found} where the axis has length {length}; {lie if length else empty}"
    )
    # By these whoever knows the op can say more.
    error.positions = (low, high, first, length)  # type: ignore[attr-defined]
    return error
