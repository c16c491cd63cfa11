"""Hooks that log losses, scores and statistics of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..data_iterators import DataIterator
from ..describable import described, hidden
from ..errors import NetworkValidationError
from ..scorers import Scorer
from ..tools import evaluate
from ..utils import Array, PathError
from .base import Hook, Iterators, Logs


@described
class _MonitorLayer(Hook):
    """Base of monitors of a layer: minimum, mean and maximum of its buffers.

    ``groups`` maps names of groups of buffers to the names under which they are logged; None logs
    the buffers of a group without a name around them.
    """

    short: ClassVar[str]
    groups: ClassVar[dict[str, str | None]]

    layer_name: str

    def default_name(self) -> str:
        """Return the name by the layer."""
        return f"{self.short}_{self.layer_name}"

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Raise ``NetworkValidationError`` unless the network has the layer."""
        super().start(net, stepper, verbose, named_data_iters)
        if self.layer_name not in net.layers:
            raise NetworkValidationError(
                f"{self.__name__}: the network has no layer {self.layer_name!r}; it has "
                f"{', '.join(net.layers)}"
            )

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> Logs:
        """Return the statistics."""
        log: Logs = {}
        for group, title in self.groups.items():
            inner = log if title is None else log.setdefault(title, {})
            for key, view in net.buffer[self.layer_name][group].items():
                inner[key] = self.statistics(net.handler.get_numpy_copy(view))
        return log

    def statistics(self, values: Array) -> Logs:
        """Return the statistics of a buffer."""
        return _range(values)


class MonitorLayerDeltas(_MonitorLayer):
    """Log minimum, mean and maximum of the internals and the deltas of a layer."""

    short = "MonitorDeltas"
    groups = {
        "internals": None,
        "output_deltas": "output_deltas",
        "input_deltas": "input_deltas",
    }


class MonitorLayerGradients(_MonitorLayer):
    """Log minimum, mean and maximum of the gradients of a layer."""

    short = "MonitorGradients"
    groups = {"gradients": None}


class MonitorLayerInOuts(_MonitorLayer):
    """Log minimum, mean and maximum of the inputs and outputs of a layer."""

    short = "MonitorInOuts"
    groups = {"inputs": "inputs", "outputs": "outputs"}


class MonitorLayerParameters(_MonitorLayer):
    """Log minimum, mean and maximum of the parameters of a layer.

    For weights, the same of the L2 norms of the incoming weights of each unit.
    """

    short = "MonitorParameters"
    groups = {"parameters": None}

    def statistics(self, values: Array) -> Logs:
        """Return the statistics of a parameter."""
        log = _range(values)
        if values.ndim > 1:
            norms = np.linalg.norm(values.reshape(len(values), -1), axis=1)
            log |= {f"{key}_L2_norm": value for key, value in _range(norms).items()}
        return log


@described
class MonitorScores(Hook):
    """Log the losses of the network, and ``scorers``, on the data of an iterator.

    ``iter_name`` is the name by which ``Trainer.train`` is given the iterator.
    """

    iter_name: str
    scorers: Sequence[Scorer]
    iter: DataIterator | None = hidden(default=None)

    def __complete__(self) -> None:
        super().__complete__()
        self.scorers = list(self.scorers)

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Take the iterator; raise ``PathError``, a ``KeyError``, if there is none of its name."""
        super().start(net, stepper, verbose, named_data_iters)
        if self.iter_name not in named_data_iters:
            raise PathError(
                f"{self.__name__}: there is no iterator {self.iter_name!r} among "
                f"{', '.join(map(repr, named_data_iters))}; give it to train() by this name, as a "
                "keyword"
            )
        self.iter = named_data_iters[self.iter_name]

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> Logs:
        """Return losses and scores."""
        assert self.iter is not None
        return evaluate(net, self.iter, self.scorers)


@described
class MonitorLoss(MonitorScores):
    """Log the losses of the network on the data of an iterator."""

    scorers: Sequence[Scorer] = hidden(default=())


def _range(values: Array) -> Logs:
    return {
        "min": float(values.min()),
        "avg": float(values.mean()),
        "max": float(values.max()),
    }
