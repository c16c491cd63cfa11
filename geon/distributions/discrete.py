"""Families of whole numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import geon

from ..errors import ArgumentError
from ..op_graph.core.source_info import user_call
from ..op_graph.random.parameters import AT_LEAST_ZERO, CHANCE, POSITIVE, PROBABILITY, WHOLE
from .base import (
    UP_TO_COUNT,
    WHOLE_FROM_0,
    WHOLE_FROM_1,
    ZERO_OR_ONE,
    Distribution,
    Support,
    family,
    is_whole,
)
from .formulas import log_binomial, log_poisson
from .summed_entropy import summed_entropy

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor


@family
class ByLogits(Distribution):
    """The base of families that take probabilities ``p`` or ``logits``, one of both."""

    is_discrete = True

    def __post_init__(self: Any) -> None:
        p, logits = self.p, self.logits
        if (p is None) == (logits is None):
            both = "neither p nor logits" if p is None else "both p and logits"
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: {both} is given; give one of them"
            )
        Distribution.__post_init__(self)

    def _is_parameter(self, name: str) -> bool:
        return getattr(self, name) is not None


@family
class Bernoulli(ByLogits):
    """The distribution of 1 with the probability ``p``, or sigmoid(``logits``), else 0."""

    p: Any = None
    logits: Any = None

    requirements: ClassVar = {"p": PROBABILITY}
    support = ZERO_OR_ONE

    def _both(self) -> tuple[Tensor, Tensor]:
        """Return the probabilities of 1 and of 0."""
        if self.p is None:
            return geon.sigmoid(self.logits), geon.sigmoid(-self.logits)
        return self.p, 1.0 - self.p

    def _log_prob(self, x: Tensor) -> Tensor:
        if self.p is None:
            return x * self.logits - geon.softplus(self.logits)
        return geon.xlogy(x, self.p) + geon.xlog1py(1.0 - x, -self.p)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.bernoulli(axes, self._both()[0], "int64")

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.where(x < 1, self._both()[1], 1.0)

    @property
    def mean(self) -> Tensor:
        """p."""
        return self._full(self._both()[0])

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        first, second = self._both()
        return self._full(first * second)

    def entropy(self) -> Tensor:
        """Return -p log(p) - (1 - p) log(1 - p)."""
        first, second = self._both()
        if self.p is None:
            made = geon.softplus(self.logits) - first * self.logits
        else:
            made = -geon.xlogy(first, first) - geon.xlog1py(second, -first)
        return self._full(made)


@family
class Categorical(ByLogits):
    """The distribution of positions along the axis ``over``.

    Probabilities are ``p``, divided by their sum, or softmax(``logits``). ``over`` is an axis of
    them or its name, and may be left out if they have one axis.
    """

    p: Any = None
    logits: Any = None
    over: Any = None

    requirements: ClassVar = {"p": AT_LEAST_ZERO}
    support = Support(
        "positions along the axis",
        lambda d, x: geon.logical_and(
            geon.logical_and(x >= 0, x < geon.tensor_size(d._given, d.over)), is_whole(x)
        ),
        lambda d: 0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self._given
        if self.over is None and len(given.axes) != 1:
            raise ArgumentError(
                f"{user_call('Categorical')}: {given} (made at {given.line_info}) has the axes "
                f"{given.axes}; name the one of the classes as over="
            )
        name = given.axes[0].name if self.over is None else getattr(self.over, "name", self.over)
        if name not in given.axes:
            raise geon.AxisError(
                f"{user_call('Categorical')}: over = {name!r} is no axis of {given} (made at "
                f"{given.line_info}); it has {', '.join(given.axes.names)}"
            )
        object.__setattr__(self, "over", given.axes[name])

    def _is_parameter(self, name: str) -> bool:
        return name != "over" and super()._is_parameter(name)

    @property
    def _given(self) -> Tensor:
        made: Tensor = self.logits if self.p is None else self.p
        return made

    @property
    def axes(self) -> Axes:
        """The axes of the parameter without ``over``."""
        return geon.Axes(*(axis for axis in self._given.axes if axis is not self.over))

    @property
    def log_p(self) -> Tensor:
        """The logarithms of the probabilities, normalised."""
        if self.p is None:
            return geon.log_softmax(self.logits, self.over)
        return geon.log(self.p / geon.sum(self.p, self.over))

    @property
    def normalized_p(self) -> Tensor:
        """The probabilities, normalised."""
        if self.p is None:
            return geon.softmax(self.logits, self.over)
        return self.p / geon.sum(self.p, self.over)

    def _log_prob(self, x: Tensor) -> Tensor:
        return geon.gather(self.log_p, geon.cast(x, "int64"), self.over)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.categorical(axes, self.logits, self.p)

    def _moment(self, power: int) -> Tensor:
        positions = geon.cast(geon.iota(self.over), self._given.dtype)
        return geon.sum(self.normalized_p * positions**power, self.over)

    @property
    def mean(self) -> Tensor:
        """The mean position."""
        return self._moment(1)

    @property
    def variance(self) -> Tensor:
        """The variance of the position."""
        return self._moment(2) - geon.square(self._moment(1))

    def entropy(self) -> Tensor:
        """Return -sum(p log(p)) over the axis."""
        p = self.normalized_p
        if self.p is None:
            return -geon.sum(geon.where(p > 0, p * self.log_p, 0.0), self.over)
        return -geon.sum(geon.xlogy(p, p), self.over)


@family
class Poisson(Distribution):
    """The Poisson distribution of the mean ``rate``."""

    rate: Any = 1.0

    requirements: ClassVar = {"rate": AT_LEAST_ZERO}
    support = WHOLE_FROM_0
    is_discrete = True

    def _log_prob(self, x: Tensor) -> Tensor:
        return log_poisson(x, self.rate)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.poisson(axes, self.rate)

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.gammaincc(x + 1.0, self.rate)

    @property
    def mean(self) -> Tensor:
        """rate."""
        return self._full(self.rate)

    @property
    def variance(self) -> Tensor:
        """rate."""
        return self._full(self.rate)

    def entropy(self) -> Tensor:
        """Return the entropy, by a sum and an integral, to 1e-10 of its value in float64."""
        is_point = geon.equal(self.rate, 0.0)
        rate = geon.where(is_point, 1.0, self.rate)
        made = summed_entropy(lambda k: log_poisson(k, rate), rate, rate)
        return self._full(geon.where(is_point, 0.0, made))


@family
class Binomial(Distribution):
    """The distribution of the number of successes of ``count`` trials of the probability ``p``."""

    count: Any = 1
    p: Any = 0.5

    requirements: ClassVar = {"count": WHOLE, "p": PROBABILITY}
    support = UP_TO_COUNT
    is_discrete = True

    def _log_prob(self, x: Tensor) -> Tensor:
        return log_binomial(x, self.count, self.p, 1.0 - self.p)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.binomial(axes, self.count, self.p)

    def _cdf(self, x: Tensor) -> Tensor:
        rest = self.count - x
        is_all = geon.equal(rest, 0.0)
        found = geon.betainc(geon.where(is_all, 1.0, rest), x + 1.0, 1.0 - self.p)
        return geon.where(is_all, 1.0, found)

    @property
    def mean(self) -> Tensor:
        """count p."""
        return self._full(self.count * self.p)

    @property
    def variance(self) -> Tensor:
        """count p (1 - p)."""
        return self._full(self.count * self.p * (1.0 - self.p))

    def entropy(self) -> Tensor:
        """Return the entropy, by a sum and an integral, to 1e-10 of its value in float64."""
        is_point = geon.equal(self.variance, 0.0)
        count = geon.where(is_point, 1.0, self._full(self.count))
        p = geon.where(is_point, 0.5, geon.minimum(self.p, 1.0 - self.p))  # 1 - p has the same

        def log_p(k: Tensor) -> Tensor:
            found = log_binomial(geon.minimum(k, count), count, p, 1.0 - p)
            return geon.where(k <= count, found, -math.inf)

        made = summed_entropy(log_p, count * p, count * p * (1.0 - p))
        return self._full(geon.where(is_point, 0.0, made))


@family
class Geometric(Distribution):
    """The distribution of the number of trials up to the first success, at least 1."""

    p: Any = 0.5

    requirements: ClassVar = {"p": CHANCE}
    support = WHOLE_FROM_1
    is_discrete = True

    def _log_prob(self, x: Tensor) -> Tensor:
        return geon.xlog1py(x - 1.0, -self.p) + geon.log(self.p)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.geometric(axes, self.p)

    def _cdf(self, x: Tensor) -> Tensor:
        return -geon.expm1(geon.xlog1py(x, -self.p))

    @property
    def mean(self) -> Tensor:
        """1 / p."""
        return self._full(1.0 / self.p)

    @property
    def variance(self) -> Tensor:
        """(1 - p) / p^2."""
        return self._full((1.0 - self.p) / geon.square(self.p))

    def entropy(self) -> Tensor:
        """Return the entropy."""
        q = 1.0 - self.p
        made = -geon.xlog1py(q, -self.p) / self.p - geon.log(self.p)
        return self._full(made)


@family
class NegativeBinomial(Distribution):
    """The distribution of the number of failures before ``count`` successes of probability ``p``.

    ``count`` may be any number above 0.
    """

    count: Any = 1.0
    p: Any = 0.5

    requirements: ClassVar = {"count": POSITIVE, "p": CHANCE}
    support = WHOLE_FROM_0
    is_discrete = True

    def _log_prob(self, x: Tensor) -> Tensor:
        total = x + self.count
        made = log_binomial(self.count, total, self.p, 1.0 - self.p)
        return made + geon.log(self.count / total)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.negative_binomial(axes, self.count, self.p)

    def _cdf(self, x: Tensor) -> Tensor:
        return geon.betainc(self.count, x + 1.0, self.p)

    @property
    def mean(self) -> Tensor:
        """count (1 - p) / p."""
        return self._full(self.count * ((1.0 - self.p) / self.p))

    @property
    def variance(self) -> Tensor:
        """count (1 - p) / p^2."""
        return self._full(self.count * ((1.0 - self.p) / geon.square(self.p)))

    def entropy(self) -> Tensor:
        """Return the entropy, by a sum and an integral, to 1e-10 of its value in float64."""
        is_point = self._full(geon.equal(self.p, 1.0))
        p = geon.where(is_point, 0.5, self.p)
        q = 1.0 - p
        count = self._full(self.count)

        def log_p(k: Tensor) -> Tensor:
            total = k + count
            return log_binomial(count, total, p, q) + geon.log(count / total)

        made = summed_entropy(log_p, count * (q / p), count * (q / geon.square(p)))
        return self._full(geon.where(is_point, 0.0, made))
