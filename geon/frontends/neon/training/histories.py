"""Callbacks that keep the figures of epochs: in files, as pictures, and what time they took."""

from __future__ import annotations

import importlib
import json
import math
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....errors import ArgumentError, UnavailableError
from ..checks import made_folder
from ..checks import path as as_path
from .run import Callback, Run


class History(Callback):
    """The figures of each epoch: ``records``, and with ``path`` a line of JSON for each.

    A file that is there is gone on with; what it has of epochs that are done again is taken out,
    and so is a last line of which a run that broke off has written a part. Raises ``ArgumentError``
    for a file of anything else.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else as_path(type(self).__name__, "path", path)
        self.records: list[dict[str, Any]] = []

    def begin(self, run: Run) -> None:
        """Read what is there, and make the folder."""
        if self.path is not None:
            made_folder(type(self).__name__, self.path.parent)
        if self.path is not None and self.path.exists():
            self.records = self.read(self.path)
        self.records = [record for record in self.records if record["epoch"] <= run.epoch]
        if self.path is not None:
            self.write(self.path)

    def after_epoch(self, run: Run) -> None:
        """Add the figures."""
        self.records.append({"epoch": run.epoch, **self.kept(run)})
        if self.path is not None:
            self.add(self.path)

    def kept(self, run: Run) -> dict[str, Any]:
        """The figures of an epoch; JSON has no numbers that are not finite, so these are texts."""
        return {k: v if math.isfinite(v) else str(v) for k, v in run.figures.items()}

    def read(self, path: Path) -> list[dict[str, Any]]:
        """The records of a file."""
        lines, found = path.read_text(encoding="utf-8", errors="replace").splitlines(), []
        for number, line in enumerate(lines, 1):
            record = as_record(line)
            if record is not None:
                found.append(record)
            elif number < len(lines) and line.strip():
                raise ArgumentError(
                    f"{type(self).__name__}: line {number} of {path} is no record of an epoch: "
                    f"{line[:60]!r}; take it out, or give another path"
                )
        return found

    def write(self, path: Path) -> None:
        """Write a file with all records."""
        made = path.with_name(f"{path.name}.new")  # a run that breaks off here leaves the old one
        made.write_text("".join([json.dumps(record) + "\n" for record in self.records]))
        os.replace(made, path)

    def add(self, path: Path) -> None:
        """Write the last record behind the others."""
        with path.open("a") as file:
            file.write(json.dumps(self.records[-1]) + "\n")


class HDF5History(History):
    """The figures of each epoch: ``records``, and a data set for each figure in an HDF5 file.

    Data sets are float64 along the epochs, whose numbers are in ``epoch``, an int64 one; a figure
    that an epoch has not is NaN there. A file that is there is gone on with, as in ``History``.
    Raises ``UnavailableError`` where h5py is not installed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.h5py = optional("h5py", "HDF5History writes files", "h5py")

    def kept(self, run: Run) -> dict[str, Any]:
        """The figures of an epoch as they are."""
        return dict(run.figures)

    def read(self, path: Path) -> list[dict[str, Any]]:
        """The records of a file."""
        if not self.h5py.is_hdf5(path):
            raise ArgumentError(
                f"HDF5History: {path} is no file of HDF5; take it away, or give another path"
            )
        try:
            with self.h5py.File(path, "r") as file:
                columns = {name: file[name][:].tolist() for name in self._names(file)}
        except OSError as error:
            raise ArgumentError(
                f"HDF5History: {path} cannot be read ({error}); take it away, or give another path"
            ) from None
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def write(self, path: Path) -> None:
        """Write a file with all records."""
        whole, self.records = self.records, []
        made = path.with_name(f"{path.name}.new")  # a run that breaks off here leaves the old one
        with self.h5py.File(made, "w") as file:
            file.create_dataset("epoch", (0,), "int64", maxshape=(None,))
        for record in whole:
            self.records.append(record)
            self.add(made)
        os.replace(made, path)

    def add(self, path: Path) -> None:
        """Write the last record behind the others."""
        with self.h5py.File(path, "a") as file:
            count = len(file["epoch"]) + 1
            for name in self.records[-1].keys() - set(self._names(file)):
                nothing = float("nan")
                file.create_dataset(name, (0,), "float64", maxshape=(None,), fillvalue=nothing)
            for name in self._names(file):
                file[name].resize((count,))
            for name, value in self.records[-1].items():
                file[name][count - 1] = value

    def _names(self, file: Any) -> list[str]:
        """Those of the data sets; one with a / is in a group."""
        found: list[str] = []
        sets = self.h5py.Dataset
        file.visititems(lambda name, part: found.append(name) if isinstance(part, sets) else None)
        return found


