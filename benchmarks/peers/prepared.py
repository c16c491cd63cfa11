"""What a contender makes of a workload, and the figures that all contenders share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .workloads import Sizes

Array = np.ndarray[Any, Any]

RATE, MOMENTUM = 0.1, 0.9  # of the training steps
ADAM_RATE, BETA1, BETA2, ADAM_EPSILON = 0.1, 0.9, 0.999, 1e-8
NORM_EPSILON = 1e-5
# Of the networks. With a smaller epsilon Adam's first steps would be signs of what is rounding.
NET_RATE, NET_DECAY, NET_EPSILON, ROTARY = 0.01, 0.1, 1e-4, 10000.0
STEPS_CHECKED = 3  # training steps whose losses and movements are compared


@dataclass
class Prepared:
    """A workload, ready to run.

    ``call`` is one repetition, whose result is there when it returns. ``results`` is called once,
    before any call, and gives the arrays to compare. ``memory`` is the bytes beside inputs and
    state: intermediate values and results, where the contender can say.
    """

    call: Callable[[], Any]
    results: Callable[[], list[Array]]
    memory: Callable[[], int | None] = lambda: None


Builder = Callable[[Sizes, dict[str, Any]], Prepared]


def arrays(values: Any) -> list[Array]:
    """One array or several, as a list of NumPy arrays."""
    listed = values if isinstance(values, (list, tuple)) else [values]
    return [np.asarray(value) for value in listed]


def plain(call: Callable[[], Any], memory: Callable[[], int | None] = lambda: None) -> Prepared:
    """A workload without state, whose call returns what is to be compared."""
    return Prepared(call, lambda: arrays(call()), memory)


def stepping(
    call: Callable[[], Any],
    state: Callable[[], Sequence[Any]],
    memory: Callable[[], int | None] = lambda: None,
) -> Prepared:
    """A training step: its losses, and how far a few of them move the state, are compared."""

    def results() -> list[Array]:
        before = [np.array(value) for value in state()]
        losses = [float(np.asarray(call())) for _ in range(STEPS_CHECKED)]
        after = arrays(list(state()))
        moved = [new - old for new, old in zip(after, before, strict=True)]
        return [np.array(losses), *moved]

    return Prepared(call, results, memory)
