"""Loop steps in errors: ``error.steps`` has (axis, step) pairs, outermost loop first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Failed = TypeVar("Failed", bound=Exception)


def at_step(error: Failed, axis: str, step: int) -> Failed:
    """Prepend a loop's axis and step to an error's ``steps``, and return the error."""
    inner = getattr(error, "steps", ())
    error.steps = ((axis, step), *inner)  # type: ignore[attr-defined]  # read by shown_steps
    return error


def at_steps(error: Failed, loops: Sequence[tuple[str, int]], number: int) -> Failed:
    """Set an error's ``steps`` for loops along axes of these lengths, outermost first.

    ``number`` is the flat index of the step over all loops, in row-major order.
    """
    for axis, length in reversed(loops):
        number, step = divmod(number, length)
        at_step(error, axis, step)
    return error


def shown_steps(error: Exception) -> str:
    """Return an error's loop steps as text; empty if there are none."""
    steps: Iterable[tuple[str, int]] = getattr(error, "steps", ())
    listed = ", ".join([f"step {step} along {axis}" for axis, step in steps])
    return f", at {listed}" if listed else ""