class TensorBoard(Callback):
    """The figures of each epoch as scalars in an event file of TensorBoard, in ``folder``.

    "validation cost" is ``validation/cost`` there. A run that goes on writes a file of its own,
    which has TensorBoard leave out what others have of epochs that are done again. Raises
    ``UnavailableError`` where tensorboardX is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder, self.writer = as_path("TensorBoard", "folder", folder), None
        self.events: Any = optional("tensorboardX", "TensorBoard writes files", "tensorboardX")

    def begin(self, run: Run) -> None:
        """Open a file."""
        options: dict[str, Any] = {"purge_step": run.epoch + 1} if run.epoch else {}
        # names have the second when they were made; two runs in one are told by how many there are
        number = len(list(self.folder.glob("events.*")))
        options["filename_suffix"] = f".{number}"
        self.writer = self.events.SummaryWriter(os.fspath(self.folder), **options)

    def after_epoch(self, run: Run) -> None:
        """Add the figures."""
        assert self.writer is not None
        for name, value in run.figures.items():
            self.writer.add_scalar(name.replace(" ", "/"), value, run.epoch)
        self.writer.flush()

    def end(self, run: Run) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class Curves(Callback):
    """A picture of the figures of a ``history`` over the epochs, written when training ends.

    Costs are above, by a logarithm where all are positive, and the other figures below. The format
    is that of the ending of ``path``, such as ``.png`` or ``.svg``. Raises ``UnavailableError``
    where Matplotlib is not installed.
    """

    def __init__(self, history: History, path: str | os.PathLike[str]) -> None:
        if not isinstance(history, History):
            raise ArgumentError(
                f"Curves: history={history!r}; give the neon.History() that is among the callbacks"
            )
        self.history, self.path = history, as_path("Curves", "path", path)
        self.figures: Any = optional("matplotlib.figure", "Curves draws pictures", "matplotlib")
        known = self.figures.Figure().canvas.get_supported_filetypes()
        if self.path.suffix.removeprefix(".").lower() not in known:
            raise ArgumentError(
                f"Curves: path={os.fspath(path)!r} ends in no format of pictures; give one that "
                f"ends in {', '.join('.' + ending for ending in known)}"
            )

    def begin(self, run: Run) -> None:
        """Make the folder."""
        made_folder("Curves", self.path.parent)

    def end(self, run: Run) -> None:
        """Draw all that the history has."""
        names = list(dict.fromkeys(name for r in self.history.records for name in r))
        costs = [name for name in names if name.endswith("cost")]
        others = [name for name in names if name not in ("epoch", *costs)]
        groups = [group for group in (costs, others) if group]
        figure = self.figures.Figure(layout="constrained")
        for place, group in enumerate(groups):
            plot = figure.add_subplot(len(groups), 1, place + 1)
            self._draw(plot, group)
        figure.savefig(self.path)

    def _draw(self, plot: Any, names: Sequence[str]) -> None:
        lowest = math.inf
        for name in names:
            rows = [(r["epoch"], float(r[name])) for r in self.history.records if name in r]
            epochs, values = zip(*rows, strict=True)
            lowest = min(lowest, *values)
            plot.plot(epochs, values, label=name, marker="." if len(rows) == 1 else "")
        if all(name.endswith("cost") for name in names) and lowest > 0:
            plot.set_yscale("log")
        plot.set_xlabel("epoch")
        plot.legend()


class Timing(Callback):
    """What time epochs take: ``records`` with the figures of each, in seconds.

    ``seconds`` is that of the whole epoch, with its validation, ``batches`` how many it had,
    ``batch`` the median of what it took from one batch to the next; NaN where there was none.
    """

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.ends: list[float] = []

    def begin(self, run: Run) -> None:
        """Look at the clock."""
        self.ends = [time.perf_counter()]

    def after_batch(self, run: Run) -> None:
        """Look at the clock."""
        self.ends.append(time.perf_counter())

    def after_epoch(self, run: Run) -> None:
        """Keep the times."""
        took = [end - begin for begin, end in zip(self.ends, self.ends[1:], strict=False)]
        now = time.perf_counter()
        self.records.append({
            "epoch": run.epoch,
            "seconds": now - self.ends[0],
            "batches": len(took),
            "batch": statistics.median(took) if took else float("nan"),
        })  # fmt: skip
        self.ends = [now]


def as_record(line: str) -> dict[str, Any] | None:
    """The figures of an epoch that a line of JSON has; None where it has none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("epoch"), int) else None


def optional(module: str, what: str, package: str) -> Any:
    """A module of a package that geon does not need; ``UnavailableError`` says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnavailableError(
            f"{what} with {package}, which is not installed: pip install {package}"
        ) from None
