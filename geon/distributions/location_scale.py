"""Families of a location and a scale: all facts are those of the standard member."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import geon

from ..op_graph.random.parameters import POSITIVE
from .base import FROM_0, Distribution, family
from .formulas import EULER, HALF_LOG_2PI, LOG_2, deviance, stirling_error

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor

PI = math.pi


@family
class LocationScale(Distribution):
    """The base of families of values ``location + scale * z`` with a standard variable z."""

    location: Any = 0.0
    scale: Any = 1.0

    requirements: ClassVar = {"scale": POSITIVE}
    draw: ClassVar[str]  # the method of geon.Random for standard values
    standard_mean: ClassVar[float] = 0.0
    standard_variance: ClassVar[float]
    standard_entropy: ClassVar[float]

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def _standard_cdf(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def _standard_quantile(self, p: Tensor) -> Tensor:
        raise NotImplementedError

    def _standard_sample(self, random: Random, axes: Axes) -> Tensor:
        made: Tensor = getattr(random, self.draw)(axes, dtype=self.dtype)
        return made

    def _log_prob(self, x: Tensor) -> Tensor:
        z = (x - self.location) / self.scale
        return self._standard_log_prob(z) - geon.log(self.scale)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return self._standard_sample(random, axes) * self.scale + self.location

    def _cdf(self, x: Tensor) -> Tensor:
        return self._standard_cdf((x - self.location) / self.scale)

    def _quantile(self, p: Tensor) -> Tensor:
        return self._standard_quantile(p) * self.scale + self.location

    @property
    def mean(self) -> Tensor:
        """``location`` plus the mean of the standard member times ``scale``."""
        return self._full(self.location + self.standard_mean * self.scale)

    @property
    def variance(self) -> Tensor:
        """The variance of the standard member times the square of ``scale``."""
        return self._full(self.standard_variance * geon.square(self.scale))

    def entropy(self) -> Tensor:
        """Return the entropy of the standard member plus the logarithm of ``scale``."""
        return self._full(geon.log(self.scale) + self.standard_entropy)


@family
class Normal(LocationScale):
    """The normal distribution of the mean ``location`` and the standard deviation ``scale``."""

    draw = "normal"
    standard_variance = 1.0
    standard_entropy = 0.5 + HALF_LOG_2PI

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -0.5 * geon.square(z) - HALF_LOG_2PI

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return geon.ndtr(z)

    def _standard_quantile(self, p: Tensor) -> Tensor:
        return math.sqrt(2) * geon.erfinv(2.0 * p - 1.0)


@family
class Laplace(LocationScale):
    """The Laplace distribution, of the density exp(-|x - location| / scale) / (2 scale)."""

    draw = "laplace"
    standard_variance = 2.0
    standard_entropy = 1 + LOG_2

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -geon.absolute(z) - LOG_2

    def _standard_cdf(self, z: Tensor) -> Tensor:
        tail = 0.5 * geon.exp(-geon.absolute(z))
        return geon.where(z < 0, tail, 1.0 - tail)

    def _standard_quantile(self, p: Tensor) -> Tensor:
        is_low = p < 0.5
        size = geon.log(2.0 * geon.where(is_low, p, 1.0 - p))
        return geon.where(is_low, size, -size)


@family
class Logistic(LocationScale):
    """The logistic distribution, whose distribution function is a sigmoid."""

    draw = "logistic"
    standard_variance = PI**2 / 3
    standard_entropy = 2.0

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        size = geon.absolute(z)
        return -size - 2.0 * geon.log1p(geon.exp(-size))

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return geon.sigmoid(z)

    def _standard_quantile(self, p: Tensor) -> Tensor:
        return geon.log(p) - geon.log1p(-p)


@family
class Gumbel(LocationScale):
    """The Gumbel distribution of maxima, F(x) = exp(-exp(-(x - location) / scale))."""

    draw = "gumbel"
    standard_mean = EULER
    standard_variance = PI**2 / 6
    standard_entropy = 1 + EULER

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        return -z - geon.exp(-z)

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return geon.exp(-geon.exp(-z))

    def _standard_quantile(self, p: Tensor) -> Tensor:
        return -geon.log(-geon.log(p))


@family
class Cauchy(LocationScale):
    """The Cauchy distribution of the median ``location``; mean and variance are NaN."""

    draw = "cauchy"
    standard_mean = math.nan
    standard_variance = math.nan
    standard_entropy = math.log(4 * PI)

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        size = geon.absolute(z)
        is_far = size > 1e9  # the square may be too large; 1 + z^2 is z^2
        near = geon.log1p(geon.square(geon.where(is_far, 0.0, z)))
        far = 2.0 * geon.log(geon.where(is_far, size, 1.0))
        return -geon.where(is_far, far, near) - math.log(PI)

    def _standard_cdf(self, z: Tensor) -> Tensor:
        return geon.atan2(1.0, -z) / PI

    def _standard_quantile(self, p: Tensor) -> Tensor:
        tail = geon.minimum(p, 1.0 - p)
        size = geon.where(tail < 0.25, 1.0 / geon.tan(PI * tail), geon.tan(PI * (0.5 - tail)))
        return geon.where(p < 0.5, -size, size)


@family
class StudentT(LocationScale):
    """Student's t distribution of ``degrees`` of freedom; its quantile has no closed form.

    The mean is NaN for at most 1 degree, the variance NaN for at most 1 and infinite up to 2.
    """

    location: Any = 0.0
    scale: Any = 1.0
    degrees: Any = 1.0

    requirements: ClassVar = {"scale": POSITIVE, "degrees": POSITIVE}

    def _standard_log_prob(self, z: Tensor) -> Tensor:
        half = 0.5 * self.degrees
        # Loader: the ratio of gamma functions by errors of Stirling's formula.
        ratio = stirling_error(half + 0.5) - stirling_error(half) - deviance(half, half + 0.5)
        return ratio - HALF_LOG_2PI - (half + 0.5) * geon.log1p(geon.square(z) / self.degrees)

    def _standard_sample(self, random: Random, axes: Axes) -> Tensor:
        return random.student_t(axes, self.degrees, dtype=self.dtype)

    def _standard_cdf(self, z: Tensor) -> Tensor:
        share = self.degrees / (self.degrees + geon.square(z))
        tail = 0.5 * geon.betainc(0.5 * self.degrees, 0.5, share)
        return geon.where(z < 0, tail, 1.0 - tail)

    def _quantile(self, p: Tensor) -> Tensor:
        return Distribution._quantile(self, p)

    @property
    def mean(self) -> Tensor:
        """``location`` for more than 1 degree of freedom, else NaN."""
        return self._full(geon.where(self.degrees > 1, self.location, math.nan))

    @property
    def variance(self) -> Tensor:
        """scale^2 degrees / (degrees - 2) for more than 2 degrees of freedom."""
        finite = geon.where(self.degrees > 2, self.degrees, 3.0)
        made = geon.square(self.scale) * (finite / (finite - 2.0))
        without = geon.where(self.degrees > 1, math.inf, math.nan)
        return self._full(geon.where(self.degrees > 2, made, without))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        half = 0.5 * self.degrees
        slopes = (half + 0.5) * (geon.digamma(half + 0.5) - geon.digamma(half))
        at_0 = self._standard_log_prob(geon.cast(0.0, self.dtype))
        return self._full(slopes - at_0 + geon.log(self.scale))


@family
class HalfDistribution(Distribution):
    """The base of families of absolute values of symmetric standard values times ``scale``."""

    scale: Any = 1.0

    requirements: ClassVar = {"scale": POSITIVE}
    support = FROM_0
    whole: ClassVar[type[LocationScale]]

    def _whole(self) -> LocationScale:
        return self.whole(0.0, self.scale)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._whole()._log_prob(x) + LOG_2

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return geon.absolute(self._whole()._sample(random, axes))

    def _quantile(self, p: Tensor) -> Tensor:
        return self._whole()._quantile(0.5 + 0.5 * p)

    def entropy(self) -> Tensor:
        """Return the differential entropy: log(2) below that of the symmetric distribution."""
        return self._whole().entropy() - LOG_2


@family
class HalfNormal(HalfDistribution):
    """The distribution of absolute values of normal values of mean 0 and deviation ``scale``."""

    whole = Normal

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.erf(x / self.scale * math.sqrt(0.5))

    def _quantile(self, p: Tensor) -> Tensor:
        return math.sqrt(2) * geon.erfinv(p) * self.scale

    @property
    def mean(self) -> Tensor:
        """scale sqrt(2 / pi)."""
        return self._full(self.scale * math.sqrt(2 / PI))

    @property
    def variance(self) -> Tensor:
        """scale^2 (1 - 2 / pi)."""
        return self._full(geon.square(self.scale) * (1 - 2 / PI))


@family
class HalfCauchy(HalfDistribution):
    """The distribution of absolute values of Cauchy values; mean and variance are infinite."""

    whole = Cauchy

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.atan(x / self.scale) * (2 / PI)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return self._full(geon.where(self.scale > 0, math.inf, math.nan))

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return self.mean
