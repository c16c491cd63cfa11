"""Callbacks: progress, checkpoints, early stopping, and a stop at what is not finite."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....errors import ArgumentError, UnavailableError
from ....op_graph.core.argument_hints import check_flag
from ..checks import at_least_one, made_folder
from ..checks import path as as_path
from .run import Callback, Run

EPOCH_FILE = re.compile(r"epoch-(\d+)\.safetensors")


class Progress(Callback):
    """A bar of tqdm for each epoch, with the cost; ``options`` are tqdm's.

    Raises ``UnavailableError`` where tqdm is not installed.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.bar: Any = None

    def begin(self, run: Run) -> None:
        """Open the bar of the first epoch."""
        self._open(run)

    def after_batch(self, run: Run) -> None:
        """Go on by one, and show the cost."""
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
    """A callback that watches a figure of the epochs, and keeps the best one, if any is watched."""

    def __init__(self, figure: str | None, highest: bool, name: str) -> None:
        check_flag(type(self).__name__, "highest", highest)
        self.figure, self.highest, self.key = figure, highest, f"{name}.{figure}.best"
        worst = -math.inf if highest else math.inf
        self.numbers: Mapping[str, float] = {} if figure is None else {self.key: worst}

    def better(self, run: Run) -> bool:
        """Whether the last epoch's figure is the best so far; it is kept then."""
        if self.figure is None:
            return False
        if self.figure not in run.figures:
            raise ArgumentError(
                f"{type(self).__name__}: there is no figure {self.figure!r} of an epoch; there are "
                f"{', '.join(map(repr, run.figures))}{self._cure(run)}"
            )
        value, best = run.figures[self.figure], run.model.number(self.key)
        if not (value > best if self.highest else value < best):
            return False
        run.model.set_number(self.key, value)
        return True

    def _cure(self, run: Run) -> str:
        """What to do about a figure that there is not."""
        name = str(self.figure)
        if name.startswith("validation ") and name.removeprefix("validation ") in run.figures:
            return "; give fit validation= data"
        import difflib  # here because only this message needs it

        near = difflib.get_close_matches(name, run.figures, 1)
        return f"; did you mean {near[0]!r}?" if near else ""


class Checkpoints(Watcher):
    """Checkpoints in a folder: ``epoch-3.safetensors`` and so on, and ``best.safetensors``.

    One is written after each ``every`` epochs, and of these the last ``keep`` stay, or all.
    ``best`` is a figure such as "validation cost"; the lowest counts, or with ``highest`` the
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
        """Make the folder."""
        made_folder("Checkpoints", self.folder)

    def after_epoch(self, run: Run) -> None:
        """Write what is due."""
        best = self.better(run)
        if run.epoch % self.every == 0:
            run.model.save(self.path(run.epoch))
            if self.keep is not None:
                for epoch in self.epochs(run.epoch)[: -self.keep]:
                    self.path(epoch).unlink(missing_ok=True)
        if best:
            run.model.save(self.folder / "best.safetensors")

    def end(self, run: Run) -> None:
        """Write one where training was interrupted."""
        if run.interrupted:
            run.model.save(self.folder / "interrupted.safetensors")

    def epochs(self, last: int) -> list[int]:
        """The epochs up to the ``last`` one that the folder has files of, by other runs too."""
        found = [EPOCH_FILE.fullmatch(file.name) for file in self.folder.iterdir()]
        numbers = [int(match[1]) for match in found if match is not None]
        return sorted([number for number in numbers if number <= last])

    def path(self, epoch: int) -> Path:
        """The file of an epoch."""
        return self.folder / f"epoch-{epoch}.safetensors"


class EarlyStopping(Watcher):
    """End training when a figure has not become better for ``patience`` epochs.

    The lowest counts, or with ``highest`` the highest.
    """

    def __init__(
        self, figure: str = "validation cost", patience: int = 5, *, highest: bool = False
    ) -> None:
        super().__init__(figure, highest, "early_stopping")
        at_least_one("EarlyStopping", "patience", patience)
        self.patience, self.waited = patience, f"early_stopping.{figure}.waited"
        self.numbers = {**self.numbers, self.waited: 0.0}

    def begin(self, run: Run) -> None:
        """Stop at once where the run that goes on was stopped."""
        self._look(run)

    def after_epoch(self, run: Run) -> None:
        """Count, or begin to count anew."""
        waited = 0.0 if self.better(run) else run.model.number(self.waited) + 1
        run.model.set_number(self.waited, waited)
        self._look(run)

    def _look(self, run: Run) -> None:
        if run.model.number(self.waited) >= self.patience:
            run.stop = f"{self.figure} has not become better for {self.patience} epochs"


class StopOnNaN(Callback):
    """End training at the first value that is not finite: ``run.error`` names its op and line.

    Variables are as they were before that step. Looking at each value takes time. A slope that
    overflows is such a value, too, though ``Scaled`` would leave out its step.
    """

    checked = True
