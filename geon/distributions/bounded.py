"""Continuous families between bounds, and on the circle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import geon

from ..op_graph.building.constants import as_tensor
from ..op_graph.draws.truncated import truncated_quantile
from ..op_graph.draws.von_mises_derivative import mean_cosine_parts
from ..op_graph.random.parameters import AT_LEAST_ZERO, POSITIVE, known_values, refuse
from .base import BETWEEN, UNIT, Distribution, Support, family
from .formulas import (
    HALF_LOG_2PI,
    log_beta,
    log_binomial,
    log_minus,
)

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor


@family
class BoundedFamily(Distribution):
    """The base of families between ``low`` and ``high``; refuses constant bounds out of order."""

    def __post_init__(self: Any) -> None:
        low, high = (known_values(as_tensor(getattr(self, name))) for name in ("low", "high"))
        if low is not None and high is not None and not np.all(low < high):
            given = f"low = {self.low} and high = {self.high}"
            refuse(type(self).__name__, given, "a low below high")
        Distribution.__post_init__(self)


@family
class Uniform(BoundedFamily):
    """The uniform distribution from ``low`` to ``high``."""

    low: Any = 0.0
    high: Any = 1.0

    support = BETWEEN

    def _log_prob(self, x: Tensor) -> Tensor:
        return -geon.log(self.high - self.low) + 0.0 * x

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.uniform(axes, self.low, self.high, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return (x - self.low) / (self.high - self.low)

    def _quantile(self, p: Tensor) -> Tensor:
        return self.low + p * (self.high - self.low)

    @property
    def mean(self) -> Tensor:
        """The middle between the bounds."""
        return self._full(0.5 * (self.low + self.high))

    @property
    def variance(self) -> Tensor:
        """(high - low)^2 / 12."""
        return self._full(geon.square(self.high - self.low) * (1 / 12))

    def entropy(self) -> Tensor:
        """Return log(high - low)."""
        return self._full(geon.log(self.high - self.low))


@family
class Beta(Distribution):
    """The beta distribution, of the density x^(a - 1) (1 - x)^(b - 1), normalised."""

    a: Any = 1.0
    b: Any = 1.0

    requirements: ClassVar = {"a": POSITIVE, "b": POSITIVE}
    support = UNIT

    def _log_prob(self, x: Tensor) -> Tensor:
        at_edge = geon.logical_or(geon.equal(x, 0.0), geon.equal(x, 1.0))
        y = geon.where(at_edge, 0.5, x)
        total = self.a + self.b
        made = log_binomial(self.a, total, y, 1.0 - y) - geon.log(y) - geon.log1p(-y)
        made = made + geon.log(self.a) + geon.log(self.b / total)
        powers = geon.xlogy(self.a - 1.0, x) + geon.xlog1py(self.b - 1.0, -x)
        return geon.where(at_edge, powers - log_beta(self.a, self.b), made)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.beta(axes, self.a, self.b, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.betainc(self.a, self.b, x)

    @property
    def mean(self) -> Tensor:
        """a / (a + b)."""
        return self._full(self.a / (self.a + self.b))

    @property
    def variance(self) -> Tensor:
        """a b / ((a + b)^2 (a + b + 1))."""
        total = self.a + self.b
        return self._full((self.a / total) * (self.b / total) / (total + 1.0))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        a, b = self.a, self.b
        first, second = (a - 1.0) * geon.digamma(a), (b - 1.0) * geon.digamma(b)
        made = log_beta(a, b) - first - second + (a + b - 2.0) * geon.digamma(a + b)
        return self._full(made)


@family
class TruncatedNormal(BoundedFamily):
    """The normal distribution of ``location`` and ``scale`` between ``low`` and ``high``.

    The bounds are values, not multiples of ``scale``, and may be infinite. Tails are computed as
    logarithms, so they may lie far from ``location``.
    """

    location: Any = 0.0
    scale: Any = 1.0
    low: Any = -2.0
    high: Any = 2.0

    requirements: ClassVar = {"scale": POSITIVE}
    support = Support(
        BETWEEN.words,
        BETWEEN.contains,
        lambda d: geon.minimum(geon.maximum(d.location, d.low), d.high),
    )

    def _bounds(self) -> tuple[Tensor, Tensor]:
        """Return the bounds in multiples of ``scale`` from ``location``."""
        return (self.low - self.location) / self.scale, (self.high - self.location) / self.scale

    def _log_mass(self, first: Tensor, last: Tensor) -> Tensor:
        """Return the logarithm of the standard normal probability between two values."""
        is_high = first + last > 0
        low = geon.where(is_high, -last, first)
        high = geon.where(is_high, -first, last)
        return log_minus(geon.log_ndtr(high), geon.log_ndtr(low))

    def _log_prob(self, x: Tensor) -> Tensor:
        z = (x - self.location) / self.scale
        mass = self._log_mass(*self._bounds())
        return -0.5 * geon.square(z) - HALF_LOG_2PI - geon.log(self.scale) - mass

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.truncated_normal(
            axes, self.location, self.scale, self.low, self.high, self.dtype
        )

    def _cdf(self, x: Tensor) -> Tensor:
        first, last = self._bounds()
        z = (x - self.location) / self.scale
        return geon.exp(self._log_mass(first, z) - self._log_mass(first, last))

    def _quantile(self, p: Tensor) -> Tensor:
        first, last = self._bounds()
        made = self.location + self.scale * truncated_quantile(p, 1.0 - p, first, last)
        return geon.minimum(geon.maximum(made, self.low), self.high)

    def _edges(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the standard densities at both bounds, and these times the bounds."""
        mass = self._log_mass(*self._bounds())
        found = []
        for bound in self._bounds():
            finite = geon.isfinite(bound)
            z = geon.where(finite, bound, 0.0)
            density = geon.exp(-0.5 * geon.square(z) - HALF_LOG_2PI - mass)
            found.append(geon.where(finite, density, 0.0))
            found.append(geon.where(finite, z * density, 0.0))
        return found[0], found[2], found[1], found[3]

    @property
    def mean(self) -> Tensor:
        """location + scale (phi(low) - phi(high)), of the truncated standard density phi."""
        at_low, at_high, _, _ = self._edges()
        return self._full(self.location + self.scale * (at_low - at_high))

    @property
    def variance(self) -> Tensor:
        """scale^2 (1 + low phi(low) - high phi(high) - (phi(low) - phi(high))^2)."""
        at_low, at_high, low, high = self._edges()
        spread = 1.0 + low - high - geon.square(at_low - at_high)
        return self._full(geon.square(self.scale) * spread)

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        _, _, low, high = self._edges()
        mass = self._log_mass(*self._bounds())
        made = geon.log(self.scale) + mass + (0.5 + HALF_LOG_2PI) + 0.5 * (low - high)
        return self._full(made)


