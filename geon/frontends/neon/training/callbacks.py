"""Callbacks: progress bar, checkpoints, early stopping, and stop at non-finite values."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....errors import ArgumentError, UnavailableError
from ....op_graph.core.source_info import user_call
from ..checks import at_least_one, made_folder
from ..checks import path as as_path
from .run import Callback, Run

EPOCH_FILE = re.compile(r"epoch-(\d+)\.safetensors")


class Progress(Callback):
    """A tqdm progress bar for each epoch, with the cost; ``options`` are tqdm's.

    Raises ``UnavailableError`` if tqdm is not installed.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.bar: Any = None

    def begin(self, run: Run) -> None:
        """Open the bar of the first epoch."""
        self._open(run)

    def after_batch(self, run: Run) -> None:
        """Advance by one, and show the cost."""
        self.bar.update()
        self.bar.set_postfix(cost=f"{run.cost:.4f}", refresh=False)

    def after_epoch(self, run: Run) -> None:
        """Show the figures, and open the bar of the next epoch."""
        self.bar.set_postfix({name: f"{value:.4f}" for name, value in run.figures.items()})
        self.bar.close()
        self._open(run)

    def end(self, run: Run) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()

    def _open(self, run: Run) -> None:
        try:
            from tqdm import tqdm
        except ImportError:
            raise UnavailableError(
                "Progress shows bars of tqdm, which is not installed: pip install tqdm"
            ) from None
        if run.epoch < run.epochs and run.stop is None:
            title = f"epoch {run.epoch + 1}/{run.epochs}"
            options = {"unit": "batch", "disable": None, **self.options}
            self.bar = tqdm(total=run.batches, initial=run.batch, desc=title, **options)


class Watcher(Callback):
    """Base of callbacks that keep the best value of a figure of epochs; None for no figure."""

    def __init__(self, figure: str | None, highest: bool, name: str) -> None:
        self.figure, self.highest, self.key = figure, highest, f"{name}.{figure}.best"
        worst = -math.inf if highest else math.inf
        self.numbers: Mapping[str, float] = {} if figure is None else {self.key: worst}

    def better(self, run: Run) -> bool:
        """Return True if the last epoch's figure is the best so far, and store it."""
        if self.figure is None:
            return False
        if self.figure not in run.figures:
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: there is no figure {self.figure!r} of an "
                "epoch; there are "
                f"{', '.join(map(repr, run.figures))}{self._cure(run)}"
            )
        value, best = run.figures[self.figure], run.model.number(self.key)
        if not (value > best if self.highest else value < best):
            return False
        run.model.set_number(self.key, value)
        return True

    def _cure(self, run: Run) -> str:
        """Return the hint for a figure that does not exist."""
        name = str(self.figure)
        if name.startswith("validation ") and name.removeprefix("validation ") in run.figures:
            return "; give fit validation= data"
        import difflib  # imported here because only this message needs it

        near = difflib.get_close_matches(name, run.figures, 1)
        return f"; did you mean {near[0]!r}?" if near else ""


class Checkpoints(Watcher):
    """Checkpoints in a folder: ``epoch-3.safetensors`` and so on, and ``best.safetensors``.

    One is written after every ``every`` epochs, and the last ``keep`` of them are kept, or all.
    ``best`` is a figure such as "validation cost"; the lowest is best, or with ``highest`` the
    highest. A run that is interrupted writes ``interrupted.safetensors``.
    """

    saves = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int = 1,
        keep: int | None = None,
        best: str | None = None,
        highest: bool = False,
    ) -> None:
        super().__init__(best, highest, "checkpoints")
        at_least_one("Checkpoints", "every", every)
        if keep is not None:
            at_least_one("Checkpoints", "keep", keep)
        self.folder = as_path("Checkpoints", "folder", folder)
        self.every, self.keep = every, keep

    def begin(self, run: Run) -> None:
        """Create the folder."""
        made_folder("Checkpoints", self.folder)

    def after_epoch(self, run: Run) -> None:
        """Write the checkpoints that are due."""
        best = self.better(run)
        if run.epoch % self.every == 0:
            run.model.save(self.path(run.epoch))
            if self.keep is not None:
                for epoch in self.epochs(run.epoch)[: -self.keep]:
                    self.path(epoch).unlink(missing_ok=True)
        if best:
            run.model.save(self.folder / "best.safetensors")

    def end(self, run: Run) -> None:
        """Write a checkpoint if training was interrupted."""
        if run.interrupted:
            run.model.save(self.folder / "interrupted.safetensors")

    def epochs(self, last: int) -> list[int]:
        """Return the epochs up to ``last`` that have files in the folder, of any run."""
        found = [EPOCH_FILE.fullmatch(file.name) for file in self.folder.iterdir()]
        numbers = [int(match[1]) for match in found if match is not None]
        return sorted([number for number in numbers if number <= last])

    def path(self, epoch: int) -> Path:
        """Return the file of an epoch."""
        return self.folder / f"epoch-{epoch}.safetensors"


class EarlyStopping(Watcher):
    """Ends training when a figure has not improved for ``patience`` epochs.

    The lowest is best, or with ``highest`` the highest.
    """

    def __init__(
        self, figure: str = "validation cost", patience: int = 5, *, highest: bool = False
    ) -> None:
        super().__init__(figure, highest, "early_stopping")
        at_least_one("EarlyStopping", "patience", patience)
        self.patience, self.waited = patience, f"early_stopping.{figure}.waited"
        self.numbers = {**self.numbers, self.waited: 0.0}

    def begin(self, run: Run) -> None:
        """Stop at once if the resumed run was stopped."""
        self._look(run)

    def after_epoch(self, run: Run) -> None:
        """Count the epoch, or reset the count."""
        waited = 0.0 if self.better(run) else run.model.number(self.waited) + 1
        run.model.set_number(self.waited, waited)
        self._look(run)

    def _look(self, run: Run) -> None:
        if run.model.number(self.waited) >= self.patience:
            run.stop = f"{self.figure} has not become better for {self.patience} epochs"


class StopOnNaN(Callback):
    """Ends training at the first value that is not finite: ``run.error`` names its op and line.

    Variables are as they were before that step. Checking each value takes time. A gradient that
    overflows is such a value, too, though ``Scaled`` would skip its step.
    """

    checked = True
