"""Continuous families of numbers above 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import geon

from ..op_graph.random.parameters import POSITIVE
from .base import ABOVE_0, FROM_0, FROM_SCALE, Distribution, family
from .formulas import EULER, HALF_LOG_2PI, log_poisson
from .location_scale import Normal

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor


@family
class Exponential(Distribution):
    """The exponential distribution of the mean ``scale``, the reciprocal of its rate."""

    scale: Any = 1.0

    requirements: ClassVar = {"scale": POSITIVE}
    support = FROM_0

    def _log_prob(self, x: Tensor) -> Tensor:
        return -x / self.scale - geon.log(self.scale)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.exponential(axes, self.scale, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return -geon.expm1(-x / self.scale)

    def _quantile(self, p: Tensor) -> Tensor:
        return -geon.log1p(-p) * self.scale

    @property
    def mean(self) -> Tensor:
        """scale."""
        return self._full(self.scale)

    @property
    def variance(self) -> Tensor:
        """scale^2."""
        return self._full(geon.square(self.scale))

    def entropy(self) -> Tensor:
        """Return 1 + log(scale)."""
        return self._full(1.0 + geon.log(self.scale))


@family
class Gamma(Distribution):
    """The gamma distribution, of the density x^(shape - 1) exp(-x / scale), normalised."""

    shape: Any = 1.0
    scale: Any = 1.0

    requirements: ClassVar = {"shape": POSITIVE, "scale": POSITIVE}
    support = FROM_0

    def _log_prob(self, x: Tensor) -> Tensor:
        z = x / self.scale
        is_zero = geon.equal(z, 0.0)
        some = geon.where(is_zero, 1.0, z)
        made = log_poisson(self.shape, some) + geon.log(self.shape) - geon.log(some)
        at_0 = geon.xlogy(self.shape - 1.0, z) - geon.lgamma(self.shape)
        return geon.where(is_zero, at_0, made) - geon.log(self.scale)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.gamma(axes, self.shape, self.scale, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.gammainc(self.shape, x / self.scale)

    @property
    def mean(self) -> Tensor:
        """shape scale."""
        return self._full(self.shape * self.scale)

    @property
    def variance(self) -> Tensor:
        """shape scale^2."""
        return self._full(self.shape * geon.square(self.scale))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        a = self.shape
        made = a + geon.lgamma(a) + (1.0 - a) * geon.digamma(a)
        return self._full(made + geon.log(self.scale))


@family
class ChiSquare(Distribution):
    """The distribution of a sum of ``degrees`` squares of standard normal values."""

    degrees: Any = 1.0

    requirements: ClassVar = {"degrees": POSITIVE}
    support = FROM_0

    @property
    def gamma(self) -> Gamma:
        """The same distribution as one of the gamma family."""
        return Gamma(0.5 * self.degrees, 2.0)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self.gamma._log_prob(x)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.chi_square(axes, self.degrees, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return self.gamma._cdf(x)

    @property
    def mean(self) -> Tensor:
        """degrees."""
        return self._full(self.degrees)

    @property
    def variance(self) -> Tensor:
        """2 degrees."""
        return self._full(2.0 * self.degrees)

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        return self.gamma.entropy()


@family
class InverseGamma(Distribution):
    """The distribution of ``scale`` divided by a standard gamma value of the shape ``shape``."""

    shape: Any = 1.0
    scale: Any = 1.0

    requirements: ClassVar = {"shape": POSITIVE, "scale": POSITIVE}
    support = ABOVE_0

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self.scale / x
        return log_poisson(self.shape, z) + geon.log(self.shape) - geon.log(x)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return self.scale / random.gamma(axes, self.shape, dtype=self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.gammaincc(self.shape, self.scale / x)

    @property
    def mean(self) -> Tensor:
        """scale / (shape - 1); infinite for a shape of at most 1."""
        a = geon.where(self.shape > 1, self.shape, 2.0)
        return self._full(geon.where(self.shape > 1, self.scale / (a - 1.0), math.inf))

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((shape - 1)^2 (shape - 2)); infinite for a shape of at most 2."""
        a = geon.where(self.shape > 2, self.shape, 3.0)
        made = geon.square(self.scale / (a - 1.0)) / (a - 2.0)
        return self._full(geon.where(self.shape > 2, made, math.inf))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        a = self.shape
        made = a + geon.lgamma(a) - (1.0 + a) * geon.digamma(a)
        return self._full(made + geon.log(self.scale))


