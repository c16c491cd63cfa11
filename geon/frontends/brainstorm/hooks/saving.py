"""Hooks that save networks and logs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..describable import Members
from ..errors import NetworkValidationError
from ..structure.network import Network
from ..tools import write_hdf5
from ..utils import Array
from .base import CriterionHook, Hook, Logs


class SaveBestNetwork(CriterionHook):
    """Save the network whenever a log is better than ever before.

    ``log_name`` is a dotted path into the logs, such as ``validation.Accuracy``. ``filename`` is
    that of the HDF5 file; without it, the hook keeps a copy of the parameters. ``timescale`` and
    ``interval`` are those of the hook that logs the value.
    """

    __undescribed__: ClassVar[Members] = {
        "parameters": None,
        "best_so_far": None,
        "best_t": None,
    }
    __default_values__ = {"filename": None}

    def __init__(
        self,
        log_name: str,
        filename: str | None = None,
        criterion: str = "max",
        *common: Any,
        **options: Any,
    ) -> None:
        super().__init__(log_name, criterion, *common, **options)
        self.filename = filename
        self.parameters: Array | None = None
        self.best_so_far: float | None = None
        self.best_t: int | None = None

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


class SaveLogs(Hook):
    """Save the logs of the trainer to an HDF5 file."""

    def __init__(self, filename: str, *common: Any, **options: Any) -> None:
        super().__init__(*common, **options)
        self.filename = filename

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Write the file anew."""
        with write_hdf5(self.filename, "Logs file v1.0") as file:
            self._save(file, logs)

    def _save(self, group: Any, logs: Logs) -> None:
        for name, log in logs.items():
            if isinstance(log, dict):
                self._save(group.create_group(name), log)
            else:
                group.create_dataset(name, data=np.array(log))


class SaveNetwork(Hook):
    """Save the network to an HDF5 file."""

    def __init__(self, filename: str, *common: Any, **options: Any) -> None:
        super().__init__(*common, **options)
        self.filename = filename

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Write the file anew."""
        net.save_as_hdf5(self.filename)

    def load_network(self) -> Any:
        """Return the saved network."""
        return Network.from_hdf5(self.filename)
