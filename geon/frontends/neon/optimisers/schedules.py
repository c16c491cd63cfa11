"""Schedules: learning rates as functions of the number of the step, which begins at 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....errors import ArgumentError
from ....op_graph.axes import Axis
from ....op_graph.composites import clip
from ....op_graph.constants import as_tensor, constant
from ....op_graph.elementwise import cast, floor, maximum, minimum, power, where
from ....op_graph.indexing import gather
from ....op_graph.op_graph import Tensor
from ....op_graph.trigonometry import cos

Schedule: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Fixed:
    """The same rate at all steps."""

    rate: float

    def __call__(self, step: Tensor) -> Tensor:
        return as_tensor(self.rate)


@dataclass(frozen=True)
class Step:
    """``rate``, times ``factor`` after each ``every`` steps."""

    rate: float
    every: int
    factor: float = 0.1

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(self.factor, floor(step / self.every))


@dataclass(frozen=True)
class Exponential:
    """``rate``, times ``factor`` after each step."""

    rate: float
    factor: float

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(self.factor, step)


@dataclass(frozen=True)
class Inverse:
    """rate / (1 + factor step) ** exponent."""

    rate: float
    factor: float
    exponent: float = 1.0

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(1 + self.factor * step, -self.exponent)


@dataclass(frozen=True)
class Polynomial:
    """From ``rate`` to ``last`` in ``steps`` steps, as (1 - step / steps) ** exponent."""

    rate: float
    steps: int
    exponent: float = 1.0
    last: float = 0.0

    def __call__(self, step: Tensor) -> Tensor:
        left = clip(1 - step / self.steps, 0, 1)
        return self.last + (self.rate - self.last) * power(left, self.exponent)


@dataclass(frozen=True)
class Cosine:
    """From ``rate`` to ``last`` in ``steps`` steps, as half a turn of a cosine.

    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    """

    rate: float
    steps: int
    last: float = 0.0

    def __call__(self, step: Tensor) -> Tensor:
        return between(self.rate, self.last, step / self.steps)


@dataclass(frozen=True)
class WarmUp:
    """Up to the first rate of ``then`` in ``steps`` even steps, and from there ``then``."""

    steps: int
    then: Schedule

    def __call__(self, step: Tensor) -> Tensor:
        rising = self.then(as_tensor(0.0)) * ((step + 1) / self.steps)
        return where(step < self.steps, rising, self.then(maximum(step - self.steps, 0)))


@dataclass(frozen=True)
class OneCycle:
    """From ``highest / first`` up to ``highest``, then down to ``highest / first / last``.

    As half turns of a cosine, the first in the share ``rise`` of ``steps``. L. Smith and N. Topin,
    "Super-convergence: very fast training of neural networks using large learning rates", 2018.
    """

    highest: float
    steps: int
    rise: float = 0.3
    first: float = 25.0
    last: float = 1e4

    def __call__(self, step: Tensor) -> Tensor:
        top = self.rise * self.steps - 1
        start = self.highest / self.first
        up = between(start, self.highest, step / top if top > 0 else step * 0 + 1)
        down = between(self.highest, start / self.last, (step - top) / (self.steps - 1 - top))
        return where(step < top, up, down)


class Given:
    """The rate of each step from a list; the last one stays."""

    def __init__(self, rates: Sequence[float]) -> None:
        if not len(rates):
            raise ArgumentError("Given: no rate was given; give a list of at least one")
        self.rates = tuple(float(rate) for rate in rates)

    def __call__(self, step: Tensor) -> Tensor:
        axis = Axis("step", len(self.rates))
        number = cast(minimum(step, len(self.rates) - 1), "int64")
        return gather(constant(list(self.rates), axis), number, axis)


def between(begin: float, end: float, part: Tensor) -> Tensor:
    """From one rate to another as half a turn of a cosine, where ``part`` goes from 0 to 1."""
    return end + (begin - end) * (1 + cos(math.pi * clip(part, 0, 1))) / 2