@family
class Weibull(Distribution):
    """The Weibull distribution, F(x) = 1 - exp(-(x / scale)^shape)."""

    shape: Any = 1.0
    scale: Any = 1.0

    requirements: ClassVar = {"shape": POSITIVE, "scale": POSITIVE}
    support = FROM_0

    def _log_prob(self, x: Tensor) -> Tensor:
        z = x / self.scale
        powers = geon.xlogy(self.shape - 1.0, z) - geon.power(z, self.shape)
        return powers + geon.log(self.shape) - geon.log(self.scale)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.weibull(axes, self.shape, self.scale, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return -geon.expm1(-geon.power(x / self.scale, self.shape))

    def _quantile(self, p: Tensor) -> Tensor:
        return self.scale * geon.power(-geon.log1p(-p), 1.0 / self.shape)

    def _moment(self, k: float) -> Tensor:
        """Return the mean of (x / scale)^k."""
        return geon.exp(geon.lgamma(1.0 + k / self.shape))

    @property
    def mean(self) -> Tensor:
        """scale Gamma(1 + 1 / shape)."""
        return self._full(self.scale * self._moment(1.0))

    @property
    def variance(self) -> Tensor:
        """scale^2 (Gamma(1 + 2 / shape) - Gamma(1 + 1 / shape)^2)."""
        spread = self._moment(2.0) - geon.square(self._moment(1.0))
        return self._full(geon.square(self.scale) * spread)

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        made = EULER * (1.0 - 1.0 / self.shape) + 1.0
        return self._full(made + geon.log(self.scale / self.shape))


@family
class Pareto(Distribution):
    """The Pareto distribution, F(x) = 1 - (scale / x)^shape for x of at least ``scale``."""

    shape: Any = 1.0
    scale: Any = 1.0

    requirements: ClassVar = {"shape": POSITIVE, "scale": POSITIVE}
    support = FROM_SCALE

    def _log_prob(self, x: Tensor) -> Tensor:
        return geon.log(self.shape) - self.shape * geon.log(x / self.scale) - geon.log(x)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.pareto(axes, self.shape, self.scale, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return -geon.expm1(-self.shape * geon.log(x / self.scale))

    def _quantile(self, p: Tensor) -> Tensor:
        return self.scale * geon.exp(-geon.log1p(-p) / self.shape)

    @property
    def mean(self) -> Tensor:
        """scale shape / (shape - 1); infinite for a shape of at most 1."""
        a = geon.where(self.shape > 1, self.shape, 2.0)
        return self._full(geon.where(self.shape > 1, self.scale * (a / (a - 1.0)), math.inf))

    @property
    def variance(self) -> Tensor:
        """scale^2 shape / ((shape - 1)^2 (shape - 2)); infinite for a shape of at most 2."""
        a = geon.where(self.shape > 2, self.shape, 3.0)
        made = geon.square(self.scale / (a - 1.0)) * (a / (a - 2.0))
        return self._full(geon.where(self.shape > 2, made, math.inf))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        return self._full(geon.log(self.scale / self.shape) + 1.0 / self.shape + 1.0)


@family
class LogNormal(Distribution):
    """The distribution of exp(x) of a normal x with the mean ``location`` and std ``scale``."""

    location: Any = 0.0
    scale: Any = 1.0

    requirements: ClassVar = {"scale": POSITIVE}
    support = ABOVE_0

    @property
    def normal(self) -> Normal:
        """The distribution of logarithms."""
        return Normal(self.location, self.scale)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self.normal._log_prob(geon.log(x)) - geon.log(x)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return geon.exp(self.normal._sample(random, axes))

    def _cdf(self, x: Tensor) -> Tensor:
        return self.normal._cdf(geon.log(x))

    def _quantile(self, p: Tensor) -> Tensor:
        return geon.exp(self.normal._quantile(p))

    @property
    def mean(self) -> Tensor:
        """exp(location + scale^2 / 2)."""
        return self._full(geon.exp(self.location + 0.5 * geon.square(self.scale)))

    @property
    def variance(self) -> Tensor:
        """(exp(scale^2) - 1) exp(2 location + scale^2)."""
        square = geon.square(self.scale)
        return self._full(geon.expm1(square) * geon.exp(2.0 * self.location + square))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        return self._full(self.location + geon.log(self.scale) + (0.5 + HALF_LOG_2PI))
