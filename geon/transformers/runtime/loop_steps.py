"""At which steps of loops a call failed: errors have them as ``steps``, outermost loop first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Failed = TypeVar("Failed", bound=Exception)


def at_step(error: Failed, axis: str, step: int) -> Failed:
    """An error from inside a step of a loop along an axis, which knows that step too."""
    inner = getattr(error, "steps", ())
    error.steps = ((axis, step), *inner)  # type: ignore[attr-defined]  # read by shown_steps
    return error


def at_steps(error: Failed, loops: Sequence[tuple[str, int]], number: int) -> Failed:
    """An error from loops along axes of these lengths, the outermost first, which knows its steps.

    ``number`` counts the steps of all loops in their nest, as positions of an array are counted.
    """
    for axis, length in reversed(loops):
        number, step = divmod(number, length)
        at_step(error, axis, step)
    return error


def shown_steps(error: Exception) -> str:
    """The steps that an error knows, as a part of a message; empty where there are none."""
    steps: Iterable[tuple[str, int]] = getattr(error, "steps", ())
    listed = ", ".join([f"step {step} along {axis}" for axis, step in steps])
    return f", at {listed}" if listed else ""
