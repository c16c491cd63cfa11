"""Families whose values lie along an axis: Dirichlet, multinomial and multivariate normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import geon

from ..errors import AxisError
from ..op_graph.building.constants import as_tensor
from ..op_graph.core.source_info import user_call
from ..op_graph.random.parameters import AT_LEAST_ZERO, POSITIVE, WHOLE, check
from .base import Distribution, Support, family, is_whole, union
from .formulas import HALF_LOG_2PI, deviance, product_with_log, stirling_error

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
        if name not in x.axes:
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
        check("Dirichlet", "concentration", self.concentration, POSITIVE)
        made = as_tensor(self.concentration)
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
        made = geon.sum(product_with_log(self.concentration - 1.0, y), self.over)
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
        check("Multinomial", "count", self.count, WHOLE)
        check("Multinomial", "p", self.p, AT_LEAST_ZERO)
        p = as_tensor(self.p)
        over = self._along(p)
        object.__setattr__(self, "over", over)
        object.__setattr__(self, "p", p / geon.sum(p, over))
        object.__setattr__(self, "count", as_tensor(self.count))

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
    """The normal distribution of vectors along ``over``.

    Its covariance is ``factor`` times its transpose. ``factor`` is lower triangular, with rows
    along ``over`` and columns along ``over.prime``; what is above its diagonal is taken to be 0.
    The Cholesky factor of a covariance is one. ``location`` is a number or a tensor over ``over``
    and axes of batches, which ``factor`` may have too. ``over`` may be left out if one axis of
    ``factor`` has its prime beside it. ``log_prob`` solves a triangular system by a scan along
    ``over``.
    """

    location: Any
    factor: Any
    over: Any = None

    def __post_init__(self) -> None:
        factor = as_tensor(self.factor)
        what = user_call("MultivariateNormal")
        rows = [axis for axis in factor.axes if axis.prime.name in factor.axes]
        name = getattr(self.over, "name", self.over)
        found = [axis for axis in rows if name in (None, axis.name)]
        if len(found) != 1:
            raise AxisError(
                f"{what}: the factor {factor} (made at {factor.line_info}) over {factor.axes} has "
                f"no axis {name or 'over'} together with its prime; give it rows along an axis D "
                "and columns along D.prime"
            )
        object.__setattr__(self, "over", found[0])
        row, column = geon.iota(found[0]), geon.iota(found[0].prime)
        grid = union([found[0], found[0].prime])
        lower = geon.broadcast(row, grid) >= geon.broadcast(column, grid)
        object.__setattr__(self, "factor", geon.where(lower, factor, 0.0))
        object.__setattr__(self, "location", as_tensor(self.location))

    @property
    def axes(self) -> Axes:
        """The axes of the parameters besides ``over`` and its prime."""
        own = (self.over.name, self.over.prime.name)
        every = union(self.location.axes, self.factor.axes)
        return geon.Axes(*(axis for axis in every if axis.name not in own))

    def _diagonal(self) -> Tensor:
        over = self.over
        column = geon.broadcast(geon.iota(over.prime), union([over, over.prime]))
        on = geon.equal(column, geon.broadcast(geon.iota(over), column.axes))
        return geon.sum(geon.where(on, self.factor, 0.0), over.prime)

    def _log_scale(self) -> Tensor:
        """Return the logarithm of the determinant of the factor."""
        return geon.sum(geon.log(geon.absolute(self._diagonal())), self.over)

    def _size(self) -> Tensor:
        return geon.cast(geon.tensor_size(self._diagonal(), self.over), self.dtype)

    def log_prob(self, x: Any) -> Tensor:
        """Return the log-density of the vectors ``x`` along ``over``."""
        z = solve_lower(self.factor, as_tensor(x) - self.location, self.over)
        distance = geon.sum(geon.square(z), self.over)
        return -0.5 * distance - self._log_scale() - HALF_LOG_2PI * self._size()

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


def solve_lower(factor: Tensor, b: Tensor, over: Axis) -> Tensor:
    """Return the solution x along ``over`` of ``factor`` x = b, for a lower triangular factor.

    Forward substitution, a scan along ``over``: step i finds element i, and adds it times column i
    to the sum that later steps subtract.
    """
    columns = geon.rename(factor, {over: over.prime.prime})
    columns = geon.rename(columns, {over.prime: over})
    rows = over.prime.prime
    batch = [a for a in union(b.axes, factor.axes) if a.name not in (over.name, over.prime.name)]
    every = geon.Axes(*batch, rows)
    right = geon.broadcast(geon.rename(b, {over: rows}), every)
    positions = geon.iota(over)

    def step(left: Tensor, given: Any) -> Any:
        column, i = given
        here = geon.equal(geon.iota(rows), i)
        pivot = geon.sum(geon.where(here, column, 0.0), rows)
        value = geon.sum(geon.where(here, left, 0.0), rows) / pivot
        product = column * value if len(value.axes) == 0 else geon.broadcast(column, every) * value
        return left - product, value

    _, solved = geon.scan(step, right, (columns, positions), over=over)
    return solved
