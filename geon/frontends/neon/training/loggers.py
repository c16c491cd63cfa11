"""Callbacks that record epochs: figures in files, as plots, and timings."""

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
from ....op_graph.core.source_info import user_call
from ..checks import made_folder
from ..checks import path as as_path
from .run import Callback, Run


class History(Callback):
    """The figures of each epoch: ``records``, and with ``path`` a line of JSON for each.

    An existing file is continued; records of epochs that are repeated are removed, and so is an
    incomplete last line of a run that was killed. Raises ``ArgumentError`` for any other file.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else as_path(type(self).__name__, "path", path)
        self.records: list[dict[str, Any]] = []

    def begin(self, run: Run) -> None:
        """Read an existing file, and create the folder."""
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
        """Return the figures of an epoch; non-finite ones as text, since JSON lacks them."""
        return {k: v if math.isfinite(v) else str(v) for k, v in run.figures.items()}

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the records of a file."""
        lines, found = path.read_text(encoding="utf-8", errors="replace").splitlines(), []
        for number, line in enumerate(lines, 1):
            record = as_record(line)
            if record is not None:
                found.append(record)
            elif number < len(lines) and line.strip():
                raise ArgumentError(
                    f"{user_call(type(self).__name__)}: line {number} of {path} is no record of "
                    "an epoch: "
                    f"{line[:60]!r}; take it out, or give another path"
                )
        return found

    def write(self, path: Path) -> None:
        """Write a file with all records."""
        made = path.with_name(f"{path.name}.new")  # a run that is killed here leaves the old file
        made.write_text("".join([json.dumps(record) + "\n" for record in self.records]))
        os.replace(made, path)

    def add(self, path: Path) -> None:
        """Append the last record."""
        with path.open("a") as file:
            file.write(json.dumps(self.records[-1]) + "\n")


class HDF5History(History):
    """The figures of each epoch: ``records``, and a dataset for each figure in an HDF5 file.

    Datasets are float64 along the epochs, whose numbers are in ``epoch``, an int64 one; a figure
    that an epoch lacks is NaN. An existing file is continued, as in ``History``. Raises
    ``UnavailableError`` if h5py is not installed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.h5py = optional("h5py", "HDF5History writes files", "h5py")

    def kept(self, run: Run) -> dict[str, Any]:
        """Return the figures of an epoch unchanged."""
        return dict(run.figures)

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the records of a file."""
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
        made = path.with_name(f"{path.name}.new")  # a run that is killed here leaves the old file
        with self.h5py.File(made, "w") as file:
            file.create_dataset("epoch", (0,), "int64", maxshape=(None,))
        for record in whole:
            self.records.append(record)
            self.add(made)
        os.replace(made, path)

    def add(self, path: Path) -> None:
        """Append the last record."""
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
        """Return the names of the datasets; one with a / is in a group."""
        found: list[str] = []
        sets = self.h5py.Dataset
        file.visititems(lambda name, part: found.append(name) if isinstance(part, sets) else None)
        return found


class TensorBoard(Callback):
    """The figures of each epoch as scalars in a TensorBoard event file, in ``folder``.

    "validation cost" is ``validation/cost`` there. A resumed run writes a new file, which makes
    TensorBoard ignore records in older files of epochs that are repeated. Raises
    ``UnavailableError`` if tensorboardX is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder, self.writer = as_path("TensorBoard", "folder", folder), None
        self.events: Any = optional("tensorboardX", "TensorBoard writes files", "tensorboardX")

    def begin(self, run: Run) -> None:
        """Open a file."""
        options: dict[str, Any] = {"purge_step": run.epoch + 1} if run.epoch else {}
        # names contain the second of creation; the suffix distinguishes runs in the same second
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
    """A plot of the figures of a ``history`` over the epochs, written when training ends.

    Costs are at the top, on a logarithmic scale if all are positive, and the other figures below.
    The format follows from the suffix of ``path``, such as ``.png`` or ``.svg``. Raises
    ``UnavailableError`` if Matplotlib is not installed.
    """

    def __init__(self, history: History, path: str | os.PathLike[str]) -> None:
        if not isinstance(history, History):
            raise ArgumentError(
                f"{user_call('Curves')}: history={history!r}; give the neon.History() that is "
                "among the callbacks"
            )
        self.history, self.path = history, as_path("Curves", "path", path)
        self.figures: Any = optional("matplotlib.figure", "Curves draws pictures", "matplotlib")
        known = self.figures.Figure().canvas.get_supported_filetypes()
        if self.path.suffix.removeprefix(".").lower() not in known:
            raise ArgumentError(
                f"{user_call('Curves')}: path={os.fspath(path)!r} ends in no format of pictures; "
                "give one that "
                f"ends in {', '.join('.' + ending for ending in known)}"
            )

    def begin(self, run: Run) -> None:
        """Create the folder."""
        made_folder("Curves", self.path.parent)

    def end(self, run: Run) -> None:
        """Plot all records of the history."""
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
    """The times of epochs: ``records``, in seconds.

    ``seconds`` is the time of the whole epoch with its validation, ``batches`` the number of
    batches, and ``batch`` the median time from one batch to the next, NaN without batches.
    """

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.ends: list[float] = []

    def begin(self, run: Run) -> None:
        """Read the clock."""
        self.ends = [time.perf_counter()]

    def after_batch(self, run: Run) -> None:
        """Read the clock."""
        self.ends.append(time.perf_counter())

    def after_epoch(self, run: Run) -> None:
        """Record the times."""
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
    """Return the record of an epoch in a line of JSON, or None."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("epoch"), int) else None


def optional(module: str, what: str, package: str) -> Any:
    """Return a module of an optional package; raise ``UnavailableError`` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnavailableError(
            f"{what} with {package}, which is not installed: pip install {package}"
        ) from None
