"""Distributions made of others: independent axes, mixtures, and functions of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import geon

from ..errors import AxisError
from ..op_graph.building.constants import as_tensor
from ..op_graph.core.source_info import user_call
from .base import Distribution, family, union
from .discrete import Categorical

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor


@family
class Independent(Distribution):
    """Values of ``base`` along its axes ``over``, taken together as one value.

    Log-probabilities, entropies and divergences are summed over these axes. Raises ``AxisError``
    for axes that ``base`` does not have.
    """

    base: Distribution
    over: Any

    def __post_init__(self) -> None:
        self._need("base", Distribution)
        given: Any = self.over if isinstance(self.over, (list, tuple, geon.Axes)) else [self.over]
        names = [each.name if isinstance(each, geon.Axis) else each for each in given]
        for name in names:
            if not isinstance(name, str) or name not in self.base.axes:
                raise AxisError(
                    f"{user_call('Independent')}: {name!r} is no axis of the distribution over "
                    f"{self.base.axes}; give some of them"
                )
        object.__setattr__(self, "over", geon.Axes(*(self.base.axes[name] for name in names)))

    @property
    def event_axes(self) -> Axes:
        """``over`` and the event axes of ``base``."""
        return union(self.over, self.base.event_axes)

    @property
    def axes(self) -> Axes:
        """The axes of ``base`` besides ``over``."""
        return geon.Axes(*(axis for axis in self.base.axes if axis.name not in self.over))

    @property
    def dtype(self) -> Any:
        """The dtype of samples of ``base``."""
        return self.base.dtype

    def log_prob(self, x: Any) -> Tensor:
        """Return the sum over the axes of the logarithms of the densities of ``base``."""
        return geon.sum(self.base.log_prob(x), self.over)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return self.base._sample(random, axes)

    @property
    def mean(self) -> Tensor:
        """That of ``base``."""
        return self.base.mean

    @property
    def variance(self) -> Tensor:
        """That of ``base``."""
        return self.base.variance

    def entropy(self) -> Tensor:
        """Return the sum over the axes of the entropies of ``base``."""
        return geon.sum(self.base.entropy(), self.over)


@family
class Mixture(Distribution):
    """A mixture of distributions of one family along an axis.

    ``weights`` is a ``Categorical`` over an axis that ``components`` has: component k is drawn with
    the probability of position k. Raises ``AxisError`` if ``components`` lack that axis.
    """

    weights: Categorical
    components: Distribution

    def __post_init__(self) -> None:
        self._need("weights", Categorical)
        self._need("components", Distribution)
        over = self.weights.over
        if over.name not in self.components.axes:
            raise AxisError(
                f"{user_call('Mixture')}: the components over {self.components.axes} lack {over}, "
                "along which the weights are; give their parameters that axis"
            )

    @property
    def event_axes(self) -> Axes:
        """Those of the components."""
        return self.components.event_axes

    @property
    def axes(self) -> Axes:
        """The axes of weights and components besides that of the mixture."""
        every = union(self.weights.axes, self.components.axes)
        return geon.Axes(*(axis for axis in every if axis.name != self.weights.over.name))

    @property
    def dtype(self) -> Any:
        """The dtype of samples of the components."""
        return self.components.dtype

    def log_prob(self, x: Any) -> Tensor:
        """Return the logarithm of the weighted sum of densities."""
        x = as_tensor(x)
        over = self.weights.over
        wide = geon.broadcast(x, union(x.axes, [over]))
        return geon.logsumexp(self.components.log_prob(wide) + self.weights.log_p, over)

    def cdf(self, x: Any) -> Tensor:
        """Return the weighted sum of the distribution functions."""
        x = as_tensor(x)
        over = self.weights.over
        wide = geon.broadcast(x, union(x.axes, [over]))
        return geon.sum(self.components.cdf(wide) * self.weights.normalized_p, over)

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        """Return the component drawn of values of all components.

        For derivatives with respect to the weights the sample is a constant.
        """
        over = self.weights.over
        events = self.components.event_axes
        every = self.components._sample(random, union(axes, [over]))
        batch = geon.Axes(*(axis for axis in axes if axis.name not in events))
        chosen = self.weights._sample(random, batch)
        return geon.reorder(geon.take_along(every, geon.broadcast(chosen, axes), over), axes)

    @property
    def mean(self) -> Tensor:
        """The weighted mean of the means."""
        return geon.sum(self.components.mean * self.weights.normalized_p, self.weights.over)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        p, over = self.weights.normalized_p, self.weights.over
        apart = geon.square(self.components.mean - self.mean)
        return geon.sum((self.components.variance + apart) * p, over)


class Transform(NamedTuple):
    """An increasing function of numbers with its inverse, and the logarithm of its derivative."""

    forward: Callable[[Any], Tensor]
    inverse: Callable[[Any], Tensor]
    log_derivative: Callable[[Any], Tensor]


EXP = Transform(geon.exp, geon.log, lambda x: x)
SIGMOID = Transform(
    geon.sigmoid,
    lambda y: geon.log(y) - geon.log1p(-y),
    lambda x: -geon.softplus(x) - geon.softplus(-x),
)
SOFTPLUS = Transform(
    geon.softplus, lambda y: y + geon.log(-geon.expm1(-y)), lambda x: -geon.softplus(-x)
)


def affine(location: Any, scale: Any) -> Transform:
    """Return the transform ``location + scale * x``, for a scale above 0."""
    return Transform(
        lambda x: location + scale * x,
        lambda y: (y - location) / scale,
        lambda x: geon.log(scale) + 0.0 * x,
    )


@family
class Transformed(Distribution):
    """The distribution of ``transform.forward(x)`` for values x of a continuous ``base``.

    ``EXP``, ``SIGMOID``, ``SOFTPLUS`` and ``affine`` are transforms. Values that the transform does
    not reach have a NaN or infinite log-density.
    """

    base: Distribution
    transform: Transform

    def __post_init__(self) -> None:
        self._need("base", Distribution)
        self._need("transform", Transform)

    @property
    def event_axes(self) -> Axes:
        """Those of ``base``."""
        return self.base.event_axes

    @property
    def axes(self) -> Axes:
        """The axes of ``base``."""
        return self.base.axes

    @property
    def dtype(self) -> Any:
        """The dtype of samples of ``base``."""
        return self.base.dtype

    def log_prob(self, x: Any) -> Tensor:
        """Return the log-density of ``base`` at the inverse, less the log of the derivative."""
        inner = self.transform.inverse(as_tensor(x))
        logs = self.transform.log_derivative(inner)
        events = [axis for axis in self.event_axes if axis.name in logs.axes]
        logs = geon.sum(logs, events) if events else logs
        return self.base.log_prob(inner) - logs

    def cdf(self, x: Any) -> Tensor:
        """Return the distribution function of ``base`` at the inverse."""
        return self.base.cdf(self.transform.inverse(as_tensor(x)))

    def quantile(self, p: Any) -> Tensor:
        """Return the quantile of ``base``, transformed."""
        return self.transform.forward(self.base.quantile(p))

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return self.transform.forward(self.base._sample(random, axes))
