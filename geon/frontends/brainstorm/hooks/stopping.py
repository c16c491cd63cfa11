"""Hooks that stop a training."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..describable import described, hidden, option
from ..utils import get_by_path
from .base import CriterionHook, Hook, Iterators, Logs


@described
class EarlyStopper(CriterionHook):
    """Stop when a log has not improved for ``patience`` values.

    ``log_name`` is a dotted path into the logs. ``timescale`` and ``interval`` are those of the
    hook that logs the value.
    """

    log_name: str
    patience: int = option(default=1)
    criterion: str = "min"

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Raise ``StopIteration`` if the best value is too long ago."""
        values = self.values(logs, epoch_nr)
        if not values:
            return
        best = int(np.argmin(values) if self.criterion == "min" else np.argmax(values))
        if len(values) > best + self.patience:
            self.message(
                f"Stopping because {self.log_name} did not improve for {self.patience} checks "
                f"(criterion: {self.criterion})"
            )
            raise StopIteration


@described
class StopAfterEpoch(Hook):
    """Stop after ``max_epochs`` epochs."""

    max_epochs: int

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Raise ``StopIteration`` after the last epoch."""
        if epoch_nr >= self.max_epochs:
            self.message(f"Stopping after the last of {self.max_epochs} epochs")
            raise StopIteration


@described
class StopAfterThresholdReached(CriterionHook):
    """Stop when a log is at ``threshold`` or beyond: below it for ``min``, above for ``max``."""

    log_name: str
    threshold: float
    criterion: str = "min"

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Raise ``StopIteration`` if one of the values is at the threshold."""
        if any(self.is_at_least_as_good(v, self.threshold) for v in self.values(logs, epoch_nr)):
            self.message(
                f"Stopping because {self.log_name} has reached the threshold {self.threshold} "
                f"(criterion: {self.criterion})"
            )
            raise StopIteration


@described
class StopOnNan(Hook):
    """Stop when parameters, the training loss or ``logs_to_check`` are infinite or NaN."""

    logs_to_check: str | Iterable[str] = ()
    check_parameters: bool = True
    check_training_loss: bool = True

    def __complete__(self) -> None:
        super().__complete__()
        logs = self.logs_to_check
        self.logs_to_check = [logs] if isinstance(logs, str) else list(logs)

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Raise ``StopIteration`` at a value that is not finite."""
        for log_name in self.logs_to_check:
            self._stop_unless(np.isfinite(get_by_path(logs, log_name)).all(), log_name)
        if self.check_parameters:
            finite = net.handler.is_fully_finite(net.buffer.parameters)
            self._stop_unless(finite, "parameters")
        losses = logs.get("rolling_training", {}).get("total_loss", [])
        if self.check_training_loss:
            self._stop_unless(np.isfinite(losses).all(), "the rolling training loss")

    def _stop_unless(self, finite: bool, what: str) -> None:
        if not finite:
            self.message(f"NaN or inf detected in {what}!")
            raise StopIteration


@described
class StopOnSigQuit(Hook):
    r"""Stop at the next call of the hook after a SIGQUIT (Ctrl + \)."""

    quit: bool = hidden(default=False)
    previous: Any = hidden(default=None)

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Install the handler of the signal."""
        super().start(net, stepper, verbose, named_data_iters)
        self.quit = False
        self.previous = signal.signal(signal.SIGQUIT, self.receive_signal)

    def finish(self) -> None:
        """Install the former handler of the signal again."""
        if self.previous is not None:
            signal.signal(signal.SIGQUIT, self.previous)
            self.previous = None

    def receive_signal(self, signum: int, stack: Any) -> None:
        """Remember the signal."""
        self.message("Interrupting")
        self.quit = True

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Raise ``StopIteration`` if a signal has come."""
        if self.quit:
            raise StopIteration("Received SIGQUIT signal.")
