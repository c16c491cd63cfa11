"""Hooks that save networks and logs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..describable import described, hidden, option
from ..errors import NetworkValidationError
from ..structure.network import Network
from ..utils import Array, open_hdf5
from .base import CriterionHook, Hook, Logs


@described
class SaveBestNetwork(CriterionHook):
    """Save the network whenever a log is better than ever before.

    ``log_name`` is a dotted path into the logs, such as ``validation.Accuracy``. ``filename`` is
    that of the HDF5 file; without it, the hook keeps a copy of the parameters. ``timescale`` and
    ``interval`` are those of the hook that logs the value.
    """

    log_name: str
    filename: str | None = option(default=None)
    criterion: str = "max"
    parameters: Array | None = hidden(default=None)
    best_so_far: float | None = hidden(default=None)
    best_t: int | None = hidden(default=None)

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Save the network if the last value of the log is the best."""
        values = self.values(logs, epoch_nr)
        if not values or np.isnan(values[-1]):
            return
        last, best = values[-1], self.best_so_far
        if best is not None and self.is_at_least_as_good(best, last):
            self.message(
                f"Last saved parameters at {self.timescale} {self.best_t}, when {self.log_name} "
                f"was {best}"
            )
            return
        self.best_so_far = last
        self.best_t = epoch_nr if self.timescale == "epoch" else update_nr
        kept = "Caching parameters" if self.filename is None else f"Saving to {self.filename}"
        self.message(f"{self.log_name} improved (criterion: {self.criterion}). {kept}")
        if self.filename is None:
            self.parameters = net.get("parameters")
        else:
            net.save_as_hdf5(self.filename)

    def load_best_network(self) -> Any:
        """Return the network in the file, or the best parameters if there is no file name."""
        if self.best_t is None:
            raise NetworkValidationError(
                f"{self.__name__}: no network was saved, because {self.log_name} had no value yet; "
                "train first"
            )
        return self.parameters if self.filename is None else Network.from_hdf5(self.filename)


@described
class SaveLogs(Hook):
    """Save the logs of the trainer to an HDF5 file."""

    filename: str

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Write the file anew."""
        with open_hdf5(self.filename, "Logs file v1.0") as file:
            self._save(file, logs)

    def _save(self, group: Any, logs: Logs) -> None:
        for name, log in logs.items():
            if isinstance(log, dict):
                self._save(group.create_group(name), log)
            else:
                group.create_dataset(name, data=np.array(log))


@described
class SaveNetwork(Hook):
    """Save the network to an HDF5 file."""

    filename: str

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Write the file anew."""
        net.save_as_hdf5(self.filename)

    def load_network(self) -> Any:
        """Return the saved network."""
        return Network.from_hdf5(self.filename)
