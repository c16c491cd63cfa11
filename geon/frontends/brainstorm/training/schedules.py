"""Schedules: values of a stepper's attribute by the number of the epoch or update.

``hooks.ModifyStepperAttribute`` calls a schedule with the number of epochs or updates that are
done, so with 0 before the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..describable import Describable, described, option
from ..errors import ValidationError

__all__ = ["DecreaseAfterEpoch", "Exponential", "Linear", "MultiStep", "Schedule"]


class Schedule(Describable):
    """Base of schedules; a subclass defines ``value``, or ``__call__``."""

    def __call__(
        self,
        epoch_nr: int,
        update_nr: int,
        timescale: str,
        interval: int,
        net: Any,
        stepper: Any,
        logs: dict[str, Any],
    ) -> float:
        """Return the value at this time; ``interval`` numbers of it share a value."""
        return self.value((epoch_nr if timescale == "epoch" else update_nr) // interval)

    def value(self, number: int) -> float:
        """Return the value after so many intervals."""
        raise NotImplementedError


@described
class Linear(Schedule):
    """From ``initial_value`` to ``final_value`` in ``num_changes`` equal changes."""

    initial_value: float
    final_value: float
    num_changes: int

    def __complete__(self) -> None:
        if self.num_changes < 1:
            raise ValidationError(f"Linear: num_changes={self.num_changes!r}; give at least 1")

    def value(self, number: int) -> float:
        """Return the value after so many changes."""
        if number >= self.num_changes:
            return self.final_value
        change = (self.final_value - self.initial_value) / self.num_changes
        return self.initial_value + change * number


@described
class Exponential(Schedule):
    """``initial_value``, times ``factor`` in each change, from ``minimum`` to ``maximum``."""

    initial_value: float
    factor: float
    minimum: float = option(default=-np.inf)
    maximum: float = option(default=np.inf)

    def value(self, number: int) -> float:
        """Return the value after so many changes."""
        return min(self.maximum, max(self.minimum, self.initial_value * self.factor**number))


@described
class MultiStep(Schedule):
    """``initial_value``, and from each of ``steps`` on the one of ``values`` beside it."""

    initial_value: float
    steps: Sequence[int]
    values: Sequence[float]

    def __complete__(self) -> None:
        self.steps, self.values = list(self.steps), list(self.values)
        if len(self.steps) != len(self.values) or self.steps != sorted(self.steps):
            raise ValidationError(
                f"MultiStep: steps={self.steps} and values={self.values}; give ascending steps, "
                "and one value for each"
            )

    def value(self, number: int) -> float:
        """Return the value after so many epochs or updates."""
        return [self.initial_value, *self.values][bisect_right(self.steps, number)]


@described
class DecreaseAfterEpoch(Schedule):
    """``initial_value`` for the first ``T`` epochs, then initial_value T / (epoch number)."""

    initial_value: float
    T: int

    def __call__(
        self,
        epoch_nr: int,
        update_nr: int,
        timescale: str,
        interval: int,
        net: Any,
        stepper: Any,
        logs: dict[str, Any],
    ) -> float:
        """Return the value in the epoch after ``epoch_nr``, on any timescale."""
        return self.initial_value * self.T / max(epoch_nr + 1, self.T)
