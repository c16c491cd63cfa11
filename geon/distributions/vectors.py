"""Families whose values lie along an axis: Dirichlet, multinomial and multivariate normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import geon

from ..errors import ArgumentError, AxisError
from ..op_graph.building.constants import as_tensor
from ..op_graph.core.source_info import user_call
from ..op_graph.random.parameters import AT_LEAST_ZERO, POSITIVE, WHOLE, check
from .base import Distribution, Support, family, is_whole, union
from .formulas import HALF_LOG_2PI, deviance, stirling_error

if TYPE_CHECKING:
    from geon import Axes, Axis, Random, Tensor


@family
class OverAxis(Distribution):
    """The base of families whose values lie along ``over``, an axis of a parameter."""

    def _along(self: Any, x: Tensor) -> Axis:
        """Return the axis ``over``: the one given, or the only one of ``x``."""
        over = self.over
        what = user_call(type(self).__name__)
        if over is None and len(x.axes) != 1:
            raise AxisError(
                f"{what}: {x} (made at {x.line_info}) has the axes {x.axes}; name the one along "
                "which values lie as over="
            )
        name = x.axes[0].name if over is None else getattr(over, "name", over)
        if not isinstance(name, str) or name not in x.axes:
            raise AxisError(
                f"{what}: over = {name!r} is no axis of {x} (made at {x.line_info}); it has "
                f"{', '.join(x.axes.names) or 'none'}"
            )
        return x.axes[name]

    @property
    def event_axes(self: Any) -> Axes:
        """The axis ``over``."""
        return geon.Axes(self.over)


@family
class Dirichlet(OverAxis):
    """The Dirichlet distribution of probabilities along ``over``.

    ``over`` is an axis of ``concentration`` or its name, and may be left out if it has one axis.
    """

    concentration: Any
    over: Any = None

    requirements: ClassVar = {"concentration": POSITIVE}

    def __post_init__(self) -> None:
        made = as_tensor(self.concentration)
        check("Dirichlet", "concentration", self.concentration, POSITIVE)
        object.__setattr__(self, "concentration", made)
        object.__setattr__(self, "over", self._along(made))

    @property
    def _total(self) -> Tensor:
        return geon.sum(self.concentration, self.over)

    def _log_beta(self) -> Tensor:
        parts = geon.sum(geon.lgamma(self.concentration), self.over)
        return parts - geon.lgamma(self._total)

    def log_prob(self, x: Any) -> Tensor:
        """Return the log-density of probabilities ``x``; -inf where one is below 0.

        That they sum to 1 is not checked.
        """
        x = as_tensor(x)
        valid = geon.all(x >= 0, self.over)
        y = geon.where(x >= 0, x, 1.0)
        made = geon.sum(geon.xlogy(self.concentration - 1.0, y), self.over)
        return geon.where(valid, made - self._log_beta(), -float("inf"))

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.dirichlet(axes, self.concentration, self.over, self.dtype)

    @property
    def mean(self) -> Tensor:
        """concentration divided by its sum."""
        return self.concentration / self._total

    @property
    def variance(self) -> Tensor:
        """The variances of the elements: m (1 - m) / (sum + 1) of the means m."""
        return self.mean * (1.0 - self.mean) / (self._total + 1.0)

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        a, total = self.concentration, self._total
        count = geon.cast(geon.tensor_size(a, self.over), total.dtype)
        slopes = geon.sum((a - 1.0) * geon.digamma(a), self.over)
        return self._log_beta() + (total - count) * geon.digamma(total) - slopes


@family
class Multinomial(OverAxis):
    """The distribution of the counts along ``over`` of ``count`` trials with probabilities ``p``.

    ``p`` is divided by its sum along ``over``, an axis of it, which may be left out if it has one.
    """

    count: Any
    p: Any
    over: Any = None

    is_discrete = True
    support = Support(
        "whole numbers of at least 0 with the sum count", lambda d, x: is_whole(x), lambda d: 0.0
    )

    def __post_init__(self) -> None:
        p, count = as_tensor(self.p), as_tensor(self.count)
        check("Multinomial", "count", self.count, WHOLE)
        check("Multinomial", "p", self.p, AT_LEAST_ZERO)
        over = self._along(p)
        object.__setattr__(self, "over", over)
        object.__setattr__(self, "p", p / geon.sum(p, over))
        object.__setattr__(self, "count", count)

    def log_prob(self, x: Any) -> Tensor:
        """Return the logarithm of the probability of the counts ``x``; -inf where impossible.

        Counts that are no whole numbers of at least 0, or do not sum to ``count``, are impossible.
        """
        x = as_tensor(x)
        x = x if "float" in x.dtype.name else geon.cast(x, self.dtype)
        fits = geon.equal(geon.sum(x, self.over), self.count)
        whole = geon.all(geon.logical_and(x >= 0, is_whole(x)), self.over)
        valid = geon.logical_and(fits, whole)
        some = x > 0
        k = geon.where(some, x, 1.0)
        n = geon.where(self.count > 0, geon.cast(self.count, x.dtype), 1.0)
        # Deviances of all counts and errors of Stirling's formula.
        parts = deviance(k, n * self.p) + stirling_error(k) + HALF_LOG_2PI + 0.5 * geon.log(k)
        rest = geon.where(some, parts, n * self.p)
        made = stirling_error(n) + HALF_LOG_2PI + 0.5 * geon.log(n) - geon.sum(rest, self.over)
        made = geon.where(self.count > 0, made, 0.0)
        return geon.where(valid, made, -float("inf"))

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.multinomial(axes, self.count, self.p, self.over)

    @property
    def mean(self) -> Tensor:
        """count p."""
        return self.p * self.count

    @property
    def variance(self) -> Tensor:
        """The variances of the counts, count p (1 - p)."""
        return self.p * (1.0 - self.p) * self.count


@family
class MultivariateNormal(OverAxis):
    """The normal distribution of vectors along ``over``, with a ``covariance`` or its ``factor``.

    Both are matrices with rows along ``over`` and columns along ``over.prime``; give one of them.
    ``factor`` is lower triangular, and the covariance is ``factor`` times its transpose; what is
    above its diagonal is taken to be 0. A covariance is factorised by ``geon.linalg.cholesky``,
    which raises ``LinearAlgebraError`` at a call if it is not positive definite. ``location`` is a
    number or a tensor over ``over`` and axes of batches, which the matrix may have too. ``over``
    may be left out if one axis of the matrix has its prime beside it.
    """

    location: Any
    factor: Any = None
    covariance: Any = None
    over: Any = None

    def __post_init__(self) -> None:
        what = user_call("MultivariateNormal")
        if (self.factor is None) == (self.covariance is None):
            both = "neither factor nor" if self.factor is None else "both factor and"
            raise ArgumentError(f"{what}: {both} covariance is given; give one of them")
        given = as_tensor(self.factor if self.covariance is None else self.covariance)
        name = getattr(self.over, "name", self.over)
        rows = [axis for axis in given.axes if axis.prime.name in given.axes]
        found = [axis for axis in rows if name in (None, axis.name)]
        if len(found) != 1:
            raise AxisError(
                f"{what}: the matrix {given} (made at {given.line_info}) over {given.axes} has no "
                f"axis {name or 'over'} together with its prime; give it rows along an axis D and "
                "columns along D.prime"
            )
        row, column = found[0], found[0].prime
        if self.covariance is not None:
            factor = geon.linalg.cholesky(given, [row, column])
        else:
            grid = union([row, column])
            is_lower = geon.broadcast(geon.iota(row), grid) >= geon.broadcast(
                geon.iota(column), grid
            )
            factor = geon.where(is_lower, given, 0.0)
        object.__setattr__(self, "over", row)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "location", as_tensor(self.location))

    @property
    def axes(self) -> Axes:
        """The axes of the parameters besides ``over`` and its prime."""
        own = (self.over.name, self.over.prime.name)
        every = union(self.location.axes, self.factor.axes)
        return geon.Axes(*(axis for axis in every if axis.name not in own))

    def _log_scale(self) -> Tensor:
        """Return the logarithm of the determinant of the factor."""
        diagonal = geon.diagonal(self.factor, [self.over, self.over.prime])
        return geon.sum(geon.log(geon.absolute(diagonal)), self.over)

    def _size(self) -> Tensor:
        return geon.cast(geon.tensor_size(self.factor, self.over), self.dtype)

    def log_prob(self, x: Any) -> Tensor:
        """Return the log-density of the vectors ``x`` along ``over``."""
        z = self.standardised(as_tensor(x) - self.location)
        distance = geon.sum(geon.square(z), self.over.prime)
        return -0.5 * distance - (self._log_scale() + HALF_LOG_2PI * self._size())

    def standardised(self, x: Tensor) -> Tensor:
        """Return the solution z along ``over.prime`` of ``factor`` z = x."""
        batch = [
            a for a in self.factor.axes if a.name not in (self.over.name, self.over.prime.name)
        ]
        right = geon.broadcast(x, union(x.axes, [self.over], batch))
        return geon.linalg.triangular_solve(self.factor, right, [self.over, self.over.prime])

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        return random.multivariate_normal(axes, self.location, self.factor, self.over, self.dtype)

    @property
    def mean(self) -> Tensor:
        """location."""
        return geon.broadcast(self.location, union(self.axes, self.event_axes))

    @property
    def variance(self) -> Tensor:
        """The variances of the elements: the diagonal of the covariance."""
        made = geon.sum(geon.square(self.factor), self.over.prime)
        return geon.broadcast(made, union(self.axes, self.event_axes))

    def entropy(self) -> Tensor:
        """Return the differential entropy."""
        return self._full(self._log_scale() + (0.5 + HALF_LOG_2PI) * self._size())
