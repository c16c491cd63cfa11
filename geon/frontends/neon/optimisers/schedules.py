"""Schedules: learning rates as functions of the number of the step, which begins at 0.

They raise ``ArgumentError`` for rates and factors that are negative or not finite, and for numbers
of steps that are not positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....errors import ArgumentError
from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import as_tensor, constant
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import clip
from ....op_graph.op_graph import Tensor
from ....op_graph.rows.elementwise import cast, floor, maximum, minimum, power, where
from ....op_graph.rows.indexing import gather
from ....op_graph.rows.trigonometry import cos
from ....op_graph.syntax.operators import is_function
from ..checks import above_zero, finite, not_negative

Schedule: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Fixed:
    """A constant rate."""

    rate: float

    def __post_init__(self) -> None:
        not_negative("Fixed", "rate", self.rate)

    def __call__(self, step: Tensor) -> Tensor:
        return as_tensor(self.rate)


@dataclass(frozen=True)
class Step:
    """``rate``, times ``factor`` after every ``every`` steps."""

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        not_negative("Step", "rate", self.rate)
        above_zero("Step", "every", self.every)
        not_negative("Step", "factor", self.factor)

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(self.factor, floor(step / self.every))


@dataclass(frozen=True)
class Exponential:
    """``rate``, times ``factor`` after each step."""

    rate: float
    factor: float

    def __post_init__(self) -> None:
        not_negative("Exponential", "rate", self.rate)
        not_negative("Exponential", "factor", self.factor)

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(self.factor, step)


@dataclass(frozen=True)
class Inverse:
    """rate / (1 + factor step) ** exponent."""

    rate: float
    factor: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        not_negative("Inverse", "rate", self.rate)
        not_negative("Inverse", "factor", self.factor)
        not_negative("Inverse", "exponent", self.exponent)

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate * power(1 + self.factor * step, -self.exponent)


@dataclass(frozen=True)
class Polynomial:
    """From ``rate`` to ``last`` in ``steps`` steps, as (1 - step / steps) ** exponent."""

    rate: float
    steps: int
    exponent: float = 1.0
    last: float = 0.0

    def __post_init__(self) -> None:
        not_negative("Polynomial", "rate", self.rate)
        above_zero("Polynomial", "steps", self.steps)
        not_negative("Polynomial", "exponent", self.exponent)
        not_negative("Polynomial", "last", self.last)

    def __call__(self, step: Tensor) -> Tensor:
        left = clip(1 - step / self.steps, 0, 1)
        return self.last + (self.rate - self.last) * power(left, self.exponent)


@dataclass(frozen=True)
class Cosine:
    """From ``rate`` to ``last`` in ``steps`` steps, along half a period of a cosine.

    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    """

    rate: float
    steps: int
    last: float = 0.0

    def __post_init__(self) -> None:
        not_negative("Cosine", "rate", self.rate)
        above_zero("Cosine", "steps", self.steps)
        not_negative("Cosine", "last", self.last)

    def __call__(self, step: Tensor) -> Tensor:
        return cosine_between(self.rate, self.last, step / self.steps)


@dataclass(frozen=True)
class WarmUp:
    """Rises linearly to the first rate of ``then`` in ``steps`` steps, then follows ``then``."""

    steps: int
    then: Schedule

    def __post_init__(self) -> None:
        not_negative("WarmUp", "steps", self.steps)
        if not is_function(self.then):
            raise ArgumentError(
                f"{user_call('WarmUp')}: then={self.then!r} is no schedule; give one, such as "
                "neon.schedules.Fixed(0.1)"
            )

    def __call__(self, step: Tensor) -> Tensor:
        if not self.steps:
            return self.then(step)
        rising = self.then(as_tensor(0.0)) * ((step + 1) / self.steps)
        return where(step < self.steps, rising, self.then(maximum(step - self.steps, 0)))


@dataclass(frozen=True)
class OneCycle:
    """From ``highest / first`` up to ``highest``, then down to ``highest / first / last``.

    Both along half a period of a cosine; the rise takes the share ``rise`` of ``steps``. L. Smith
    and N. Topin, "Super-convergence: very fast training of neural networks using large learning
    rates", 2018.
    """

    highest: float
    steps: int
    rise: float = 0.3
    first: float = 25.0
    last: float = 1e4

    def __post_init__(self) -> None:
        not_negative("OneCycle", "highest", self.highest)
        above_zero("OneCycle", "steps", self.steps)
        if not (finite(self.rise) and 0 <= self.rise <= 1):
            raise ArgumentError(
                f"{user_call('OneCycle')}: rise={self.rise!r} of the steps; give one from 0 to 1"
            )
        above_zero("OneCycle", "first", self.first)
        above_zero("OneCycle", "last", self.last)

    def __call__(self, step: Tensor) -> Tensor:
        top = self.rise * self.steps - 1
        start = self.highest / self.first
        up = cosine_between(start, self.highest, step / top if top > 0 else step * 0 + 1)
        fall = self.steps - 1 - top or 1  # no descent if it rises to the end
        down = cosine_between(self.highest, start / self.last, (step - top) / fall)
        return where(step < top, up, down)


class Given:
    """The rate of each step from a list; the last one is kept."""

    def __init__(self, rates: Sequence[float]) -> None:
        if not isinstance(rates, Iterable) or not len(rates):
            raise ArgumentError(
                f"{user_call('Given')}: no rate was given; give a list of at least one"
            )
        for number, rate in enumerate(rates):
            not_negative("Given", f"rates[{number}]", rate)
        self.rates = tuple(float(rate) for rate in rates)

    def __call__(self, step: Tensor) -> Tensor:
        axis = Axis("step", len(self.rates))
        number = cast(minimum(step, len(self.rates) - 1), "int64")
        return gather(constant(list(self.rates), axis), number, axis)


def cosine_between(begin: float, end: float, part: Tensor) -> Tensor:
    """Return a rate along half a period of a cosine; ``part`` goes from 0 to 1."""
    return end + (begin - end) * (1 + cos(math.pi * clip(part, 0, 1))) / 2