@family
class VonMises(Distribution):
    """The von Mises distribution of angles, of the density exp(concentration cos(x - location)).

    Its mean is that of the circle, ``location``, and its variance 1 less the mean cosine.
    """

    location: Any = 0.0
    concentration: Any = 1.0

    requirements: ClassVar = {"concentration": AT_LEAST_ZERO}
    support = Support(
        "angles from -pi to pi",
        lambda d, x: geon.absolute(x) <= 1.0000002 * math.pi,  # pi in float32 is above pi
        lambda d: 0.0,
    )

    def _log_prob(self, x: Tensor) -> Tensor:
        # cos(t) - 1 as -2 sin(t / 2)^2, which keeps its digits near 0.
        turn = -2.0 * geon.square(geon.sin(0.5 * (x - self.location)))
        scaled, _ = mean_cosine_parts(self.concentration)
        return self.concentration * turn - math.log(2 * math.pi) - geon.log(scaled)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.von_mises(axes, self.location, self.concentration, self.dtype)

    @property
    def mean(self) -> Tensor:
        """The mean direction, ``location``."""
        return self._full(self.location)

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        scaled, rest = mean_cosine_parts(self.concentration)
        return self._full(rest / scaled)

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        scaled, rest = mean_cosine_parts(self.concentration)
        made = geon.log(scaled) + self.concentration * (rest / scaled)
        return self._full(made + math.log(2 * math.pi))
